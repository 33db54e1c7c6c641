import { lastSession, marketState, nextOpen } from './calendar.ts'
import { rateConfidence, recentMean } from './confidence.ts'
import { distanceToReference, feeOf, nearReference, spotPrice, type Venue } from './depth.ts'
import type { Multiplier } from './multiplier.ts'
import { clamp, isPrice, MINUTE_MS, roundTo, STALE_MS } from './numbers.ts'
import type { Covered, FetchRecord, Kept } from './price-source.ts'
import { creationState, issuanceToward } from './primary-market.ts'
import { type Backing, basisOf, PRICE_DECIMALS, type Reading, USD_DECIMALS } from './quote.ts'
import { deriveReference, type Reference, type ReferencePrint, type UnderlyingState } from './reference.ts'
import { about, followGap, openMinutes, sample, type Track, takeIn } from './track.ts'
import { excessBps, scoreWindow } from './window-score.ts'

export type MeasureInputs = {
  covered: Covered
  /** The last believable observation of each source. */
  kept: readonly Kept[]
  /** Sources whose last answer was refused, and why. */
  refused: readonly { source: string; reason: string }[]
  track: Track
  bandBps: number
  at: Date
}

/** An emptied pool can be left at any price. What stands this far off is not a basis, and has no room in the packed forms. */
const WIDEST_BASIS_BPS = 1_000_000

/** Either a live reading, or the reasons why there is none; never an old one called live. */
export type Measured = { track: Track; reading?: Reading; reasons: string[] }

/** Tells the whole measurement on recorded inputs: the same inputs give the same reading. */
export function measure(inputs: MeasureInputs): Measured {
  const { covered, kept, at, bandBps } = inputs
  const { track: taken, multiplier } = takeIn(inputs.track, covered, kept, at)
  const state = underlyingState(covered, kept, at)
  const { reference, refusals } = deriveReference(referencePrints(covered, kept), multiplier, state.state, at)
  const market = wrapperMarket(covered, kept, taken, at)
  const reasons = [...inputs.refused, ...refusals].map(({ source, reason }) => `${source} is not used: ${reason}.`)
  if (!reference) return { track: taken, reasons: ['No reference can be derived.', ...reasons] }
  if (!market) return { track: taken, reasons: ['No market price of the wrapper is fresh.', ...reasons] }

  const wrapperPrice = roundTo(market.price, PRICE_DECIMALS)
  const referencePrice = roundTo(reference.price, PRICE_DECIMALS)
  if (!isPrice(wrapperPrice) || !isPrice(referencePrice))
    return { track: taken, reasons: ['A price is too small or too large to publish.', ...reasons] }
  const basis = basisOf(wrapperPrice, referencePrice)
  if (basis.basis_bps > WIDEST_BASIS_BPS)
    return { track: taken, reasons: ['The market price is over a hundred times the reference: no market.', ...reasons] }
  const depth = sumDepth(market.venues, reference.price, bandBps)
  const confidence = rateConfidence({
    references: reference.sources.length,
    referenceSpreadBps: reference.spreadBps,
    referenceAgeMs: at.getTime() - reference.oldestAt.getTime(),
    wrapperAgeMs: at.getTime() - market.publishedAt.getTime(),
    liquidityCounted: depth.whole ? market.counted : 0,
    spot: market.price,
    recentMean: recentMean(taken.samples, at),
    bandBps,
    multipliersAgree: multiplier?.agree ?? false,
    carried: reference.carried,
    halted: state.state === 'halted',
  })
  const creation = creationState(about(kept, covered, 'issuer'), at)
  const gapInputs = { basisBps: basis.basis_bps, bandBps, feesBps: market.feesBps, confBps: reference.confBps }
  // A multiplier in suspense makes no gap: the clock of a window must not start on half of a split.
  const excess = reference.suspended ? 0 : excessBps(gapInputs)
  const followed = followGap(taken, basis.basis_bps, excess, creation.creation === 'open', at)
  const track = sample({ ...followed, venueSizes: market.sizes }, market.price, at)
  const floatLocked = lockedShare(covered, kept, at)
  const meme = newest(about(kept, covered, 'meme'), at)?.observation
  const window = scoreWindow(
    {
      ...gapInputs,
      confidence,
      distanceUsd: depth.distanceUsd,
      nearReferenceUsd: depth.nearUsd,
      issuanceUsd: issuanceToward(track.supply, track.gapSign, track.gapSince) * reference.price,
      creationOpen: creation.creation === 'open',
      openMinutes: openMinutes(track, at),
      floatLocked: floatLocked ?? 0,
      momentum: meme?.change24h ?? 0,
    },
    reference.suspended,
  )
  const { last } = track.supply
  const reading: Reading = {
    window,
    floatLocked: floatLocked === undefined ? null : roundTo(floatLocked, 6),
    meme: meme ? { symbol: meme.symbol, change24h: roundTo(meme.change24h, 6) } : null,
    backing: backingOf(covered, kept, multiplier),
    records: recordsOf(covered, kept),
    quote: {
      symbol: covered.symbol,
      underlying: covered.underlying,
      chain: covered.chain,
      as_of: at.toISOString(),
      wrapper_price: wrapperPrice,
      reference_price: referencePrice,
      reference_source: reference.label,
      ...basis,
      effective_float: { near_reference_usd: roundTo(depth.nearUsd, USD_DECIMALS), band_bps: bandBps, confidence },
      borrow: { available: false, rate_apr: null, source: null },
      underlying_state: state.state,
      primary_market: {
        creation: creation.creation,
        last_mint_at: last?.at ?? null,
        last_mint_block: last?.block ?? null,
        last_mint_size: last ? roundTo(last.size, 9) : null,
      },
      observations: notes({ reference, multiplier, market, depth, creation, state, reasons, at }),
      source: 'live',
      preview: false,
    },
  }
  return { track: { ...track, status: window.status }, reading, reasons }
}

