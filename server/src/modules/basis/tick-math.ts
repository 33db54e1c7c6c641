import { FRACTION_ONE, integerSqrt } from './integer-math.ts'

/**
 * Pools of concentrated liquidity count prices in ticks of one basis point: price = 1.0001^tick, stored as a square root
 * with 96 fractional bits. Both must equal the pool contract's values bit for bit, or the depth would be off by a unit.
 */
export const MIN_TICK = -887_272
export const MAX_TICK = 887_272
export const Q96 = 1n << 96n
const Q192 = 1n << 192n
const Q128 = 1n << 128n
const MAX_UINT256 = (1n << 256n) - 1n
const TICK_BITS = 20
const WORKING_BITS = 512n

/**
 * 2^128 ÷ √1.0001^(2^i) for each bit i of a tick, rounded to the nearest integer.
 * Computed with 512 bits and rounded once, which gives the pool contract's constants exactly.
 */
const bitRatios = (() => {
  const ratios: bigint[] = []
  let power = integerSqrt((10_000n << (2n * WORKING_BITS)) / 10_001n)
  const shift = WORKING_BITS - 128n
  for (let bit = 0; bit < TICK_BITS; bit += 1) {
    ratios.push((power + (1n << (shift - 1n))) >> shift)
    power = (power * power) >> WORKING_BITS
  }
  return ratios
})()

/** √(1.0001^tick) with 96 fractional bits, rounded up. */
export function sqrtPriceAtTick(tick: number): bigint {
  if (!Number.isInteger(tick) || tick < MIN_TICK || tick > MAX_TICK) throw new RangeError(`${tick} is not a tick.`)
  const distance = Math.abs(tick)
  let ratio = Q128
  for (let bit = 0; bit < TICK_BITS; bit += 1) if (distance & (1 << bit)) ratio = (ratio * bitRatios[bit]!) >> 128n
  if (tick > 0) ratio = MAX_UINT256 / ratio
  return (ratio >> 32n) + (ratio & 0xffff_ffffn ? 1n : 0n)
}

export const MIN_SQRT_PRICE = sqrtPriceAtTick(MIN_TICK)
export const MAX_SQRT_PRICE = sqrtPriceAtTick(MAX_TICK)

/** The highest tick whose price is not above this one. */
export function tickAtSqrtPrice(sqrtPriceX96: bigint): number {
  if (sqrtPriceX96 < MIN_SQRT_PRICE || sqrtPriceX96 > MAX_SQRT_PRICE)
    throw new RangeError('The price is outside the range of ticks.')
  let low = MIN_TICK
  let high = MAX_TICK
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (sqrtPriceAtTick(middle) <= sqrtPriceX96) low = middle
    else high = middle - 1
  }
  return low
}

/** Converts a pool's raw price (atomic token1 per atomic token0) to the price of a whole wrapper token in quote. */
export type PoolUnits = { wrapperIsToken0: boolean; wrapperDecimals: number; quoteDecimals: number }

/** The pool's square-root price at which a whole wrapper token costs `priceFraction` (over FRACTION_ONE) of quote. */
export function toSqrtPrice(priceFraction: bigint, units: PoolUnits): bigint {
  if (priceFraction <= 0n) throw new RangeError('A price must be above zero.')
  const quoteUnits = priceFraction * 10n ** BigInt(units.quoteDecimals)
  const wrapperUnits = FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)
  const square = units.wrapperIsToken0 ? (quoteUnits * Q192) / wrapperUnits : (wrapperUnits * Q192) / quoteUnits
  return clampSqrtPrice(integerSqrt(square))
}

/** The price of a whole wrapper token in quote, over FRACTION_ONE. */
export function fromSqrtPrice(sqrtPriceX96: bigint, units: PoolUnits): bigint {
  const square = sqrtPriceX96 * sqrtPriceX96
  const scale = FRACTION_ONE * 10n ** BigInt(units.wrapperDecimals)
  const quoteScale = 10n ** BigInt(units.quoteDecimals)
  return units.wrapperIsToken0 ? (square * scale) / (Q192 * quoteScale) : (Q192 * scale) / (square * quoteScale)
}

const clampSqrtPrice = (value: bigint) =>
  value <= MIN_SQRT_PRICE ? MIN_SQRT_PRICE + 1n : value >= MAX_SQRT_PRICE ? MAX_SQRT_PRICE - 1n : value
