import { type Fill, type PlaceOutcome, parseDecimal } from '../../modules/brokerage/broker.ts'

/**
 * The result of an HTTP request to a broker. `not_sent`: the request certainly did not arrive. `lost`: it may have
 * arrived, and only the broker knows.
 */
export type BrokerResponse =
  | { kind: 'response'; status: number; body: unknown; retryAfterSeconds: number | null }
  | { kind: 'not_sent'; reason: string }
  | { kind: 'lost'; reason: string }

export type BrokerRequest = { method: 'GET' | 'POST' | 'DELETE'; path: string; body?: unknown }

export type BrokerHttp = (request: BrokerRequest) => Promise<BrokerResponse>

export type BrokerHttpOptions = {
  baseUrl: string
  timeoutMs?: number
  /** The authentication headers; they may depend on every byte of the request. */
  authorize(request: { method: string; path: string; body: string }): Promise<Record<string, string>>
}

const TIMEOUT_MS = 10_000
const MAX_BODY_BYTES = 1_048_576
/** These errors occur before a connection is established, so the request was not sent. */
const NOT_SENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** A lost request can no longer arrive after this time. */
export const IN_FLIGHT_MS = 60_000

export function createBrokerHttp(options: BrokerHttpOptions): BrokerHttp {
  return async ({ method, path, body }) => {
    const requestText = body === undefined ? '' : JSON.stringify(body)
    try {
      const headers = await options.authorize({ method, path, body: requestText })
      const response = await fetch(`${options.baseUrl}${path}`, {
        method,
        headers: { accept: 'application/json', ...(requestText && { 'content-type': 'application/json' }), ...headers },
        ...(requestText && { body: requestText }),
        redirect: 'error',
        signal: AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS),
      })
      const parsed = await readJson(response)
      if (!parsed.ok) return { kind: 'lost', reason: `The broker answered ${response.status} with ${parsed.reason}.` }
      return {
        kind: 'response',
        status: response.status,
        body: parsed.value,
        retryAfterSeconds: readRetryAfter(response),
      }
    } catch (error) {
      const code = errorCode(error)
      if (code && NOT_SENT_CODES.has(code))
        return { kind: 'not_sent', reason: `The broker cannot be reached (${code}).` }
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
    // An error page is identified by its status; only a success whose body cannot be read is lost.
    return response.ok ? { ok: false, reason: 'no JSON' } : { ok: true, value: null }
  }
}

function readRetryAfter(response: Response): number | null {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(Math.ceil(seconds), 3600) : null
}

function errorCode(error: unknown): string | undefined {
  const cause = (error as { cause?: { code?: unknown } }).cause
  return typeof cause?.code === 'string' ? cause.code : undefined
}

/**
 * The outcome of a failed attempt to place an order. With a refusal, a 401 or a 429 the broker certainly accepted no
 * order. A 5xx says nothing about the order.
 */
export function toFailedPlaceOutcome(response: BrokerResponse, formatRefusal: (body: unknown) => string): PlaceOutcome {
  if (response.kind === 'not_sent') return { outcome: 'unavailable', reason: response.reason, retryAfterSeconds: 5 }
  if (response.kind === 'lost') return { outcome: 'unknown', reason: response.reason }
  const { status, body } = response
  if (status === 429) {
    return {
      outcome: 'unavailable',
      reason: 'The broker asks to slow down.',
      retryAfterSeconds: response.retryAfterSeconds ?? 5,
    }
  }
  if (status === 401) {
    return { outcome: 'unavailable', reason: 'The broker does not accept the credentials.', retryAfterSeconds: 60 }
  }
  // A proxy that timed out (408) does not know what the broker behind it did.
  if (status >= 400 && status < 500 && status !== 408) return { outcome: 'rejected', reason: formatRefusal(body) }
  return { outcome: 'unknown', reason: `The broker answered ${status}.` }
}

/** Parses a broker's decimal text; digits beyond the eighth decimal are rounded. */
export function parseE8(text: unknown): bigint {
  if (typeof text !== 'string' && typeof text !== 'number') return 0n
  const [whole = '0', fraction = ''] = String(text).split('.')
  const exact = parseDecimal(String(text), 8)
  if (exact !== undefined) return exact
  const truncated = parseDecimal(`${whole}.${fraction.slice(0, 9)}`, 9)
  return truncated === undefined ? 0n : (truncated + (truncated < 0n ? -5n : 5n)) / 10n
}

export const parseMicro = (text: unknown): bigint => parseE8(text) / 100n

/** One fill for the whole quantity, for brokers that report an average price and no single fills. */
export function toAverageFill(fillId: string, quantityE8: bigint, priceE8: bigint, feeMicro: bigint, at: Date): Fill[] {
  return quantityE8 > 0n ? [{ fillId, quantityE8, priceE8, feeMicro, at }] : []
}

export const asObject = (value: unknown): Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : {}

export const asObjects = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.map(asObject) : []

export const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

export const asDate = (value: unknown): Date => {
  const at = new Date(asText(value))
  return Number.isNaN(at.getTime()) ? new Date(0) : at
}

/** The spread, as the slippage estimate for brokers that give none. */
export const spreadBps = (bidE8: bigint, askE8: bigint): number =>
  bidE8 > 0n ? Number(((askE8 - bidE8) * 1_000_000n) / bidE8) / 100 : 0

/** How far the broker's clock may be behind ours. */
const MAX_CLOCK_SKEW_MS = 10 * 60_000

/** Where to search for an order that was sent at this time by our clock: the broker dates it by its own. */
export const searchStart = (sentAt: Date): string => new Date(sentAt.getTime() - MAX_CLOCK_SKEW_MS).toISOString()
