import { lastClosedSession, lastSession, marketState } from './calendar.ts'
import { BPS, roundTo } from './price-math.ts'
import type { CoveredWrapper } from './price-source.ts'
import { computeBasis, PRICE_DECIMALS, type Reading, USD_DECIMALS } from './quote.ts'
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

/** A share's illustrative price: three waves of different periods around a fixed level. */
export function previewSharePrice(underlying: string, level: number, at: Date): number {
  const t = at.getTime()
  const wave =
    0.03 * noise(`${underlying}/day`, t / DAY_MS) +
    0.006 * noise(`${underlying}/hour`, t / HOUR_MS) +
    0.0008 * noise(`${underlying}/ripple`, t / (5 * MINUTE_MS))
  return roundTo(level * (1 + wave), PRICE_DECIMALS)
}

/** `reasons` explain why configured live sources cannot be used; a reading with reasons is not scored. */
export function buildPreviewReading(
  wrapper: CoveredWrapper,
  bandBps: number,
  at: Date,
  reasons: readonly string[] = [],
): Reading {
  const intervalStart = previewIntervalStart(at)
  const state = marketState(intervalStart)
  const pricedAt = state === 'open' ? intervalStart : lastClosedSession(intervalStart).close
  const referencePrice = previewSharePrice(wrapper.underlying, wrapper.previewPrice, pricedAt)
  const wrapperPrice = roundTo(
    referencePrice * (1 + previewGap(wrapper, intervalStart, state === 'open')),
    PRICE_DECIMALS,
  )
  const basis = computeBasis(wrapperPrice, referencePrice)
  const sizeUsd = 60_000 + 1_500_000 * hashToUnit(`${wrapper.asset}/size`)
  const nearUsd = roundTo(sizeUsd * Math.max(0, 1 - Math.abs(basis.basis_bps) / (2 * bandBps)), USD_DECIMALS)
  const floatLocked = roundTo(0.05 + 0.5 * hashToUnit(`${wrapper.asset}/locked`), 6)
  const lastMintAt = lastSession(intervalStart).open
  const window = scoreWindow(
    {
      basisBps: basis.basis_bps,
      bandBps,
      feesBps: 30,
      confBps: 5,
      confidence: 'low',
      distanceUsd: (sizeUsd * Math.abs(basis.basis_bps)) / bandBps,
      nearReferenceUsd: nearUsd,
      issuanceUsd: 0,
      creationOpen: state === 'open',
      openMinutes: state === 'open' ? (intervalStart.getTime() - lastMintAt.getTime()) / MINUTE_MS : 0,
      floatLocked,
      momentum: 0,
    },
    false,
  )
  return {
    window: reasons.length > 0 ? INSUFFICIENT_DATA : window,
    floatLocked,
    meme: null,
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
      borrow: { available: false, rate_apr: null, source: null },
      underlying_state: state,
      primary_market: {
        creation: state === 'open' ? 'open' : 'closed',
        last_mint_at: lastMintAt.toISOString(),
        last_mint_block: null,
        last_mint_size: Math.round(10 + 990 * hashToUnit(`${wrapper.asset}/mint/${lastMintAt.toISOString()}`)),
      },
      observations: [
        'This is an illustrative preview reading, not a market.',
        ...(reasons.length > 0 ? reasons : NO_SOURCE_REASON),
      ],
      source: 'preview',
      preview: true,
    },
  }
}

const NO_SOURCE_REASON = ['No live source is configured for this wrapper.']

/** The illustrative gap between wrapper and reference, wider while the reference does not move. */
function previewGap(wrapper: CoveredWrapper, at: Date, open: boolean): number {
  const t = at.getTime()
  const amplitude = (0.5 + 2 * hashToUnit(`${wrapper.asset}/reach`)) * (open ? 1 : 3)
  const bps =
    35 * noise(`${wrapper.asset}/gap`, t / (6 * HOUR_MS)) + 12 * noise(`${wrapper.asset}/jitter`, t / (20 * MINUTE_MS))
  return (amplitude * bps) / BPS
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
