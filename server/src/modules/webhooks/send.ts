import { type Agent, request } from 'undici'
import { AddressRefused } from './guarded-agent.ts'
import { type Message, signMessage } from './sign.ts'

export type Attempt = { url: string; message: Message; secrets: readonly string[] }
export type Outcome = { ok: boolean; status: number | null; error: string | null; ms: number }
export type Send = (attempt: Attempt, signal: AbortSignal) => Promise<Outcome>

const ANSWER_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024

/** One attempt. Only a 2xx counts; the answer's body is read to its cap and thrown away, so that the connection can be kept. */
export const createSend =
  (agent: Agent, answerMs = ANSWER_MS): Send =>
  async ({ url, message, secrets }, stopping) => {
    const began = performance.now()
    const took = () => Math.round(performance.now() - began)
    const signal = AbortSignal.any([stopping, AbortSignal.timeout(answerMs)])
    try {
      const response = await request(url, {
        method: 'POST',
        dispatcher: agent,
        signal,
        headers: {
          'content-type': 'application/json',
          'user-agent': 'Countersign-Webhooks/1',
          'webhook-id': message.id,
          'webhook-timestamp': String(message.timestamp),
          'webhook-signature': signMessage(secrets, message),
        },
        body: message.body,
      })
      const status = response.statusCode
      await response.body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => {})
      const ok = status >= 200 && status < 300
      return { ok, status, error: ok ? null : `answered ${status}`, ms: took() }
    } catch (error) {
      return { ok: false, status: null, error: explain(error), ms: took() }
    }
  }

/** For the tenant to read: what went wrong, without what our network looks like from inside. */
function explain(error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  const { name, code } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'no answer in time'
  if (name === 'AbortError') return 'interrupted'
  return `connection failed (${code ?? name ?? 'unknown'})`
}
