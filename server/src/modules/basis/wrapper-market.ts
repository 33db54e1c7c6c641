import { depthNearReference, distanceToReference, feePipsOf, spotPrice, type Venue } from './depth.ts'
import { selectObservations } from './measurement-state.ts'
import { clamp, isPrice } from './price-math.ts'
import type { CoveredWrapper, SourcedObservation } from './price-source.ts'
import { filterFresh, findNewest, STALE_MS } from './staleness.ts'

/** The market price of a wrapper and the venues it comes from. */
export type WrapperMarket = {
  price: number
  publishedAt: Date
  feesBps: number
  venues: Venue[]
  knownVenueCount: number
  venueSizes: Record<string, number>
  /** Share of the known liquidity that was read, 0 to 1. */
  liquidityCoverage: number
  /** True when the depth comes from an aggregator's liquidity figure instead of pools. */
  estimated: boolean
}

/** The deepest venue sets the price. Without any venue, an aggregator's price is used and its liquidity is an estimate. */
export function readWrapperMarket(
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  previousSizes: Record<string, number>,
  at: Date,
): WrapperMarket | undefined {
  const venues = filterFresh(selectObservations(observations, wrapper, 'venue'), at)
    .filter(({ observation }) => at.getTime() - observation.publishedAt.getTime() <= STALE_MS)
    .map(({ observation }) => ({
      venue: observation.venue,
      publishedAt: observation.publishedAt,
      spot: spotPrice(observation.venue) ?? 0,
    }))
    .filter(({ spot }) => isPrice(spot))
    .map(({ venue, publishedAt, spot }) => ({ venue, publishedAt, spot, size: venueSizeUsd(venue, spot) }))
    .sort((a, b) => b.size - a.size)
  const deepest = venues[0]
  if (!deepest) return readAggregatorMarket(wrapper, observations, at)
  const venueSizes = { ...previousSizes, ...Object.fromEntries(venues.map(({ venue, size }) => [venue.id, size])) }
  const readSize = venues.reduce((sum, { size }) => sum + size, 0)
  const knownSize = Object.values(venueSizes).reduce((sum, size) => sum + size, 0)
  return {
    price: deepest.spot,
    publishedAt: deepest.publishedAt,
    feesBps: feePipsOf(deepest.venue) / 100,
    venues: venues.map(({ venue }) => venue),
    knownVenueCount: Math.max(wrapper.pools.length, Object.keys(venueSizes).length),
    venueSizes,
    liquidityCoverage: knownSize > 0 ? readSize / knownSize : 0,
    estimated: false,
  }
}

const SIZE_BAND_BPS = 200

const venueSizeUsd = (venue: Venue, spot: number) => depthNearReference(venue, spot, SIZE_BAND_BPS).tokens * spot

/** The lowest cost of an aggregator's route, where no better figure is known. */
const AGGREGATOR_FEE_PIPS = 2_500
/** A larger liquidity figure is an error of the aggregator. */
const MAX_LIQUIDITY_USD = 1e12

function readAggregatorMarket(
  wrapper: CoveredWrapper,
  observations: readonly SourcedObservation[],
  at: Date,
): WrapperMarket | undefined {
  const newest = findNewest(selectObservations(observations, wrapper, 'token_price'), at)?.observation
  if (!newest || !isPrice(newest.price) || at.getTime() - newest.publishedAt.getTime() > STALE_MS) return undefined
  const { price, publishedAt, liquidityUsd } = newest
  const halfUsd = clamp(liquidityUsd ?? 0, 0, MAX_LIQUIDITY_USD) / 2
  const wrapperReserve = BigInt(Math.round((halfUsd / price) * 10 ** wrapper.decimals))
  const pool: Venue = {
    kind: 'constant_product',
    id: 'aggregator',
    units: { wrapperIsToken0: true, wrapperDecimals: wrapper.decimals, quoteDecimals: 6 },
    wrapperReserve,
    quoteReserve: BigInt(Math.round(halfUsd * 1e6)),
    feePips: AGGREGATOR_FEE_PIPS,
  }
  return {
    price,
    publishedAt,
    feesBps: AGGREGATOR_FEE_PIPS / 100,
    venues: wrapperReserve > 0n ? [pool] : [],
    knownVenueCount: 0,
    venueSizes: {},
    liquidityCoverage: 0,
    estimated: true,
  }
}

export type TotalDepth = { nearUsd: number; distanceUsd: number; complete: boolean }

export function sumDepth(venues: readonly Venue[], referencePrice: number, bandBps: number): TotalDepth {
  let nearUsd = 0
  let distanceUsd = 0
  let complete = true
  for (const venue of venues) {
    const near = depthNearReference(venue, referencePrice, bandBps)
    const distance = distanceToReference(venue, referencePrice)
    nearUsd += near.tokens * referencePrice
    distanceUsd += distance.quote
    complete &&= near.complete && distance.complete
  }
  return { nearUsd, distanceUsd, complete }
}
