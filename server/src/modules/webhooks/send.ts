import { type Agent, request } from 'undici'
import { ForbiddenAddressError } from './guarded-agent.ts'
import { type Message, signMessage } from './sign.ts'

export type Attempt = { url: string; message: Message; secrets: readonly string[] }
export type Outcome = { ok: boolean; status: number | null; error: string | null; ms: number }
export type Sender = (attempt: Attempt, signal: AbortSignal) => Promise<Outcome>

const RESPONSE_TIMEOUT_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024

export type Post = { url: string; headers?: Record<string, string>; body: string }
export type PostJson = (post: Post, signal: AbortSignal) => Promise<Outcome>

/** One attempt; only a 2xx is a success. The response body is read up to a limit and discarded, so that the connection can be reused. */
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
        headers: { 'content-type': 'application/json', 'user-agent': 'Countersign-Webhooks/1', ...headers },
        body,
      })
      const status = response.statusCode
      await response.body.dump({ limit: MAX_RESPONSE_BYTES, signal }).catch(() => {})
      const ok = status >= 200 && status < 300
      return { ok, status, error: ok ? null : `answered ${status}`, ms: elapsedMs() }
    } catch (error) {
      return { ok: false, status: null, error: describeError(error), ms: elapsedMs() }
    }
  }

/** Sends a message with the headers of Standard Webhooks. */
export function createSender(agent: Agent, timeoutMs = RESPONSE_TIMEOUT_MS): Sender {
  const post = createPostJson(agent, timeoutMs)
  return ({ url, message, secrets }, stopSignal) => {
    const headers = {
      'webhook-id': message.id,
      'webhook-timestamp': String(message.timestamp),
      'webhook-signature': signMessage(secrets, message),
    }
    return post({ url, headers, body: message.body }, stopSignal)
  }
}

/** The error as shown to the tenant; it reveals nothing about the internal network. */
function describeError(error: unknown): string {
  if (error instanceof ForbiddenAddressError) return error.message
  const { name, code } = error as { name?: string; code?: string }
  if (name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'no answer in time'
  if (name === 'AbortError') return 'interrupted'
  return `connection failed (${code ?? name ?? 'unknown'})`
}
