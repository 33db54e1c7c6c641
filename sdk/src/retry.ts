import { type ApiResult, isObject } from './http.ts'

/** Why the same request is to be sent again, and how long the service asked to wait. */
export type Again = { reason: string; retryAfterMs: number }

const GOVERNANCE_ERRORS = ['budget_exceeded', 'policy_blocked']
const UNKNOWN_OUTCOME_STATUSES = [408, 425, 502, 504]
const FIRST_DELAY_MS = 250
const MAX_DELAY_MS = 5_000
const JITTER = 0.25

/**
 * Whether a response leaves the outcome open. A refusal of governance never does. `mayBeCharged`: the request carries a
 * payment, so that an internal error is no answer either.
 */
export function findRetry(response: ApiResult, mayBeCharged: boolean): Again | undefined {
  const { status, headers } = response
  const body = isObject(response.body) ? response.body : {}
  const retryAfterMs = readRetryAfter(headers)
  const again = (reason: string): Again => ({ reason, retryAfterMs: retryAfterMs ?? 0 })
  if (status === 202) return again('The call is in progress.')
  if (status === 429) {
    if (GOVERNANCE_ERRORS.includes(String(body.error))) return undefined
    return retryAfterMs !== undefined || mayBeCharged ? again('The rate limit is reached.') : undefined
  }
  if (status === 409) return body.retryable === true ? again('The same call is in progress.') : undefined
  if (status === 503)
    return body.code === 'not_configured' && !mayBeCharged ? undefined : again('The service is unavailable.')
  if (UNKNOWN_OUTCOME_STATUSES.includes(status)) return again(`The response was ${status}.`)
  if (status >= 500 && mayBeCharged && body.charged !== false) return again(`The response was ${status}.`)
  return undefined
}

/** Doubles with each attempt; never sooner than the service asked for. The jitter keeps clients from coming together. */
export function retryDelayMs(attempt: number, retryAfterMs: number): number {
  const delay = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(attempt - 1, 16))
  const jitter = 1 - JITTER * Math.random()
  return Math.round(Math.max(delay * jitter, retryAfterMs * (2 - jitter)))
}

/** Seconds or a date. */
function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get('retry-after')
  if (text === null) return undefined
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** In short steps, because a machine that sleeps stops its timers and not its clock. */
export async function sleepUntil(timeMs: number, signal?: AbortSignal): Promise<void> {
  while (Date.now() < timeMs) await sleep(Math.min(1_000, timeMs - Date.now()), signal)
}
