import { rateConfidence, recentMean } from './confidence.ts'
import {
  addPriceSample,
  applySupplyAndMultiplier,
  concernsWrapper,
  gapOpenMinutes,
  type MeasurementState,
  selectObservations,
  updateGap,
} from './measurement-state.ts'
import type { Multiplier } from './multiplier.ts'
import { clamp, isPrice, roundTo } from './price-math.ts'
import type { CoveredWrapper, FetchRecord, SourcedObservation } from './price-source.ts'
import { creationState, issuanceTowardParity } from './primary-market.ts'
import {
  type Backing,
  computeBasis,
  NO_BORROW_REASON,
  NO_BORROW_SOURCE,
  PRICE_DECIMALS,
  type Reading,
  USD_DECIMALS,
} from './quote.ts'
import { deriveReference, type Reference, type ReferencePrint } from './reference.ts'
import { findNewest, MINUTE_MS } from './staleness.ts'
import { underlyingState } from './underlying-state.ts'
import { excessBps, scoreWindow } from './window-score.ts'
import { readWrapperMarket, sumDepth, type TotalDepth, type WrapperMarket } from './wrapper-market.ts'

export type MeasureInputs = {
  wrapper: CoveredWrapper
  /** The last valid observations of each source. */
  observations: readonly SourcedObservation[]
  /** Sources whose last response was rejected, and the reason. */
  rejected: readonly { source: string; reason: string }[]
  state: MeasurementState
  bandBps: number
  at: Date
}

/** An emptied pool can be left at any price. A larger basis is not a market, and does not fit the on-chain formats. */
const MAX_BASIS_BPS = 1_000_000

/** Either a live reading, or the reasons why there is none. A stale reading is never reported as live. */
export type Measurement = { state: MeasurementState; reading?: Reading; reasons: string[] }

/** The whole measurement, as a pure function: the same inputs give the same reading. */
export function measure({ wrapper, observations, rejected, state, bandBps, at }: MeasureInputs): Measurement {
  const { state: supplyState, multiplier } = applySupplyAndMultiplier(state, wrapper, observations, at)
  const underlying = underlyingState(wrapper, observations, at)
  const { reference, rejections } = deriveReference(
    referencePrints(wrapper, observations),
    multiplier,
    underlying.state,
    at,
  )
  const market = readWrapperMarket(wrapper, observations, supplyState.venueSizes, at)
  const reasons = [...rejected, ...rejections].map(({ source, reason }) => `${source} is not used: ${reason}.`)
  const noReading = (reason: string): Measurement => ({ state: supplyState, reasons: [reason, ...reasons] })
  if (!reference) return noReading('No reference can be derived.')
  if (!market) return noReading('No market price of the wrapper is fresh.')

  const wrapperPrice = roundTo(market.price, PRICE_DECIMALS)
  const referencePrice = roundTo(reference.price, PRICE_DECIMALS)
  if (!isPrice(wrapperPrice) || !isPrice(referencePrice))
    return noReading('A price is too small or too large to publish.')
  const basis = computeBasis(wrapperPrice, referencePrice)
  if (basis.basis_bps > MAX_BASIS_BPS)
    return noReading('The market price is over a hundred times the reference and cannot be used.')
  const depth = sumDepth(market.venues, reference.price, bandBps)
  const confidence = rateConfidence({
    referenceCount: reference.sources.length,
    referenceSpreadBps: reference.spreadBps,
    referenceAgeMs: at.getTime() - reference.oldestAt.getTime(),
    wrapperAgeMs: at.getTime() - market.publishedAt.getTime(),
    liquidityCoverage: depth.complete ? market.liquidityCoverage : 0,
    spotPrice: market.price,
    recentMean: recentMean(supplyState.samples, at),
    bandBps,
    multipliersAgree: multiplier?.sourcesAgree ?? false,
    referenceCarried: reference.carried,
    isHalted: underlying.state === 'halted',
  })
  const { creation, note: creationNote } = creationState(selectObservations(observations, wrapper, 'issuer'), at)
  const gapInputs = { basisBps: basis.basis_bps, bandBps, feesBps: market.feesBps, confBps: reference.confBps }
  // While the reference is suspended there is no gap, so that a split does not open a window.
  const excess = reference.suspended ? 0 : excessBps(gapInputs)
  const gapState = updateGap(supplyState, basis.basis_bps, excess, creation === 'open', at)
  const nextState = addPriceSample({ ...gapState, venueSizes: market.venueSizes }, market.price, at)
  const floatLocked = lockedShare(wrapper, observations, at)
  const meme = findNewest(selectObservations(observations, wrapper, 'meme'), at)?.observation
  const window = scoreWindow(
    {
      ...gapInputs,
      confidence,
      distanceUsd: depth.distanceUsd,
      nearReferenceUsd: depth.nearUsd,
      issuanceUsd: issuanceTowardParity(nextState.supply, nextState.gapSign, nextState.gapSince) * reference.price,
      creationOpen: creation === 'open',
      openMinutes: gapOpenMinutes(nextState, at),
      floatLocked: floatLocked ?? 0,
      momentum: meme?.change24h ?? 0,
    },
    reference.suspended,
  )
  const lastMint = nextState.supply.last
  const reading: Reading = {
    window,
    floatLocked: floatLocked === undefined ? null : roundTo(floatLocked, 6),
    meme: meme ? { symbol: meme.symbol, change24h: roundTo(meme.change24h, 6) } : null,
    backing: readBacking(wrapper, observations, multiplier),
    records: collectRecords(wrapper, observations),
    quote: {
      symbol: wrapper.symbol,
      underlying: wrapper.underlying,
      chain: wrapper.chain,
      as_of: at.toISOString(),
      wrapper_price: wrapperPrice,
      reference_price: referencePrice,
      reference_source: reference.label,
      ...basis,
      effective_float: { near_reference_usd: roundTo(depth.nearUsd, USD_DECIMALS), band_bps: bandBps, confidence },
      borrow: NO_BORROW_SOURCE,
      underlying_state: underlying.state,
      primary_market: {
        creation,
        last_mint_at: lastMint?.at ?? null,
        last_mint_block: lastMint?.block ?? null,
        last_mint_size: lastMint ? roundTo(lastMint.size, 9) : null,
      },
      observations: describeReading({ reference, multiplier, market, depth, underlying, creationNote, reasons, at }),
      source: 'live',
      preview: false,
    },
  }
  return { state: { ...nextState, status: window.status }, reading, reasons }
}

