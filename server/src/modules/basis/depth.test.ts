import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ConcentratedPool, simulateSwapToPrice } from './concentrated-liquidity.ts'
import { depthNearReference, distanceToReference, spotPrice, type Venue } from './depth.ts'
import { integerSqrt, toFraction } from './integer-math.ts'
import {
  fromSqrtPrice,
  MAX_SQRT_PRICE,
  MAX_TICK,
  MIN_SQRT_PRICE,
  MIN_TICK,
  sqrtPriceAtTick,
  tickAtSqrtPrice,
  toSqrtPrice,
} from './tick-math.ts'

const token0 = { wrapperIsToken0: true, wrapperDecimals: 8, quoteDecimals: 6 }
const token1 = { wrapperIsToken0: false, wrapperDecimals: 8, quoteDecimals: 6 }

/** One position over the whole curve, for which the formula of constant liquidity holds. */
function flatPool(
  price: number,
  liquidity: bigint,
  units = token0,
  feePips = 3000,
): Extract<Venue, { kind: 'concentrated' }> {
  const sqrtPriceX96 = toSqrtPrice(toFraction(price), units)
  const pool: ConcentratedPool = {
    sqrtPriceX96,
    tick: tickAtSqrtPrice(sqrtPriceX96),
    liquidity,
    tickSpacing: 60,
    feePips,
    ticks: [],
    readFrom: MIN_TICK,
    readTo: MAX_TICK,
  }
  return { kind: 'concentrated', id: 'pool', units, pool }
}

describe('tick math', () => {
  test("the minimum and maximum prices equal the pool contract's", () => {
    expect(MIN_SQRT_PRICE).toBe(4295128739n)
    expect(MAX_SQRT_PRICE).toBe(1461446703485210103287273052203988822378723970342n)
    expect(sqrtPriceAtTick(0)).toBe(1n << 96n)
  })

  test('each tick raises the price by one basis point', () => {
    fc.assert(
      fc.property(fc.integer({ min: -600_000, max: 600_000 }), (tick) => {
        const a = sqrtPriceAtTick(tick)
        const b = sqrtPriceAtTick(tick + 1)
        expect(b).toBeGreaterThan(a)
        expect(Number((b * b * 1_000_000_000n) / (a * a)) / 1e9).toBeCloseTo(1.0001, 6)
      }),
    )
  })

  test('a price converts to a square-root price and back, in both token orders', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 100_000, noNaN: true }), fc.boolean(), (price, wrapperIsToken0) => {
        const units = wrapperIsToken0 ? token0 : token1
        const roundTrip = Number(fromSqrtPrice(toSqrtPrice(toFraction(price), units), units)) / 1e12
        expect(Math.abs(roundTrip / price - 1)).toBeLessThan(1e-9)
      }),
    )
  })

  test('the integer square root is rounded down', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 1n << 300n }), (n) => {
        const root = integerSqrt(n)
        expect(root * root <= n && (root + 1n) * (root + 1n) > n).toBe(true)
      }),
    )
  })
})

