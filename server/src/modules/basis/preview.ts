import { lastClosedSession, lastSession, marketState } from './calendar.ts'
import { BPS, roundTo } from './price-math.ts'
import type { CoveredWrapper } from './price-source.ts'
import { computeBasis, NO_BORROW_REASON, NO_BORROW_SOURCE, type Reading, USD_DECIMALS } from './quote.ts'
import { MINUTE_MS } from './staleness.ts'
import { INSUFFICIENT_DATA, scoreWindow } from './window-score.ts'

/**
 * Illustrative readings for wrappers that no live source measures. They are a function of the clock alone: the same
 * instant gives the same reading on every machine. Each is marked as a preview in two fields (`source`, `preview`), so
 * that it cannot be mistaken for a market price.
 */
export const PREVIEW_INTERVAL_MS = MINUTE_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The start of the interval that shares one preview reading. */
export const previewIntervalStart = (at: Date) =>
  new Date(Math.floor(at.getTime() / PREVIEW_INTERVAL_MS) * PREVIEW_INTERVAL_MS)

/** Shares are priced in cents. */
const SHARE_DECIMALS = 2
/** What the paper broker rounds tokens to. */
const TOKEN_DECIMALS = 4

export type PreviewShare = { price: number; pricedAt: Date; state: ReturnType<typeof marketState> }

/**
 * A share in the illustrative market: three waves of different periods around a fixed level. While the exchange is closed
 * it keeps the price of the last close. The paper broker trades at this price, so that both show one market.
 */
export function previewShare(underlying: string, level: number, at: Date): PreviewShare {
  const intervalStart = previewIntervalStart(at)
  const state = marketState(intervalStart)
  const pricedAt = state === 'open' ? intervalStart : lastClosedSession(intervalStart).close
  const t = pricedAt.getTime()
  const wave =
    0.03 * noise(`${underlying}/day`, t / DAY_MS) +
    0.006 * noise(`${underlying}/hour`, t / HOUR_MS) +
    0.0008 * noise(`${underlying}/ripple`, t / (5 * MINUTE_MS))
  return { price: roundTo(level * (1 + wave), SHARE_DECIMALS), pricedAt, state }
}

/**
 * The gap between a wrapper and its reference over a day, in basis points by the part of the day that has passed. With
 * what happens in the last third, a wrapper goes through every window status once a day; wrappers do not begin together.
 */
const GAP_KNOTS = [
  [0, 8],
  [0.2, 44],
  [0.22, 66],
  [0.35, 118],
  [0.38, 140],
  [0.5, 180],
  [0.53, 305],
  [0.65, 325],
  [0.8, 120],
  [0.86, 62],
  [0.92, 40],
  [1, 8],
] as const
const GAP_OPENS = 0.2
const SUPPLY_RESPONDS = 0.65
const REFERENCE_SUSPENDED = 0.8
const INPUT_MISSING = 0.86
const ALIGNED_AGAIN = 0.92

type PreviewScene = { gapBps: number; partOfDay: number }

function previewScene({ asset }: CoveredWrapper, at: Date): PreviewScene {
  const t = at.getTime() + DAY_MS * hashToUnit(`${asset}/begin`)
  const day = Math.floor(t / DAY_MS)
  const partOfDay = t / DAY_MS - day
  const next = GAP_KNOTS.findIndex(([knot]) => knot > partOfDay)
  const [[from, fromBps], [to, toBps]] = [GAP_KNOTS[next - 1]!, GAP_KNOTS[next]!]
  const width = fromBps + ((toBps - fromBps) * (partOfDay - from)) / (to - from)
  const jitter = 4 * noise(`${asset}/jitter`, at.getTime() / (20 * MINUTE_MS))
  const sign = hashToUnit(`${asset}/sign/${day}`) < 0.5 ? -1 : 1
  return { gapBps: sign * (width + jitter), partOfDay }
}

