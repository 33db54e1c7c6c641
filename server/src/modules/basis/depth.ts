import { type ConcentratedPool, simulateSwapToPrice } from './concentrated-liquidity.ts'
import { FRACTION_ONE, fromUnits, integerSqrt, toFraction } from './integer-math.ts'
import { fromSqrtPrice, type PoolUnits, toSqrtPrice } from './tick-math.ts'

/**
 * How much of a wrapper can be bought near its reference, venue by venue, in exact integers.
 * A venue is the state of one market at one moment; prices are of a whole raw token, in the quote currency.
 */
export type Venue =
  | { kind: 'concentrated'; id: string; units: PoolUnits; pool: ConcentratedPool }
  | {
      kind: 'constant_product'
      id: string
      units: PoolUnits
      wrapperReserve: bigint
      quoteReserve: bigint
      feePips: number
    }
  | { kind: 'order_book'; id: string; bids: readonly PriceLevel[]; asks: readonly PriceLevel[]; feePips: number }

export type PriceLevel = { price: number; size: number }

/** Inventory in whole wrapper tokens. `complete` is false when the venue was not read far enough to count all of it. */
export type Depth = { tokens: number; complete: boolean }

/** Quote currency that is traded on the way to a price. */
export type Distance = { quote: number; complete: boolean }

const BPS = 10_000n
const FEE_ONE = 1_000_000n

/** The venue's marginal price before its fee, or undefined for an empty order book. */
export function spotPrice(venue: Venue): number | undefined {
  if (venue.kind === 'concentrated') return fractionToNumber(fromSqrtPrice(venue.pool.sqrtPriceX96, venue.units))
  if (venue.kind === 'constant_product') {
    if (venue.wrapperReserve === 0n) return undefined
    return fractionToNumber(reservePrice(venue))
  }
  const bid = venue.bids[0]?.price
  const ask = venue.asks[0]?.price
  return bid === undefined || ask === undefined ? undefined : (bid + ask) / 2
}

/**
 * Wrapper tokens on offer inside reference·(1 ± band). The price includes the taker's fee, so tokens count as long as
 * they cost no more than the upper end of the band. Above the band the depth is zero.
 */
export function depthNearReference(venue: Venue, reference: number, bandBps: number): Depth {
  const low = (toFraction(reference) * (BPS - BigInt(bandBps))) / BPS
  const high = (toFraction(reference) * (BPS + BigInt(bandBps)) * (FEE_ONE - BigInt(feePipsOf(venue)))) / BPS / FEE_ONE
  if (venue.kind === 'concentrated') return concentratedDepth(venue, low, high)
  if (venue.kind === 'constant_product') return constantProductDepth(venue, low, high)
  const inBand = venue.asks.filter(({ price }) => toFraction(price) >= low && toFraction(price) <= high)
  return { tokens: inBand.reduce((sum, { size }) => sum + size, 0), complete: true }
}

/** The quote currency it takes to bring the venue's price back to the reference. */
export function distanceToReference(venue: Venue, reference: number): Distance {
  const target = toFraction(reference)
  if (venue.kind === 'concentrated') return concentratedDistance(venue, target)
  if (venue.kind === 'constant_product') return constantProductDistance(venue, target)
  const above = venue.bids.filter(({ price }) => toFraction(price) > target)
  const below = venue.asks.filter(({ price }) => toFraction(price) < target)
  return { quote: [...above, ...below].reduce((sum, { price, size }) => sum + price * size, 0), complete: true }
}

export const feePipsOf = (venue: Venue): number => (venue.kind === 'concentrated' ? venue.pool.feePips : venue.feePips)

type ConcentratedVenue = Extract<Venue, { kind: 'concentrated' }>
type ConstantProductVenue = Extract<Venue, { kind: 'constant_product' }>

const withoutFee = ({ pool }: ConcentratedVenue): ConcentratedPool => ({ ...pool, feePips: 0 })

function concentratedDepth(venue: ConcentratedVenue, low: bigint, high: bigint): Depth {
  const { pool, units } = venue
  if (high <= low || fromSqrtPrice(pool.sqrtPriceX96, units) >= high) return { tokens: 0, complete: true }
  const belowBand = fromSqrtPrice(pool.sqrtPriceX96, units) < low
  const swapToBand = belowBand ? simulateSwapToPrice(pool, toSqrtPrice(low, units)) : undefined
  const swapInBand = simulateSwapToPrice(swapToBand?.poolAfter ?? pool, toSqrtPrice(high, units))
  return {
    tokens: fromUnits(swapInBand.amountOut, units.wrapperDecimals),
    complete: swapInBand.reachedTarget && (swapToBand?.reachedTarget ?? true),
  }
}

function concentratedDistance(venue: ConcentratedVenue, target: bigint): Distance {
  const { units } = venue
  const isAboveTarget = fromSqrtPrice(venue.pool.sqrtPriceX96, units) > target
  const swap = simulateSwapToPrice(withoutFee(venue), toSqrtPrice(target, units))
  const quote = isAboveTarget ? swap.amountOut : swap.amountIn
  return { quote: fromUnits(quote, units.quoteDecimals), complete: swap.reachedTarget }
}

const reservePrice = ({ wrapperReserve, quoteReserve, units }: ConstantProductVenue): bigint =>
  (quoteReserve * FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)) /
  (wrapperReserve * 10n ** BigInt(units.quoteDecimals))

/** With x·y = k constant, the wrapper reserve at price p is √(k/p); the difference of two reserves leaves the pool. */
function wrapperReserveAt({ wrapperReserve, quoteReserve, units }: ConstantProductVenue, price: bigint): bigint {
  const k = wrapperReserve * quoteReserve
  const scale = FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)
  return integerSqrt((k * scale) / (price * 10n ** BigInt(units.quoteDecimals)))
}

function constantProductDepth(venue: ConstantProductVenue, low: bigint, high: bigint): Depth {
  if (venue.wrapperReserve === 0n || high <= low) return { tokens: 0, complete: true }
  const spot = reservePrice(venue)
  if (spot >= high) return { tokens: 0, complete: true }
  const startReserve = spot < low ? wrapperReserveAt(venue, low) : venue.wrapperReserve
  const amountOut = startReserve - wrapperReserveAt(venue, high)
  return { tokens: fromUnits(amountOut > 0n ? amountOut : 0n, venue.units.wrapperDecimals), complete: true }
}

function constantProductDistance(venue: ConstantProductVenue, target: bigint): Distance {
  if (venue.wrapperReserve === 0n) return { quote: 0, complete: true }
  const wrapperAfter = wrapperReserveAt(venue, target)
  const quoteAfter =
    wrapperAfter === 0n ? venue.quoteReserve : (venue.wrapperReserve * venue.quoteReserve) / wrapperAfter
  const quoteChange = quoteAfter - venue.quoteReserve
  return { quote: fromUnits(quoteChange < 0n ? -quoteChange : quoteChange, venue.units.quoteDecimals), complete: true }
}

const fractionToNumber = (fraction: bigint) => fromUnits(fraction, 12)