/** halted > holiday > closed > open. The exchange's own clock may say that an unscheduled closure has begun. */
export function underlyingState(
  covered: Covered,
  kept: readonly Kept[],
  at: Date,
): { state: UnderlyingState; note?: string } {
  const halted = fresh(about(kept, covered, 'halt'), at).some(({ observation }) => observation.halted)
  const scheduled = marketState(at)
  if (halted) return { state: 'halted', note: `Trading in ${covered.underlying} is halted.` }
  // What it said before the bell says nothing about the session.
  const clock =
    scheduled === 'open' &&
    fresh(about(kept, covered, 'exchange_clock'), at).find(
      ({ observation }) => !observation.open && observation.publishedAt >= lastSession(at).open,
    )
  if (clock)
    return {
      state: 'closed',
      note: `${clock.source} says the exchange is closed in what the calendar calls a session.`,
    }
  if (scheduled === 'open') return { state: 'open' }
  return {
    state: scheduled,
    note: `The exchange is ${scheduled === 'holiday' ? 'on holiday' : 'closed'} and opens ${nextOpen(at).toISOString()}.`,
  }
}

function referencePrints(covered: Covered, kept: readonly Kept[]): ReferencePrint[] {
  const shares = about(kept, covered, 'share_price').map((each) => ({ each, unit: 'share' as const }))
  const tokens = about(kept, covered, 'token_reference').map((each) => ({ each, unit: 'token' as const }))
  return [...shares, ...tokens].map(({ each: { source, observation, changedAt, fetchedAt }, unit }) => ({
    source,
    unit,
    price: observation.price,
    conf: observation.conf,
    publishedAt: observation.publishedAt,
    changedAt,
    fetchedAt,
  }))
}

