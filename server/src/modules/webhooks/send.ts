import { type Agent, type Dispatcher, request } from 'undici'
import { ForbiddenAddressError } from './guarded-agent.ts'
import { type Message, signMessage } from './sign.ts'

export type Attempt = { url: string; message: Message; secrets: readonly string[] }
/** `answer` is the beginning of what the target answered. */
export type Outcome = { ok: boolean; status: number | null; error: string | null; ms: number; answer: string | null }
export type SignedOutcome = Outcome & { signature: string }
export type Sender = (attempt: Attempt, signal: AbortSignal) => Promise<SignedOutcome>

const RESPONSE_TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024
const ANSWER_BYTES = 500

const standingHeaders = { 'content-type': 'application/json', 'user-agent': 'Countersign-Webhooks/1' }

/** All headers of an attempt; those with the time and the signature only where they are known. */
export const describeHeaders = (id: string, timestamp: number | null, signature: string | null) => ({
  ...standingHeaders,
  'webhook-id': id,
  ...(timestamp !== null && { 'webhook-timestamp': String(timestamp) }),
  ...(signature !== null && { 'webhook-signature': signature }),
})

export type Post = { url: string; headers?: Record<string, string>; body: string }
export type PostJson = (post: Post, signal: AbortSignal) => Promise<Outcome>

/** One attempt; only a 2xx is a success. The response body is read up to a limit, so that the connection can be reused. */
export const createPostJson =
  (agent: Agent, timeoutMs = RESPONSE_TIMEOUT_MS): PostJson =>
  async ({ url, headers, body }, stopSignal) => {
    const startedAt = performance.now()
    const elapsedMs = () => Math.round(performance.now() - startedAt)
    const signal = AbortSignal.any([stopSignal, AbortSignal.timeout(timeoutMs)])
    try {
      const response = await request(url, {
        method: 'POST',
        dispatcher: agent,
        signal,
        headers: { ...standingHeaders, ...headers },
        body,
      })
      const status = response.statusCode
      const answer = await readAnswer(response.body)
      const ok = status >= 200 && status < 300
      return { ok, status, error: ok ? null : `answered ${status}`, ms: elapsedMs(), answer }
    } catch (error) {
      return { ok: false, status: null, error: describeError(error), ms: elapsedMs(), answer: null }
    }
  }

/** Sends a message with the headers of Standard Webhooks. */
export function createSender(agent: Agent, timeoutMs = RESPONSE_TIMEOUT_MS): Sender {
  const post = createPostJson(agent, timeoutMs)
  return async ({ url, message, secrets }, stopSignal) => {
    const signature = signMessage(secrets, message)
    const headers = describeHeaders(message.id, message.timestamp, signature)
    return { ...(await post({ url, headers, body: message.body }, stopSignal)), signature }
  }
}

/** The beginning of a response as text that JSON in PostgreSQL can hold. A body that fails or never ends is cut off. */
async function readAnswer(body: Dispatcher.ResponseData['body']): Promise<string | null> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (length < ANSWER_BYTES) chunks.push(chunk)
      length += chunk.length
      if (length > MAX_RESPONSE_BYTES) break
    }
  } catch {
    // The status has arrived, and it alone decides.
  }
  const text = new TextDecoder().decode(Buffer.concat(chunks).subarray(0, ANSWER_BYTES))
  return text === '' ? null : text.replaceAll('\0', '\uFFFD')
}

/** The error as shown to the tenant; it reveals nothing about the internal network. */
function describeError(error: unknown): string {
  if (error instanceof ForbiddenAddressError) return error.message
  const { name, code } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'no answer in time'
  if (name === 'AbortError') return 'interrupted'
  return `connection failed (${code ?? name ?? 'unknown'})`
}
