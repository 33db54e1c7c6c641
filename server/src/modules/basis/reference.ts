import { lastClosedSession, lastSession } from './calendar.ts'
import { isMultiplierUncertain, type Multiplier, multiplierAt } from './multiplier.ts'
import { BPS, isPrice, median } from './price-math.ts'
import { isFresh, MINUTE_MS, STALE_MS } from './staleness.ts'
import type { UnderlyingState } from './underlying-state.ts'

/** One source's price of the wrapper, or of a share of its underlying. */
export type ReferencePrint = {
  source: string
  price: number
  conf: number
  unit: 'share' | 'token'
  publishedAt: Date
  /** When this source's price last changed. An unchanged price under new timestamps means that the feed is frozen. */
  changedAt: Date
  fetchedAt: Date
}

export type Reference = {
  price: number
  /** The names of the sources, or `LAST_CLOSE_LABEL` when the last regular close is carried. */
  label: string
  sources: string[]
  /** True when the underlying does not trade now, so the price is from an earlier session. */
  carried: boolean
  confBps: number
  /** Distance between the lowest and the highest source that was used. */
  spreadBps: number
  newestAt: Date
  oldestAt: Date
  /** True when every print is older than the last change of the multiplier. */
  suspended: boolean
}

export type ReferenceResult = { reference?: Reference; rejections: { source: string; reason: string }[] }

export const LAST_CLOSE_LABEL = 'last_regular_close×multiplier'
const MAX_DEVIATION = 0.0025
const CLOCK_SKEW_MS = 30_000
/** The closing auction is printed shortly after the close. */
const CLOSING_AUCTION_MS = MINUTE_MS
/** A print with a larger relative error is not usable. */
const MAX_RELATIVE_CONF = 0.05

/** A print converted to the price of one token. */
type TokenPrint = { print: ReferencePrint; value: number; conf: number }

/** The median of the usable sources, without those that are too far from it. */
export function deriveReference(
  prints: readonly ReferencePrint[],
  multiplier: Multiplier | undefined,
  state: UnderlyingState,
  at: Date,
): ReferenceResult {
  const rejections: ReferenceResult['rejections'] = []
  const usablePrints: TokenPrint[] = []
  // Prints arrive in any order; the reading must not depend on it.
  for (const print of [...prints].sort((a, b) => (a.source < b.source ? -1 : a.source > b.source ? 1 : 0))) {
    const reason =
      rejectionReason(print, state, at) ?? (print.unit === 'share' ? conversionRejection(print, multiplier) : undefined)
    if (reason) rejections.push({ source: print.source, reason })
    else usablePrints.push(toTokenPrint(print, multiplier))
  }
  if (usablePrints.length === 0) return { rejections }

  const centre = median(usablePrints.map(({ value }) => value))
  const isNearCentre = ({ value, conf }: TokenPrint) =>
    Math.abs(value / centre - 1) <= Math.max(MAX_DEVIATION, 3 * conf)
  const selectedPrints = usablePrints.filter(isNearCentre)
  for (const tokenPrint of usablePrints)
    if (!isNearCentre(tokenPrint))
      rejections.push({ source: tokenPrint.print.source, reason: 'it is too far from the median of the sources' })
  if (selectedPrints.length === 0) return { rejections }

  const values = selectedPrints.map(({ value }) => value)
  const times = selectedPrints.map(({ print }) => print.publishedAt.getTime())
  const price = median(values)
  const carried = state !== 'open'
  return {
    rejections,
    reference: {
      price,
      sources: selectedPrints.map(({ print }) => print.source),
      label:
        carried && selectedPrints.every(isLastClose(at)) ? LAST_CLOSE_LABEL : selectedPrints.map(sourceLabel).join('+'),
      carried,
      confBps: Math.max(...selectedPrints.map(({ conf }) => conf)) * BPS,
      spreadBps: ((Math.max(...values) - Math.min(...values)) / price) * BPS,
      newestAt: new Date(Math.max(...times)),
      oldestAt: new Date(Math.min(...times)),
      suspended: Boolean(multiplier?.changedAt && Math.max(...times) < multiplier.changedAt.getTime()),
    },
  }
}

/** Why a print must not be used now, or undefined when it may. */
function rejectionReason(print: ReferencePrint, state: UnderlyingState, at: Date): string | undefined {
  if (!isPrice(print.price)) return `its price ${print.price} is not a price`
  if (!Number.isFinite(print.conf) || print.conf < 0 || print.conf / print.price > MAX_RELATIVE_CONF)
    return 'its own error is too wide'
  const publishedMs = print.publishedAt.getTime()
  if (Number.isNaN(publishedMs)) return 'it does not say when it was published'
  if (publishedMs > at.getTime() + CLOCK_SKEW_MS) return `it is dated ${print.publishedAt.toISOString()}, in the future`
  if (!isFresh(print, at)) return `it has not answered since ${print.fetchedAt.toISOString()}`
  if (state === 'open') return openSessionRejection(print, at)
  const since = state === 'halted' ? lastSession(at).open : new Date(lastClosedSession(at).close.getTime() - STALE_MS)
  if (print.publishedAt < since) return `it was published ${print.publishedAt.toISOString()}, before the last close`
  return undefined
}

function conversionRejection({ publishedAt }: ReferencePrint, multiplier: Multiplier | undefined): string | undefined {
  if (!multiplier) return 'no multiplier is known'
  if (isMultiplierUncertain(multiplier, publishedAt))
    return `it was published ${publishedAt.toISOString()}, around an undated change of shares per token`
  return undefined
}

function openSessionRejection(print: ReferencePrint, at: Date): string | undefined {
  if (at.getTime() - print.publishedAt.getTime() > STALE_MS)
    return `it was published ${print.publishedAt.toISOString()}, more than 15 minutes ago`
  const movedAt = Math.max(print.changedAt.getTime(), lastSession(at).open.getTime())
  if (at.getTime() - movedAt > STALE_MS)
    return `it has said ${print.price} since ${print.changedAt.toISOString()}: the feed is frozen`
  return undefined
}

const toTokenPrint = (print: ReferencePrint, multiplier: Multiplier | undefined): TokenPrint => ({
  print,
  conf: print.conf / print.price,
  value: print.unit === 'token' ? print.price : print.price * multiplierAt(multiplier!, print.publishedAt),
})

const isLastClose = (at: Date) => {
  const latest = lastClosedSession(at).close.getTime() + CLOSING_AUCTION_MS
  return ({ print }: TokenPrint) => Math.min(print.publishedAt.getTime(), print.changedAt.getTime()) <= latest
}

const sourceLabel = ({ print }: TokenPrint) => (print.unit === 'token' ? print.source : `${print.source}×multiplier`)
