import { lastClosedSession, lastSession, marketState } from './calendar.ts'
import { BPS, MINUTE_MS, roundTo } from './numbers.ts'
import type { Covered } from './price-source.ts'
import { basisOf, PRICE_DECIMALS, type Reading, USD_DECIMALS } from './quote.ts'
import { insufficient, scoreWindow } from './window-score.ts'

/**
 * Illustrative readings for wrappers that no live source measures. They are a function of the clock alone: the same
 * instant gives the same reading on every machine, and nothing in them can be mistaken for a market, since each says
 * `preview` in two places.
 */
export const PREVIEW_EVERY_MS = 15_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** The start of the span of time that shares one preview reading. */
export const previewMoment = (at: Date) => new Date(Math.floor(at.getTime() / PREVIEW_EVERY_MS) * PREVIEW_EVERY_MS)

/** A share's illustrative price: a slow wave, a faster one and a ripple around a fixed level. */
export function previewSharePrice(underlying: string, level: number, at: Date): number {
  const t = at.getTime()
  const wave =
    0.03 * noise(`${underlying}/day`, t / DAY_MS) +
    0.006 * noise(`${underlying}/hour`, t / HOUR_MS) +
    0.0008 * noise(`${underlying}/ripple`, t / (5 * MINUTE_MS))
  return roundTo(level * (1 + wave), PRICE_DECIMALS)
}

/**
 * `why` holds the reasons when live sources are configured and cannot be believed: then the row is not scored either.
 */
export function previewReading(covered: Covered, bandBps: number, at: Date, why: readonly string[] = []): Reading {
  const moment = previewMoment(at)
  const state = marketState(moment)
  const priced = state === 'open' ? moment : lastClosedSession(moment).close
  const reference = previewSharePrice(covered.underlying, covered.previewPrice, priced)
  const wrapper = roundTo(reference * (1 + gap(covered, moment, state === 'open')), PRICE_DECIMALS)
  const basis = basisOf(wrapper, reference)
  const size = 60_000 + 1_500_000 * unit(`${covered.asset}/size`)
  const nearUsd = roundTo(size * Math.max(0, 1 - Math.abs(basis.basis_bps) / (2 * bandBps)), USD_DECIMALS)
  const floatLocked = roundTo(0.05 + 0.5 * unit(`${covered.asset}/locked`), 6)
  const minted = lastSession(moment).open
  const window = scoreWindow(
    {
      basisBps: basis.basis_bps,
      bandBps,
      feesBps: 30,
      confBps: 5,
      confidence: 'low',
      distanceUsd: (size * Math.abs(basis.basis_bps)) / bandBps,
      nearReferenceUsd: nearUsd,
      issuanceUsd: 0,
      creationOpen: state === 'open',
      openMinutes: state === 'open' ? (moment.getTime() - minted.getTime()) / MINUTE_MS : 0,
      floatLocked,
      momentum: 0,
    },
    false,
  )
  return {
    window: why.length > 0 ? insufficient : window,
    floatLocked,
    meme: null,
    backing: { ratio: 1, ratioBasis: 'illustration', reportUrl: null, reportAsOf: null },
    records: [],
    quote: {
      symbol: covered.symbol,
      underlying: covered.underlying,
      chain: covered.chain,
      as_of: moment.toISOString(),
      wrapper_price: wrapper,
      reference_price: reference,
      reference_source: 'preview',
      ...basis,
      effective_float: { near_reference_usd: nearUsd, band_bps: bandBps, confidence: 'low' },
      borrow: { available: false, rate_apr: null, source: null },
      underlying_state: state,
      primary_market: {
        creation: state === 'open' ? 'open' : 'closed',
        last_mint_at: minted.toISOString(),
        last_mint_block: null,
        last_mint_size: Math.round(10 + 990 * unit(`${covered.asset}/mint/${minted.toISOString()}`)),
      },
      observations: [
        'This is an illustrative preview reading, not a market.',
        ...(why.length > 0 ? why : NOT_CONFIGURED),
      ],
      source: 'preview',
      preview: true,
    },
  }
}

const NOT_CONFIGURED = ['No live source is configured for this wrapper.']

/** Wrappers wander further from a reference that stands still. */
function gap(covered: Covered, at: Date, open: boolean): number {
  const t = at.getTime()
  const reach = (0.5 + 2 * unit(`${covered.asset}/reach`)) * (open ? 1 : 3)
  const bps =
    35 * noise(`${covered.asset}/gap`, t / (6 * HOUR_MS)) + 12 * noise(`${covered.asset}/jitter`, t / (20 * MINUTE_MS))
  return (reach * bps) / BPS
}

/** Smooth noise between −1 and 1 out of integer hashes and a polynomial, which every machine computes alike. */
function noise(seed: string, x: number): number {
  const cell = Math.floor(x)
  const part = x - cell
  const ease = part * part * (3 - 2 * part)
  const left = signed(`${seed}/${cell}`)
  return left + (signed(`${seed}/${cell + 1}`) - left) * ease
}

const signed = (seed: string) => 2 * unit(seed) - 1

/** FNV-1a over the text, mixed once more so that neighbouring seeds do not resemble each other: 0 to 1. */
function unit(seed: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < seed.length; index += 1) hash = Math.imul(hash ^ seed.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
  return ((hash ^ (hash >>> 15)) >>> 0) / 0xffff_ffff
}
