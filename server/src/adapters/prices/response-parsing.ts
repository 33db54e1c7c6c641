import {
  type Observation,
  type ParsedResponse,
  PriceSourceError,
  type RejectedEntry,
  type SourceRequest,
  type SourceResponse,
} from '../../modules/basis/price-source.ts'

/** Checks shared by all sources: a body is JSON of the expected shape, or a `PriceSourceError` says why not. */
export type JsonObject = Record<string, unknown>

export function getRequest(
  url: string,
  options: { headers?: Record<string, string>; context?: JsonObject } = {},
): SourceRequest {
  return {
    method: 'GET',
    url,
    publicUrl: toPublicUrl(url),
    headers: options.headers ?? {},
    context: options.context ?? {},
  }
}

/** The URL as it may be published: without user name and password, and without parameters that could be keys. */
export function toPublicUrl(url: string): string {
  const parsed = new URL(url)
  parsed.username = ''
  parsed.password = ''
  for (const name of [...parsed.searchParams.keys()])
    if (/key|token|secret|auth|signature/i.test(name)) parsed.searchParams.delete(name)
  return parsed.toString()
}

export function parseJson({ status, body }: SourceResponse): unknown {
  if (status !== 200) throw new PriceSourceError(`it answered with status ${status}`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    throw new PriceSourceError('its response is cut short or is not JSON', { cause })
  }
}

export function requireObject(value: unknown, field: string): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new PriceSourceError(`${field} is missing`)
  return value as JsonObject
}

export function requireList(value: unknown, field: string, maxEntries = 2000): unknown[] {
  if (!Array.isArray(value)) throw new PriceSourceError(`${field} is missing`)
  if (value.length > maxEntries) throw new PriceSourceError(`${field} has more than ${maxEntries} entries`)
  return value
}

export function requireText(value: unknown, field: string): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > 500)
    throw new PriceSourceError(`${field} is missing`)
  return value
}

export function requireBoolean(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') throw new PriceSourceError(`${field} is missing`)
  return value
}

/** A finite number, given as a number or as decimal text. */
export function requireNumber(value: unknown, field: string): number {
  const parsed = typeof value === 'string' && /^-?\d{1,40}(\.\d{1,40})?$/.test(value) ? Number(value) : value
  if (typeof parsed !== 'number' || !Number.isFinite(parsed)) throw new PriceSourceError(`${field} is not a number`)
  return parsed
}

export function requirePrice(value: unknown, field: string): number {
  const price = requireNumber(value, field)
  if (price <= 0) throw new PriceSourceError(`${field} is ${price}, which is not a price`)
  return price
}

export function requireInteger(value: unknown, field: string): number {
  const integer = requireNumber(value, field)
  if (!Number.isSafeInteger(integer)) throw new PriceSourceError(`${field} is not a whole number`)
  return integer
}

/** How far a source's clock may be ahead of ours. */
const MAX_CLOCK_SKEW_MS = 60_000
const EARLIEST_MS = Date.UTC(2015, 0, 1)

/** A number is a time in seconds; a text is an ISO 8601 time. */
const toMilliseconds = (value: unknown): number =>
  typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN

/** A time in the past. A timestamp in the future would keep a dead feed fresh until that time. */
export function requirePastTime(value: unknown, field: string, fetchedAt: Date): Date {
  const ms = toMilliseconds(value)
  if (!Number.isFinite(ms) || ms < EARLIEST_MS) throw new PriceSourceError(`${field} is not a time`)
  if (ms > fetchedAt.getTime() + MAX_CLOCK_SKEW_MS)
    throw new PriceSourceError(`${field} is ${new Date(ms).toISOString()}, in the future`)
  return new Date(ms)
}

/** A time that may be in the future, such as that of an announced change. */
export function requireTime(value: unknown, field: string): Date {
  const ms = toMilliseconds(value)
  if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) throw new PriceSourceError(`${field} is not a time`)
  return new Date(ms)
}

export const unique = <T>(values: readonly T[]): T[] => [...new Set(values)]

export function chunks<T>(values: readonly T[], size: number): T[][] {
  const result: T[][] = []
  for (let start = 0; start < values.length; start += size) result.push(values.slice(start, start + size))
  return result
}

/** Parses each row on its own, so that an invalid row does not reject the others. */
export function parseRows<Row extends Pick<RejectedEntry, 'asset' | 'underlying'>>(
  rows: readonly Row[],
  parse: (row: Row) => Observation[],
): Required<Pick<ParsedResponse, 'observations' | 'rejected'>> {
  const observations: Observation[] = []
  const rejected: RejectedEntry[] = []
  for (const row of rows)
    try {
      observations.push(...parse(row))
    } catch (error) {
      if (!(error instanceof PriceSourceError)) throw error
      rejected.push({ asset: row.asset, underlying: row.underlying, reason: error.message })
    }
  if (observations.length === 0 && rejected[0]) throw new PriceSourceError(rejected[0].reason)
  return { observations, rejected }
}