function referencePrints(wrapper: CoveredWrapper, observations: readonly SourcedObservation[]): ReferencePrint[] {
  const shares = selectObservations(observations, wrapper, 'share_price').map((entry) => toPrint(entry, 'share'))
  const tokens = selectObservations(observations, wrapper, 'token_reference').map((entry) => toPrint(entry, 'token'))
  return [...shares, ...tokens]
}

type PriceObservation = Pick<SourcedObservation, 'source' | 'changedAt' | 'fetchedAt'> & {
  observation: { price: number; conf: number; publishedAt: Date }
}

const toPrint = (
  { source, observation, changedAt, fetchedAt }: PriceObservation,
  unit: ReferencePrint['unit'],
): ReferencePrint => ({
  source,
  unit,
  price: observation.price,
  conf: observation.conf,
  publishedAt: observation.publishedAt,
  changedAt,
  fetchedAt,
})

/** Balances of labelled holders divided by the supply, both from one source; undefined when either is unknown. */
function lockedShare(
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  at: Date,
): number | undefined {
  const lockedBalance = findNewest(selectObservations(observations, wrapper, 'locked'), at)
  const supplies = selectObservations(observations, wrapper, 'supply').filter(
    ({ source }) => source === lockedBalance?.source,
  )
  const supply = findNewest(supplies, at)?.observation.tokens
  if (!lockedBalance || supply === undefined || supply <= 0) return undefined
  return clamp(lockedBalance.observation.tokens / supply, 0, 1)
}

function readBacking(
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  multiplier: Multiplier | undefined,
): Backing {
  const report = selectObservations(observations, wrapper, 'reserves').at(-1)?.observation
  if (report)
    return {
      ratio: roundTo(report.ratio, 9),
      ratioBasis: report.ratioBasis,
      reportUrl: report.reportUrl,
      reportAsOf: report.reportAsOf?.toISOString() ?? null,
    }
  // Without a report, the token's multiplier is the issuer's only statement about its backing.
  return { ratio: roundTo(multiplier?.value ?? 1, 9), ratioBasis: 'issuer_claim', reportUrl: null, reportAsOf: null }
}

/** Every body that the reading is based on, without duplicates, in an order that does not depend on arrival. */
function collectRecords(wrapper: CoveredWrapper, observations: readonly SourcedObservation[]): FetchRecord[] {
  const byKey = new Map<string, FetchRecord>()
  for (const { observation, records } of observations)
    if (concernsWrapper(observation, wrapper))
      for (const record of records) byKey.set(`${record.source} ${record.url} ${record.body_sha256}`, record)
  return [...byKey.entries()].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, record]) => record)
}

type DescriptionInputs = {
  reference: Reference
  multiplier: Multiplier | undefined
  market: WrapperMarket
  depth: TotalDepth
  underlying: { note?: string }
  creationNote: string | undefined
  reasons: readonly string[]
  at: Date
}

/** The `observations` of a live quote: sentences about its inputs. */
function describeReading(inputs: DescriptionInputs): string[] {
  const { reference, multiplier, market, depth, underlying, creationNote, reasons, at } = inputs
  const notes = [
    `The reference is the median of ${reference.sources.length} source(s): ${reference.sources.join(', ')}.`,
  ]
  if (reference.carried) notes.push(`The reference is carried from ${reference.newestAt.toISOString()}.`)
  if (multiplier)
    notes.push(`One token represents ${roundTo(multiplier.value, 9)} shares, according to ${multiplier.source}.`)
  if (multiplier && !multiplier.sourcesAgree) notes.push('Sources disagree about shares per token.')
  if (reference.suspended)
    notes.push(
      'Shares per token changed and the underlying has not printed since; the reference pairs the last print with the shares of its time.',
    )
  if (market.estimated) notes.push('Depth is estimated from the liquidity an aggregator reports, not counted in pools.')
  else notes.push(`Depth is counted in ${market.venues.length} of ${market.knownVenueCount} known pools.`)
  if (!depth.complete) notes.push('A pool holds liquidity beyond the prices that were read; depth is a lower bound.')
  const ageMinutes = Math.floor((at.getTime() - market.publishedAt.getTime()) / MINUTE_MS)
  if (ageMinutes >= 1) notes.push(`The market price is ${ageMinutes} minute(s) old.`)
  for (const note of [underlying.note, creationNote]) if (note) notes.push(note)
  return [...notes, NO_BORROW_REASON, ...reasons]
}
