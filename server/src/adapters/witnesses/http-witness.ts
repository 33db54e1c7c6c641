import type { SendToWitness } from '../../modules/receipts/submit-checkpoints.ts'

const ANSWER_MS = 5_000
const MAX_ANSWER_BYTES = 64 * 1024

/** `POST <prefix>/add-checkpoint` of C2SP tlog-witness. A witness that redirects, dawdles or answers too much has failed. */
export const createHttpWitness =
  (timeoutMs = ANSWER_MS): SendToWitness =>
  async (url, body) => {
    try {
      const response = await fetch(`${url.replace(/\/+$/, '')}/add-checkpoint`, {
        method: 'POST',
        body,
        headers: { 'content-type': 'text/plain; charset=utf-8', 'user-agent': 'Countersign-Log/1' },
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const chunks: Uint8Array[] = []
      let length = 0
      for await (const chunk of response.body ?? []) {
        length += chunk.length
        if (length > MAX_ANSWER_BYTES) throw new Error('The answer is too large.')
        chunks.push(chunk)
      }
      const text = Buffer.concat(chunks).toString('utf8')
      return { status: response.status, type: response.headers.get('content-type') ?? '', body: text }
    } catch (error) {
      throw new Error(describeError(error), { cause: error })
    }
  }

function describeError(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string } }
  if (name === 'TimeoutError') return 'It did not answer in time.'
  return cause?.code === undefined ? message : `It cannot be reached (${cause.code}).`
}
