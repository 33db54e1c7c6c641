import { lastClosedSession, lastSession } from './calendar.ts'
import { isUnsure, type Multiplier, multiplierAt } from './multiplier.ts'
import { BPS, isPrice, MINUTE_MS, median, STALE_MS } from './numbers.ts'

/** What one source says the wrapper, or a share of its underlying, is worth. */
export type ReferencePrint = {
  source: string
  price: number
  conf: number
  unit: 'share' | 'token'
  publishedAt: Date
  /** When this source last said something else: a price that stands still under moving timestamps is a frozen one. */
  changedAt: Date
  fetchedAt: Date
}

export type UnderlyingState = 'open' | 'closed' | 'halted' | 'holiday'

export type Reference = {
  price: number
  /** Names the sources, or says that the last regular close is carried. */
  label: string
  sources: string[]
  /** No market stands behind it at this moment. */
  carried: boolean
  confBps: number
  /** Distance between the lowest and the highest source kept. */
  spreadBps: number
  newestAt: Date
  oldestAt: Date
  /** No print is younger than the last change of the multiplier. */
  suspended: boolean
}

export type ReferenceResult = { reference?: Reference; refusals: { source: string; reason: string }[] }

export const LAST_CLOSE_LABEL = 'last_regular_close×multiplier'
const OUTLIER = 0.0025
const CLOCK_SKEW_MS = 30_000
/** The closing auction prints a little after the bell. */
const AFTER_BELL_MS = MINUTE_MS
/** A source that claims less precision than this says nothing. */
const WIDEST_CONF = 0.05

type Valued = { print: ReferencePrint; value: number; conf: number }

/** The median of the sources that can be believed now, without those that stand apart from it. */
export function deriveReference(
  prints: readonly ReferencePrint[],
  multiplier: Multiplier | undefined,
  state: UnderlyingState,
  at: Date,
): ReferenceResult {
  const refusals: ReferenceResult['refusals'] = []
  const valued: Valued[] = []
  // Answers arrive in any order; the reading must not depend on it.
  for (const print of [...prints].sort((a, b) => (a.source < b.source ? -1 : a.source > b.source ? 1 : 0))) {
    const reason = whyNot(print, state, at) ?? (print.unit === 'share' ? whyNotInTokens(print, multiplier) : undefined)
    if (reason) refusals.push({ source: print.source, reason })
    else valued.push(inTokens(print, multiplier))
  }
  if (valued.length === 0) return { refusals }

  const centre = median(valued.map((each) => each.value))
  const near = (each: Valued) => Math.abs(each.value / centre - 1) <= Math.max(OUTLIER, 3 * each.conf)
  const kept = valued.filter(near)
  for (const { print } of valued.filter((each) => !near(each)))
    refusals.push({ source: print.source, reason: 'stands apart from the median of the sources' })
  if (kept.length === 0) return { refusals }

  const values = kept.map((each) => each.value)
  const times = kept.map((each) => each.print.publishedAt.getTime())
  const price = median(values)
  const carried = state !== 'open'
  return {
    refusals,
    reference: {
      price,
      sources: kept.map((each) => each.print.source),
      label: carried && kept.every(isLastClose(at)) ? LAST_CLOSE_LABEL : kept.map(describe).join('+'),
      carried,
      confBps: Math.max(...kept.map((each) => each.conf)) * BPS,
      spreadBps: ((Math.max(...values) - Math.min(...values)) / price) * BPS,
      newestAt: new Date(Math.max(...times)),
      oldestAt: new Date(Math.min(...times)),
      suspended: Boolean(multiplier?.changedAt && Math.max(...times) < multiplier.changedAt.getTime()),
    },
  }
}

/** Why a print must not be used at this moment, or undefined when it may. */
function whyNot(print: ReferencePrint, state: UnderlyingState, at: Date): string | undefined {
  if (!isPrice(print.price)) return `its price ${print.price} is not a price`
  if (!Number.isFinite(print.conf) || print.conf < 0 || print.conf / print.price > WIDEST_CONF)
    return 'its own error is too wide'
  const published = print.publishedAt.getTime()
  if (Number.isNaN(published)) return 'it does not say when it was published'
  if (published > at.getTime() + CLOCK_SKEW_MS) return `it is dated ${print.publishedAt.toISOString()}, in the future`
  if (at.getTime() - print.fetchedAt.getTime() > STALE_MS)
    return `it has not answered since ${print.fetchedAt.toISOString()}`
  if (state === 'open') return whyNotWhileOpen(print, at)
  const since = state === 'halted' ? lastSession(at).open : new Date(lastClosedSession(at).close.getTime() - STALE_MS)
  if (print.publishedAt < since) return `it was published ${print.publishedAt.toISOString()}, before the last close`
  return undefined
}

function whyNotInTokens({ publishedAt }: ReferencePrint, multiplier: Multiplier | undefined): string | undefined {
  if (!multiplier) return 'no multiplier is known'
  if (isUnsure(multiplier, publishedAt))
    return `shares per token changed around ${publishedAt.toISOString()}, when it was published, and nobody said when`
  return undefined
}

function whyNotWhileOpen(print: ReferencePrint, at: Date): string | undefined {
  if (at.getTime() - print.publishedAt.getTime() > STALE_MS)
    return `it was published ${print.publishedAt.toISOString()}, more than 15 minutes ago`
  const movedAt = Math.max(print.changedAt.getTime(), lastSession(at).open.getTime())
  if (at.getTime() - movedAt > STALE_MS)
    return `it has said ${print.price} since ${print.changedAt.toISOString()}: the feed is frozen`
  return undefined
}

const inTokens = (print: ReferencePrint, multiplier: Multiplier | undefined): Valued => ({
  print,
  conf: print.conf / print.price,
  value: print.unit === 'token' ? print.price : print.price * multiplierAt(multiplier!, print.publishedAt),
})

const isLastClose = (at: Date) => {
  const latest = lastClosedSession(at).close.getTime() + AFTER_BELL_MS
  return ({ print }: Valued) => Math.min(print.publishedAt.getTime(), print.changedAt.getTime()) <= latest
}

const describe = ({ print }: Valued) => (print.unit === 'token' ? print.source : `${print.source}×multiplier`)
