import { type ConcentratedPool, crossTo } from './concentrated.ts'
import { FRACTION_ONE, fromUnits, integerSqrt, toFraction } from './integer-math.ts'
import { type PoolUnits, priceOf, sqrtPriceOf } from './tick-math.ts'

/**
 * How much of a wrapper can be had near its reference, venue by venue, in exact integers.
 * A venue is what one market held at one moment; prices are of a whole raw token, in the quote currency.
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
  | { kind: 'order_book'; id: string; bids: readonly Level[]; asks: readonly Level[]; feePips: number }

export type Level = { price: number; size: number }

/** Inventory in whole wrapper tokens. `whole` is false when the venue was not read far enough to count all of it. */
export type Depth = { tokens: number; whole: boolean }

/** Quote currency that changes hands on the way to a price. */
export type Distance = { quote: number; whole: boolean }

const BPS = 10_000n
const FEE_ONE = 1_000_000n

/** The venue's marginal price before its fee, or undefined for an empty order book. */
export function spotPrice(venue: Venue): number | undefined {
  if (venue.kind === 'concentrated') return fractionToNumber(priceOf(venue.pool.sqrtPriceX96, venue.units))
  if (venue.kind === 'constant_product') {
    if (venue.wrapperReserve === 0n) return undefined
    return fractionToNumber(reservePrice(venue))
  }
  const bid = venue.bids[0]?.price
  const ask = venue.asks[0]?.price
  return bid === undefined || ask === undefined ? undefined : (bid + ask) / 2
}

/**
 * Wrapper tokens on offer inside reference·(1 ± band). The taker's fee counts, so the last token that still costs no
 * more than the upper end is the last one counted. Nothing is left once the price has run past the band.
 */
export function nearReference(venue: Venue, reference: number, bandBps: number): Depth {
  const low = (toFraction(reference) * (BPS - BigInt(bandBps))) / BPS
  const high = (toFraction(reference) * (BPS + BigInt(bandBps)) * (FEE_ONE - BigInt(feeOf(venue)))) / BPS / FEE_ONE
  if (venue.kind === 'concentrated') return concentratedBetween(venue, low, high)
  if (venue.kind === 'constant_product') return constantProductBetween(venue, low, high)
  const inBand = venue.asks.filter(({ price }) => toFraction(price) >= low && toFraction(price) <= high)
  return { tokens: inBand.reduce((sum, { size }) => sum + size, 0), whole: true }
}

/** The quote currency it takes to bring the venue's price back to the reference. */
export function distanceToReference(venue: Venue, reference: number): Distance {
  const target = toFraction(reference)
  if (venue.kind === 'concentrated') return concentratedDistance(venue, target)
  if (venue.kind === 'constant_product') return constantProductDistance(venue, target)
  const above = venue.bids.filter(({ price }) => toFraction(price) > target)
  const below = venue.asks.filter(({ price }) => toFraction(price) < target)
  return { quote: [...above, ...below].reduce((sum, { price, size }) => sum + price * size, 0), whole: true }
}

export const feeOf = (venue: Venue): number => (venue.kind === 'concentrated' ? venue.pool.feePips : venue.feePips)

const feeless = (venue: Extract<Venue, { kind: 'concentrated' }>): ConcentratedPool => ({ ...venue.pool, feePips: 0 })

type Concentrated = Extract<Venue, { kind: 'concentrated' }>
type ConstantProduct = Extract<Venue, { kind: 'constant_product' }>

function concentratedBetween(venue: Concentrated, low: bigint, high: bigint): Depth {
  const { pool, units } = venue
  if (high <= low || priceOf(pool.sqrtPriceX96, units) >= high) return { tokens: 0, whole: true }
  const belowBand = priceOf(pool.sqrtPriceX96, units) < low
  const entry = belowBand ? crossTo(pool, sqrtPriceOf(low, units)) : undefined
  const inside = crossTo(entry?.after ?? pool, sqrtPriceOf(high, units))
  return {
    tokens: fromUnits(inside.amountOut, units.wrapperDecimals),
    whole: inside.reached && (entry?.reached ?? true),
  }
}

function concentratedDistance(venue: Concentrated, target: bigint): Distance {
  const { units } = venue
  const wrapperIsDear = priceOf(venue.pool.sqrtPriceX96, units) > target
  const crossing = crossTo(feeless(venue), sqrtPriceOf(target, units))
  const quote = wrapperIsDear ? crossing.amountOut : crossing.amountIn
  return { quote: fromUnits(quote, units.quoteDecimals), whole: crossing.reached }
}

const reservePrice = ({ wrapperReserve, quoteReserve, units }: ConstantProduct): bigint =>
  (quoteReserve * FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)) /
  (wrapperReserve * 10n ** BigInt(units.quoteDecimals))

/** With x·y constant, the wrapper reserve at price p is √(k/p): what leaves the pool is the difference of two of them. */
function wrapperReserveAt({ wrapperReserve, quoteReserve, units }: ConstantProduct, price: bigint): bigint {
  const k = wrapperReserve * quoteReserve
  const scale = FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)
  return integerSqrt((k * scale) / (price * 10n ** BigInt(units.quoteDecimals)))
}

function constantProductBetween(venue: ConstantProduct, low: bigint, high: bigint): Depth {
  if (venue.wrapperReserve === 0n || high <= low) return { tokens: 0, whole: true }
  const spot = reservePrice(venue)
  if (spot >= high) return { tokens: 0, whole: true }
  const from = spot < low ? wrapperReserveAt(venue, low) : venue.wrapperReserve
  const out = from - wrapperReserveAt(venue, high)
  return { tokens: fromUnits(out > 0n ? out : 0n, venue.units.wrapperDecimals), whole: true }
}

function constantProductDistance(venue: ConstantProduct, target: bigint): Distance {
  if (venue.wrapperReserve === 0n) return { quote: 0, whole: true }
  const after = wrapperReserveAt(venue, target)
  const quoteAfter = after === 0n ? venue.quoteReserve : (venue.wrapperReserve * venue.quoteReserve) / after
  const moved = quoteAfter - venue.quoteReserve
  return { quote: fromUnits(moved < 0n ? -moved : moved, venue.units.quoteDecimals), whole: true }
}

const fractionToNumber = (fraction: bigint) => fromUnits(fraction, 12)
