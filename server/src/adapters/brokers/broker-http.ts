import { type Fill, type OrderRequest, type PlaceOutcome, parseDecimal } from '../../modules/brokerage/broker.ts'

/**
 * HTTP to a broker, sorted by what can be known afterwards. `not_sent`: certain that nothing arrived there.
 * `lost`: it may have arrived, and only the broker can tell.
 */
export type BrokerAnswer =
  | { kind: 'answer'; status: number; body: unknown; retryAfterSeconds: number | null }
  | { kind: 'not_sent'; reason: string }
  | { kind: 'lost'; reason: string }

export type BrokerRequest = { method: 'GET' | 'POST' | 'DELETE'; path: string; body?: unknown }

export type BrokerHttp = (request: BrokerRequest) => Promise<BrokerAnswer>

export type BrokerHttpOptions = {
  baseUrl: string
  timeoutMs?: number
  /** Headers that prove who asks; they may depend on every byte of the request. */
  authorize(request: { method: string; path: string; body: string }): Promise<Record<string, string>>
}

const TIMEOUT_MS = 10_000
const MAX_BODY_BYTES = 1_048_576
/** These come before a connection stands, so the request cannot have left. */
const NEVER_LEFT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** After this long a request that was lost on the way cannot arrive any more. */
export const IN_FLIGHT_MS = 60_000

export function createBrokerHttp(options: BrokerHttpOptions): BrokerHttp {
  return async ({ method, path, body }) => {
    const text = body === undefined ? '' : JSON.stringify(body)
    try {
      const headers = await options.authorize({ method, path, body: text })
      const response = await fetch(`${options.baseUrl}${path}`, {
        method,
        headers: { accept: 'application/json', ...(text && { 'content-type': 'application/json' }), ...headers },
        ...(text && { body: text }),
        redirect: 'error',
        signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
      })
      const parsed = await readJson(response)
      if (!parsed.ok) return { kind: 'lost', reason: `The broker answered ${response.status} with ${parsed.reason}.` }
      return { kind: 'answer', status: response.status, body: parsed.value, retryAfterSeconds: retryAfter(response) }
    } catch (error) {
      const code = errorCode(error)
      if (code && NEVER_LEFT.has(code)) return { kind: 'not_sent', reason: `The broker cannot be reached (${code}).` }
      return { kind: 'lost', reason: `No answer from the broker (${code ?? (error as Error).name}).` }
    }
  }
}

async function readJson(response: Response): Promise<{ ok: true; value: unknown } | { ok: false; reason: string }> {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = response.body?.getReader()
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    size += part.value.byteLength
    if (size > MAX_BODY_BYTES) return { ok: false, reason: 'too large a body' }
    chunks.push(part.value)
  }
  const text = Buffer.concat(chunks).toString('utf8')
  if (text.trim() === '') return { ok: true, value: null }
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch {
    // An error page is still an answer by its status; only a success we cannot read is not.
    return response.ok ? { ok: false, reason: 'no JSON' } : { ok: true, value: null }
  }
}

function retryAfter(response: Response): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(Math.ceil(seconds), 3600) : null
}

function errorCode(error: unknown): string | undefined {
  const cause = (error as { cause?: { code?: unknown } }).cause
  return typeof cause?.code === 'string' ? cause.code : undefined
}

/**
 * What a failed attempt to place an order comes to. Refusals are certain, and so are 401 and 429: the broker looked at
 * the request and took no order. A 5xx says nothing about the order.
 */
export function placeFailure(answer: BrokerAnswer, message: (body: unknown) => string): PlaceOutcome {
  if (answer.kind === 'not_sent') return { outcome: 'unavailable', reason: answer.reason, retryAfterSeconds: 5 }
  if (answer.kind === 'lost') return { outcome: 'unknown', reason: answer.reason }
  const { status, body } = answer
  if (status === 429) {
    return {
      outcome: 'unavailable',
      reason: 'The broker asks to slow down.',
      retryAfterSeconds: answer.retryAfterSeconds ?? 5,
    }
  }
  if (status === 401) {
    return { outcome: 'unavailable', reason: 'The broker does not accept the credentials.', retryAfterSeconds: 60 }
  }
  // A proxy that gave up waiting does not know what the broker behind it did.
  if (status >= 400 && status < 500 && status !== 408) return { outcome: 'rejected', reason: message(body) }
  return { outcome: 'unknown', reason: `The broker answered ${status}.` }
}

/** The price that the order may not go beyond: brokers know limits, not collars. */
export const limitOf = (order: OrderRequest): bigint | null => {
  const { limitPriceE8: limit, worstPriceE8: worst } = order
  if (limit === null || worst === null) return limit ?? worst
  return (order.side === 'buy') === limit <= worst ? limit : worst
}

/** A broker's decimal text; digits beyond the eighth are rounded off, because we count no finer. */
export function decimalE8(text: unknown): bigint {
  if (typeof text !== 'string' && typeof text !== 'number') return 0n
  const [whole = '0', fraction = ''] = String(text).split('.')
  const exact = parseDecimal(String(text), 8)
  if (exact !== undefined) return exact
  const cut = parseDecimal(`${whole}.${fraction.slice(0, 9)}`, 9)
  return cut === undefined ? 0n : (cut + (cut < 0n ? -5n : 5n)) / 10n
}

export const decimalMicro = (text: unknown): bigint => decimalE8(text) / 100n

/** Brokers that report an average and no parts: one fill that says the same. */
export function averageFill(fillId: string, quantityE8: bigint, priceE8: bigint, feeMicro: bigint, at: Date): Fill[] {
  return quantityE8 > 0n ? [{ fillId, quantityE8, priceE8, feeMicro, at }] : []
}

export const record = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

export const records = (value: unknown): Record<string, unknown>[] => (Array.isArray(value) ? value.map(record) : [])

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const instant = (value: unknown): Date => {
  const at = new Date(textOf(value))
  return Number.isNaN(at.getTime()) ? new Date(0) : at
}

/** What a taker may expect to lose to the book, for brokers that give no estimate of their own. */
export const spreadBps = (bidE8: bigint, askE8: bigint): number =>
  bidE8 > 0n ? Number(((askE8 - bidE8) * 1_000_000n) / bidE8) / 100 : 0
