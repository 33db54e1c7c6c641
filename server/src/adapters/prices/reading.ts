import {
  type Observation,
  type RefusedPart,
  type SourceAnswer,
  type SourceReading,
  SourceRefused,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'

/** What every source reads alike: a body is JSON of the expected shape, or it is refused in a sentence. */
export type Json = Record<string, unknown>

export function get(url: string, options: { headers?: Record<string, string>; memo?: Json } = {}): SourceRequest {
  return { method: 'GET', url, shownUrl: shown(url), headers: options.headers ?? {}, memo: options.memo ?? {} }
}

/** An address as it may be published: without user names, and without parameters that could be keys. */
export function shown(url: string): string {
  const parsed = new URL(url)
  parsed.username = ''
  parsed.password = ''
  for (const name of [...parsed.searchParams.keys()])
    if (/key|token|secret|auth|signature/i.test(name)) parsed.searchParams.delete(name)
  return parsed.toString()
}

export function readJson({ status, body }: SourceAnswer): unknown {
  if (status !== 200) throw new SourceRefused(`it answered with status ${status}`)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (cause) {
    throw new SourceRefused('its answer is cut short or is not JSON', { cause })
  }
}

export function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new SourceRefused(`${what} is missing`)
  return value as Json
}

export function list(value: unknown, what: string, most = 2000): unknown[] {
  if (!Array.isArray(value)) throw new SourceRefused(`${what} is missing`)
  if (value.length > most) throw new SourceRefused(`${what} has more than ${most} entries`)
  return value
}

export function text(value: unknown, what: string): string {
  if (typeof value !== 'string' || value.length === 0 || value.length > 500)
    throw new SourceRefused(`${what} is missing`)
  return value
}

export function boolean(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw new SourceRefused(`${what} is missing`)
  return value
}

/** A finite number, written as one or as decimal text. */
export function number(value: unknown, what: string): number {
  const read = typeof value === 'string' && /^-?\d{1,40}(\.\d{1,40})?$/.test(value) ? Number(value) : value
  if (typeof read !== 'number' || !Number.isFinite(read)) throw new SourceRefused(`${what} is not a number`)
  return read
}

export function price(value: unknown, what: string): number {
  const read = number(value, what)
  if (read <= 0) throw new SourceRefused(`${what} is ${read}, which is not a price`)
  return read
}

export function integer(value: unknown, what: string): number {
  const read = number(value, what)
  if (!Number.isSafeInteger(read)) throw new SourceRefused(`${what} is not a whole number`)
  return read
}

/** How far a source's clock may run ahead of ours. */
const AHEAD_MS = 60_000
const EARLIEST_MS = Date.UTC(2015, 0, 1)

/** A time in the past. A timestamp from the future would keep a dead feed looking fresh for as long as it lies ahead. */
export function pastTime(value: unknown, what: string, fetchedAt: Date): Date {
  const ms = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (!Number.isFinite(ms) || ms < EARLIEST_MS) throw new SourceRefused(`${what} is not a time`)
  if (ms > fetchedAt.getTime() + AHEAD_MS)
    throw new SourceRefused(`${what} is ${new Date(ms).toISOString()}, in the future`)
  return new Date(ms)
}

/** A time that may well lie ahead, such as that of an announced change. */
export function anyTime(value: unknown, what: string): Date {
  const ms = typeof value === 'number' ? value * 1000 : typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) throw new SourceRefused(`${what} is not a time`)
  return new Date(ms)
}

export const unique = <T>(values: readonly T[]): T[] => [...new Set(values)]

export function chunks<T>(values: readonly T[], size: number): T[][] {
  const parts: T[][] = []
  for (let start = 0; start < values.length; start += size) parts.push(values.slice(start, start + size))
  return parts
}

/** Reads an answer about many row by row: one that cannot be believed says nothing about its neighbours. */
export function readRows<Row extends Pick<RefusedPart, 'asset' | 'underlying'>>(
  rows: readonly Row[],
  read: (row: Row) => Observation[],
): Required<Pick<SourceReading, 'observations' | 'refused'>> {
  const observations: Observation[] = []
  const refused: RefusedPart[] = []
  for (const row of rows)
    try {
      observations.push(...read(row))
    } catch (error) {
      if (!(error instanceof SourceRefused)) throw error
      refused.push({ asset: row.asset, underlying: row.underlying, reason: error.message })
    }
  if (observations.length === 0 && refused[0]) throw new SourceRefused(refused[0].reason)
  return { observations, refused }
}