type WrapperMarket = {
  price: number
  publishedAt: Date
  feesBps: number
  venues: Venue[]
  venuesKnown: number
  sizes: Record<string, number>
  /** Share of the known liquidity that was read. */
  counted: number
  estimated: boolean
}

/** The deepest venue makes the price. With none, an aggregator's price stands in and its liquidity is only an estimate. */
function wrapperMarket(covered: Covered, kept: readonly Kept[], track: Track, at: Date): WrapperMarket | undefined {
  const readings = fresh(about(kept, covered, 'venue'), at).filter(
    ({ observation }) => at.getTime() - observation.publishedAt.getTime() <= STALE_MS,
  )
  const venues = readings
    .map(({ observation }) => ({
      venue: observation.venue,
      at: observation.publishedAt,
      spot: spotPrice(observation.venue) ?? 0,
    }))
    .filter(({ spot }) => isPrice(spot))
    .map((each) => ({ ...each, size: sizeOf(each.venue, each.spot) }))
    .sort((a, b) => b.size - a.size)
  const deepest = venues[0]
  if (!deepest) return aggregatorMarket(covered, kept, at)
  const sizes = { ...track.venueSizes, ...Object.fromEntries(venues.map(({ venue, size }) => [venue.id, size])) }
  const read = venues.reduce((sum, { size }) => sum + size, 0)
  const known = Object.values(sizes).reduce((sum, size) => sum + size, 0)
  return {
    price: deepest.spot,
    publishedAt: deepest.at,
    feesBps: feeOf(deepest.venue) / 100,
    venues: venues.map(({ venue }) => venue),
    venuesKnown: Math.max(covered.pools.length, Object.keys(sizes).length),
    sizes,
    counted: known > 0 ? read / known : 0,
    estimated: false,
  }
}

const SIZE_BAND_BPS = 200
/** What aggregators' routes cost at best, where nothing better is known. */
const AGGREGATOR_FEE_PIPS = 2_500

/** No aggregator has seen more; a larger figure is a mistake. */
const MOST_LIQUIDITY_USD = 1e12

const sizeOf = (venue: Venue, spot: number) => nearReference(venue, spot, SIZE_BAND_BPS).tokens * spot

function aggregatorMarket(covered: Covered, kept: readonly Kept[], at: Date): WrapperMarket | undefined {
  const newestPrice = newest(about(kept, covered, 'token_price'), at)?.observation
  if (!newestPrice || !isPrice(newestPrice.price) || at.getTime() - newestPrice.publishedAt.getTime() > STALE_MS)
    return undefined
  const { price, publishedAt, liquidityUsd } = newestPrice
  const half = clamp(liquidityUsd ?? 0, 0, MOST_LIQUIDITY_USD) / 2
  const units = { wrapperIsToken0: true, wrapperDecimals: covered.decimals, quoteDecimals: 6 }
  const wrapperReserve = BigInt(Math.round((half / price) * 10 ** covered.decimals))
  const quoteReserve = BigInt(Math.round(half * 1e6))
  const pool: Venue = {
    kind: 'constant_product',
    id: 'aggregator',
    units,
    wrapperReserve,
    quoteReserve,
    feePips: AGGREGATOR_FEE_PIPS,
  }
  return {
    price,
    publishedAt,
    feesBps: AGGREGATOR_FEE_PIPS / 100,
    venues: wrapperReserve > 0n ? [pool] : [],
    venuesKnown: 0,
    sizes: {},
    counted: 0,
    estimated: true,
  }
}

type SummedDepth = { nearUsd: number; distanceUsd: number; whole: boolean }

function sumDepth(venues: readonly Venue[], reference: number, bandBps: number): SummedDepth {
  let nearUsd = 0
  let distanceUsd = 0
  let whole = true
  for (const venue of venues) {
    const near = nearReference(venue, reference, bandBps)
    const distance = distanceToReference(venue, reference)
    nearUsd += near.tokens * reference
    distanceUsd += distance.quote
    whole &&= near.whole && distance.whole
  }
  return { nearUsd, distanceUsd, whole }
}

