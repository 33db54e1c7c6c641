import type { HistoryRow } from './basis.store.ts'
import { buildPreviewReading } from './preview.ts'
import type { CoveredWrapper } from './price-source.ts'
import { MINUTE_MS } from './staleness.ts'

export const INTERVAL_MS = {
  '1m': MINUTE_MS,
  '5m': 5 * MINUTE_MS,
  '15m': 15 * MINUTE_MS,
  '1h': 60 * MINUTE_MS,
  '1d': 24 * 60 * MINUTE_MS,
} as const

export type Interval = keyof typeof INTERVAL_MS

export type HistoryQuery = { chain?: string; from?: string; to?: string; interval?: Interval }

export type HistoryPoint = {
  as_of: string
  wrapper_price: number
  reference_price: number
  basis_bps: number
  near_reference_usd: number
  underlying_state: string
  window_score: number
  window_status: string
}

export type History = {
  symbol: string
  chain: string
  interval: Interval
  from: string
  to: string
  points: HistoryPoint[]
  source: 'live' | 'preview'
  preview: boolean
}

export type HistoryPlan = { from: Date; to: Date; interval: Interval; stepMs: number; maxPoints: number }

export const MAX_POINTS = 1_500
const DEFAULT_POINTS = 288
/** The calendar starts here, long before the first wrapper existed. */
const HISTORY_START = new Date('1990-01-01T00:00:00Z')

/** The range and step of a query, or its problem. The end is cut at the present; too many points are a problem. */
export function planHistory(query: HistoryQuery, now: Date): HistoryPlan | { problem: string } {
  const interval = query.interval ?? '5m'
  const stepMs = INTERVAL_MS[interval]
  const requestedTo = query.to === undefined ? now : new Date(query.to)
  const to = requestedTo > now ? now : requestedTo
  const from = query.from === undefined ? new Date(to.getTime() - DEFAULT_POINTS * stepMs) : new Date(query.from)
  if (Number.isNaN(from.getTime()) || Number.isNaN(to.getTime())) return { problem: 'from and to must be times.' }
  if (from < HISTORY_START) return { problem: `History begins ${HISTORY_START.toISOString()}.` }
  if (from >= to) return { problem: 'from must be before to, and in the past.' }
  const points = Math.ceil((to.getTime() - from.getTime()) / stepMs)
  if (points > MAX_POINTS)
    return {
      problem: `This range has ${points} points at ${interval}; ${MAX_POINTS} are allowed. Shorten it or use a longer interval.`,
    }
  return { from, to, interval, stepMs, maxPoints: points + 1 }
}

export const toHistoryPoints = (rows: readonly HistoryRow[]): HistoryPoint[] =>
  rows.map((row) => ({ ...row, as_of: row.as_of.toISOString() }))

/** Previews are a function of the clock, so past points can be computed like the present one. */
export function buildPreviewPoints(
  wrapper: CoveredWrapper,
  bandBps: number,
  { from, to, stepMs }: HistoryPlan,
): HistoryPoint[] {
  const points: HistoryPoint[] = []
  for (let ms = Math.ceil(from.getTime() / stepMs) * stepMs; ms < to.getTime(); ms += stepMs) {
    const { quote, window } = buildPreviewReading(wrapper, bandBps, new Date(ms))
    points.push({
      as_of: quote.as_of,
      wrapper_price: quote.wrapper_price,
      reference_price: quote.reference_price,
      basis_bps: quote.basis_bps,
      near_reference_usd: quote.effective_float.near_reference_usd,
      underlying_state: quote.underlying_state,
      window_score: window.score,
      window_status: window.status,
    })
  }
  return points
}
