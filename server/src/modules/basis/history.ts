import type { HistoryRow } from './basis.store.ts'
import { MINUTE_MS } from './numbers.ts'
import { previewReading } from './preview.ts'
import type { Covered } from './price-source.ts'

export const intervals = {
  '1m': MINUTE_MS,
  '5m': 5 * MINUTE_MS,
  '15m': 15 * MINUTE_MS,
  '1h': 60 * MINUTE_MS,
  '1d': 24 * 60 * MINUTE_MS,
} as const

export type Interval = keyof typeof intervals

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

export type HistoryPlan = { from: Date; to: Date; interval: Interval; stepMs: number; points: number }

export const MOST_POINTS = 1_500
const DEFAULT_POINTS = 288
/** The exchange's calendar is known from here on, and there were no wrappers before. */
const BEGINS = new Date('1990-01-01T00:00:00Z')

/** The range that is meant, or what is wrong with it. Too long for its interval it is refused; what lies ahead is left out. */
export function planHistory(query: HistoryQuery, now: Date): HistoryPlan | { problem: string } {
  const interval = query.interval ?? '5m'
  const stepMs = intervals[interval]
  const wanted = query.to === undefined ? now : new Date(query.to)
  const to = wanted > now ? now : wanted
  const from = query.from === undefined ? new Date(to.getTime() - DEFAULT_POINTS * stepMs) : new Date(query.from)
  if (Number.isNaN(from.getTime()) || Number.isNaN(to.getTime())) return { problem: 'from and to must be times.' }
  if (from < BEGINS) return { problem: `History begins ${BEGINS.toISOString()}.` }
  if (from >= to) return { problem: 'from must lie before to, and in the past.' }
  const points = Math.ceil((to.getTime() - from.getTime()) / stepMs)
  if (points > MOST_POINTS)
    return {
      problem: `This range has ${points} points at ${interval}; ${MOST_POINTS} are allowed. Shorten it or take a longer interval.`,
    }
  return { from, to, interval, stepMs, points: points + 1 }
}

export const livePoints = (rows: readonly HistoryRow[]): HistoryPoint[] =>
  rows.map((row) => ({ ...row, as_of: row.as_of.toISOString() }))

/** Previews are a function of the clock, so their past can be told as well as their present. */
export function previewPoints(covered: Covered, bandBps: number, { from, to, stepMs }: HistoryPlan): HistoryPoint[] {
  const points: HistoryPoint[] = []
  for (let ms = Math.ceil(from.getTime() / stepMs) * stepMs; ms < to.getTime(); ms += stepMs) {
    const { quote, window } = previewReading(covered, bandBps, new Date(ms))
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