/** Balances of labelled holders over what circulates, both from one source; unknown when either is. */
function lockedShare(covered: Covered, kept: readonly Kept[], at: Date): number | undefined {
  const locked = newest(about(kept, covered, 'locked'), at)
  const supplies = about(kept, covered, 'supply').filter(({ source }) => source === locked?.source)
  const supply = newest(supplies, at)?.observation.tokens
  if (!locked || supply === undefined || supply <= 0) return undefined
  return clamp(locked.observation.tokens / supply, 0, 1)
}

function backingOf(covered: Covered, kept: readonly Kept[], multiplier: Multiplier | undefined): Backing {
  const report = about(kept, covered, 'reserves').at(-1)?.observation
  if (report)
    return {
      ratio: roundTo(report.ratio, 9),
      ratioBasis: report.ratioBasis,
      reportUrl: report.reportUrl,
      reportAsOf: report.reportAsOf?.toISOString() ?? null,
    }
  // With no report at hand the token's own multiplier is all the issuer has said.
  return { ratio: roundTo(multiplier?.value ?? 1, 9), ratioBasis: 'issuer_claim', reportUrl: null, reportAsOf: null }
}

/** Every body that went into the reading, once, in an order that does not depend on arrival. */
function recordsOf(covered: Covered, kept: readonly Kept[]): FetchRecord[] {
  const concerning = kept.filter(({ observation }) => {
    if ('asset' in observation) return observation.asset === covered.asset
    return !('underlying' in observation) || observation.underlying === covered.underlying
  })
  const byKey = new Map<string, FetchRecord>()
  for (const record of concerning.flatMap(({ records }) => records))
    byKey.set(`${record.source} ${record.url} ${record.body_sha256}`, record)
  return [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, record]) => record)
}

const fresh = <K extends { fetchedAt: Date }>(kept: readonly K[], at: Date): K[] =>
  kept.filter((each) => at.getTime() - each.fetchedAt.getTime() <= STALE_MS)

const newest = <K extends { fetchedAt: Date }>(kept: readonly K[], at: Date): K | undefined =>
  fresh(kept, at).sort((a, b) => b.fetchedAt.getTime() - a.fetchedAt.getTime())[0]

type NoteInputs = {
  reference: Reference
  multiplier: Multiplier | undefined
  market: WrapperMarket
  depth: SummedDepth
  creation: { note?: string }
  state: { note?: string }
  reasons: readonly string[]
  at: Date
}

function notes({ reference, multiplier, market, depth, creation, state, reasons, at }: NoteInputs): string[] {
  const said = [
    `The reference is the median of ${reference.sources.length} source(s): ${reference.sources.join(', ')}.`,
  ]
  if (reference.carried) said.push(`The reference is carried from ${reference.newestAt.toISOString()}.`)
  if (multiplier) said.push(`One token stands for ${roundTo(multiplier.value, 9)} shares, by ${multiplier.source}.`)
  if (multiplier && !multiplier.agree) said.push('Sources disagree about shares per token.')
  if (reference.suspended)
    said.push(
      'Shares per token changed and the underlying has not printed since; the reference pairs the last print with the shares of its time.',
    )
  if (market.estimated) said.push('Depth is estimated from the liquidity an aggregator reports, not counted in pools.')
  else said.push(`Depth is counted in ${market.venues.length} of ${market.venuesKnown} known pools.`)
  if (!depth.whole) said.push('A pool holds liquidity beyond the prices that were read; depth is a lower bound.')
  const age = Math.floor((at.getTime() - market.publishedAt.getTime()) / MINUTE_MS)
  if (age >= 1) said.push(`The market price is ${age} minute(s) old.`)
  for (const note of [state.note, creation.note]) if (note) said.push(note)
  return [...said, ...reasons]
}