describe('depth near the reference', () => {
  test.each([
    ['token0', token0],
    ['token1', token1],
  ] as const)('%s agrees with L(1/√a − 1/√b)', (_name, units) => {
    const liquidity = 5_000_000_000_000n
    const depth = depthNearReference(flatPool(250, liquidity, units), 250, 50)
    const top = 250 * 1.005 * 0.997
    // Raw units: a whole wrapper token is 10^8, a quote 10^6, so L in whole tokens is L / 10^7.
    const expected = (5_000_000_000_000 / 1e7) * (1 / Math.sqrt(250) - 1 / Math.sqrt(top))
    expect(depth.complete).toBe(true)
    expect(depth.tokens).toBeCloseTo(expected, 4)
  })

  test('is zero when the price is above the band', () => {
    expect(depthNearReference(flatPool(252, 5_000_000_000_000n), 250, 50).tokens).toBe(0)
  })

  test('counts only the part inside the band when the price is below it', () => {
    const inside = depthNearReference(flatPool(250 * 0.995, 5_000_000_000_000n), 250, 50)
    const below = depthNearReference(flatPool(230, 5_000_000_000_000n), 250, 50)
    expect(below.tokens).toBeCloseTo(inside.tokens, 6)
  })

  test('is marked incomplete when ticks inside the band were not read', () => {
    const venue = flatPool(250, 5_000_000_000_000n)
    const partlyRead = { ...venue, pool: { ...venue.pool, readFrom: venue.pool.tick - 5, readTo: venue.pool.tick + 5 } }
    const depth = depthNearReference(partlyRead, 250, 50)
    expect(depth.complete).toBe(false)
    expect(depth.tokens).toBeLessThan(depthNearReference(venue, 250, 50).tokens)
  })

  test('does not count beyond the tick where the liquidity ends', () => {
    const venue = flatPool(250, 5_000_000_000_000n)
    const edge = Math.ceil((venue.pool.tick + 5) / 60) * 60
    const endingPool = { ...venue, pool: { ...venue.pool, ticks: [{ tick: edge, liquidityNet: -5_000_000_000_000n }] } }
    const upToEdge = simulateSwapToPrice(venue.pool, sqrtPriceAtTick(edge))
    expect(depthNearReference(endingPool, 300, 5000).tokens).toBeCloseTo(Number(upToEdge.amountOut) / 1e8, 8)
  })

  test('of a constant product pool is x(1 − √(p/p_hi))', () => {
    const venue: Venue = {
      kind: 'constant_product',
      id: 'cp',
      units: token0,
      wrapperReserve: 1_000_00000000n,
      quoteReserve: 250_000_000000n,
      feePips: 3000,
    }
    expect(spotPrice(venue)).toBe(250)
    expect(depthNearReference(venue, 250, 50).tokens).toBeCloseTo(1000 * (1 - Math.sqrt(1 / (1.005 * 0.997))), 6)
    expect(depthNearReference(venue, 240, 50).tokens).toBe(0)
    expect(distanceToReference(venue, 240).quote).toBeCloseTo(250_000 * (1 - Math.sqrt(240 / 250)), 2)
  })

  test('of an order book is the sum of the asks inside the band', () => {
    const venue: Venue = {
      kind: 'order_book',
      id: 'book',
      feePips: 0,
      bids: [{ price: 249.5, size: 3 }],
      asks: [
        { price: 250.5, size: 2 },
        { price: 251.25, size: 4 },
        { price: 251.26, size: 8 },
      ],
    }
    expect(depthNearReference(venue, 250, 50).tokens).toBe(6)
    expect(spotPrice(venue)).toBe(250)
    expect(distanceToReference(venue, 249).quote).toBe(3 * 249.5)
    expect(spotPrice({ ...venue, bids: [] })).toBeUndefined()
  })
})

describe('distance to the reference', () => {
  test('is zero at the reference and grows with the gap', () => {
    const quote = (price: number) => distanceToReference(flatPool(price, 5_000_000_000_000n), 250).quote
    expect(quote(250)).toBeLessThan(0.01)
    expect(quote(252)).toBeGreaterThan(quote(251))
    expect(quote(248)).toBeGreaterThan(quote(249))
    expect(quote(252)).toBeCloseTo(500_000 * (Math.sqrt(252) - Math.sqrt(250)), 2)
  })

  test('a swap there and back, without fee, never pays out more than was paid in', () => {
    fc.assert(
      fc.property(fc.double({ min: 200, max: 300, noNaN: true }), fc.boolean(), (price, wrapperIsToken0) => {
        const units = wrapperIsToken0 ? token0 : token1
        const pool = { ...flatPool(250, 123_456_789_012n, units).pool, feePips: 0 }
        const forwardSwap = simulateSwapToPrice(pool, toSqrtPrice(toFraction(price), units))
        const returnSwap = simulateSwapToPrice(forwardSwap.poolAfter, pool.sqrtPriceX96)
        expect(returnSwap.amountOut <= forwardSwap.amountIn).toBe(true)
        expect(returnSwap.amountIn >= forwardSwap.amountOut).toBe(true)
      }),
    )
  })
})