/** `reasons` explain why configured live sources cannot be used; a reading with reasons is not scored. */
export function buildPreviewReading(
  wrapper: CoveredWrapper,
  bandBps: number,
  at: Date,
  reasons: readonly string[] = [],
): Reading {
  const intervalStart = previewIntervalStart(at)
  const { price: referencePrice, state } = previewShare(wrapper.underlying, wrapper.previewPrice, at)
  const { gapBps, partOfDay } = previewScene(wrapper, intervalStart)
  const wrapperPrice = roundTo(referencePrice * (1 + gapBps / BPS), TOKEN_DECIMALS)
  const basis = computeBasis(wrapperPrice, referencePrice)
  const sizeUsd = 60_000 + 1_500_000 * hashToUnit(`${wrapper.asset}/size`)
  const nearUsd = roundTo(sizeUsd * Math.max(0, 1 - Math.abs(basis.basis_bps) / (2 * bandBps)), USD_DECIMALS)
  const distanceUsd = (sizeUsd * Math.abs(basis.basis_bps)) / bandBps
  const floatLocked = roundTo(0.05 + 0.5 * hashToUnit(`${wrapper.asset}/locked`), 6)
  const isResponding = partOfDay >= SUPPLY_RESPONDS && partOfDay < REFERENCE_SUSPENDED
  const isSuspended = partOfDay >= REFERENCE_SUSPENDED && partOfDay < INPUT_MISSING
  const isMissing = partOfDay >= INPUT_MISSING && partOfDay < ALIGNED_AGAIN
  const issuanceUsd = isResponding ? distanceUsd * (0.6 + partOfDay - SUPPLY_RESPONDS) : 0
  const session = lastSession(intervalStart)
  const gapMinutes = Math.max(0, (partOfDay - GAP_OPENS) * DAY_MS) / MINUTE_MS
  const openMinutes = Math.min(gapMinutes, (intervalStart.getTime() - session.open.getTime()) / MINUTE_MS)
  const meme = wrapper.meme && {
    symbol: wrapper.meme.symbol,
    change24h: roundTo(0.2 + 0.6 * noise(`${wrapper.meme.symbol}/return`, intervalStart.getTime() / (6 * HOUR_MS)), 6),
  }
  const lastMint = isResponding
    ? respondingMint(intervalStart, session, (Math.sign(basis.basis_bps) * issuanceUsd) / referencePrice)
    : { at: session.open, size: 10 + 990 * hashToUnit(`${wrapper.asset}/mint/${session.open.toISOString()}`) }
  const window = scoreWindow(
    {
      basisBps: basis.basis_bps,
      bandBps,
      feesBps: 30,
      confBps: 5,
      confidence: SCORED_AS,
      distanceUsd,
      nearReferenceUsd: nearUsd,
      issuanceUsd,
      creationOpen: state === 'open',
      openMinutes: state === 'open' ? openMinutes : 0,
      floatLocked,
      momentum: meme?.change24h ?? 0,
    },
    isSuspended,
  )
  return {
    window: reasons.length > 0 || isMissing ? INSUFFICIENT_DATA : window,
    floatLocked,
    meme,
    backing: { ratio: 1, ratioBasis: 'illustration', reportUrl: null, reportAsOf: null },
    records: [],
    quote: {
      symbol: wrapper.symbol,
      underlying: wrapper.underlying,
      chain: wrapper.chain,
      as_of: intervalStart.toISOString(),
      wrapper_price: wrapperPrice,
      reference_price: referencePrice,
      reference_source: 'preview',
      ...basis,
      effective_float: { near_reference_usd: nearUsd, band_bps: bandBps, confidence: 'low' },
      borrow: NO_BORROW_SOURCE,
      underlying_state: state,
      primary_market: {
        creation: state === 'open' ? 'open' : 'closed',
        last_mint_at: lastMint.at.toISOString(),
        last_mint_block: null,
        last_mint_size: Math.round(lastMint.size),
      },
      observations: [
        'This is an illustrative preview reading, not a market.',
        ...(reasons.length > 0 ? reasons : NO_SOURCE_REASON),
        NO_BORROW_REASON,
        ...(reasons.length > 0 ? [] : [SCORED_AS_REASON]),
        ...(isSuspended ? ['Illustrated: shares per token changed and the underlying has not printed since.'] : []),
        ...(isMissing ? ['Illustrated: a mandatory input is missing, so the window is not scored.'] : []),
      ],
      source: 'preview',
      preview: true,
    },
  }
}

const NO_SOURCE_REASON = ['No live source is configured for this wrapper.']

/** With the low confidence of a preview no score would reach `window_wide`. */
const SCORED_AS = 'high'
const SCORED_AS_REASON =
  'The window is scored as a measurement of high confidence would be, so that every status can be seen; the confidence of a preview is low.'

/** Supply that answers the gap: a quarter of an hour ago, or shortly before the close of the last session. */
function respondingMint(at: Date, { open, close }: { open: Date; close: Date }, size: number) {
  const time = Math.max(open.getTime(), Math.min(at.getTime(), close.getTime()) - 15 * MINUTE_MS)
  return { at: new Date(time), size }
}

/** Smooth noise between −1 and 1 from integer hashes and a polynomial, which gives the same value on every machine. */
function noise(seed: string, x: number): number {
  const cell = Math.floor(x)
  const offset = x - cell
  const ease = offset * offset * (3 - 2 * offset)
  const left = hashToSigned(`${seed}/${cell}`)
  return left + (hashToSigned(`${seed}/${cell + 1}`) - left) * ease
}

const hashToSigned = (seed: string) => 2 * hashToUnit(seed) - 1

/** A number from 0 to 1: FNV-1a over the text, mixed once more so that similar seeds give unrelated values. */
function hashToUnit(seed: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < seed.length; index += 1) hash = Math.imul(hash ^ seed.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
  return ((hash ^ (hash >>> 15)) >>> 0) / 0xffff_ffff
}
