import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHttpFetch } from '../../src/adapters/prices/http-fetch.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { simulateSwapToPrice } from '../../src/modules/basis/concentrated-liquidity.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { depthNearReference, spotPrice, type Venue } from '../../src/modules/basis/depth.ts'
import { fromUnits, toFraction } from '../../src/modules/basis/integer-math.ts'
import { pollSource } from '../../src/modules/basis/poll-source.ts'
import type { CoveredWrapper } from '../../src/modules/basis/price-source.ts'
import { toSqrtPrice } from '../../src/modules/basis/tick-math.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type Contract, type PoolChain, startPoolChain } from './pool-chain.ts'

/** Compares the simulated swaps with the real pool contract, to the last unit. */
const WRAPPER_DECIMALS = 8
const QUOTE_DECIMALS = 6
const START_PRICE = 250

let chain: PoolChain
let actor: Contract

beforeAll(async () => {
  chain = await startPoolChain(systemClock)
  actor = await chain.deployTest('PoolActor')
  await chain.allowFee(100, 1)
})
afterAll(() => chain.close())

type ConcentratedVenue = Extract<Venue, { kind: 'concentrated' }>
type PoolSetup = { pool: Contract; wrapper: CoveredWrapper; units: ConcentratedVenue['units']; spacing: number }

async function setUpPool(fee: number, spacing: number, wrapperIsToken0: boolean): Promise<PoolSetup> {
  const [wrapperToken, quoteToken] = await chain.tokens([WRAPPER_DECIMALS, QUOTE_DECIMALS], wrapperIsToken0)
  for (const token of [wrapperToken, quoteToken]) await chain.send(token, 'mint', [actor.address, 10n ** 30n])
  const units = { wrapperIsToken0, wrapperDecimals: WRAPPER_DECIMALS, quoteDecimals: QUOTE_DECIMALS }
  const pool = await chain.createPool(wrapperToken, quoteToken, fee, toSqrtPrice(toFraction(START_PRICE), units))
  const wrapper: CoveredWrapper = {
    ...loadCoverage().find('AAPLc')!,
    address: wrapperToken.address,
    asset: `base:${wrapperToken.address}`,
    pools: [
      { kind: 'uniswap-v3', address: pool.address, quoteAddress: quoteToken.address, quoteDecimals: QUOTE_DECIMALS },
    ],
  }
  return { pool, wrapper, units, spacing }
}

/** Reads the pool through the adapter and over HTTP, as in production. */
async function readPool({ wrapper }: PoolSetup): Promise<ConcentratedVenue> {
  const source = createUniswapV3({ endpoint: { url: chain.rpcUrl, chain: 'base' } })
  const deps = { fetch: createHttpFetch({ clock: systemClock }), storeBody: async () => {} }
  const [result] = await pollSource(source, [wrapper], new Date(), deps)
  if (result!.rejection) throw new Error(result!.rejection)
  const { observation } = result!.observations[0]!
  return (observation as Extract<typeof observation, { kind: 'venue' }>).venue as ConcentratedVenue
}

/** The amounts of real swaps to each of these prices in turn. Calls the contract without changing its state. */
async function simulateOnChain(setup: PoolSetup, prices: bigint[]): Promise<{ amountIn: bigint; amountOut: bigint }[]> {
  const [amounts0, amounts1] = await chain.read<[bigint[], bigint[]]>(actor, 'moveTo', [setup.pool.address, prices])
  return amounts0.map((amount0, index) => {
    const amount1 = amounts1[index]!
    return amount0 >= 0n && amount1 <= 0n
      ? { amountIn: amount0, amountOut: -amount1 }
      : { amountIn: amount1, amountOut: -amount0 }
  })
}

const positions = fc.array(
  fc.record({
    from: fc.integer({ min: -20, max: 20 }),
    width: fc.integer({ min: 1, max: 25 }),
    liquidity: fc.bigInt({ min: 1_000_000n, max: 10n ** 17n }),
  }),
  { minLength: 3, maxLength: 14 },
)
const priceWithin = (within: number) =>
  fc.double({ min: START_PRICE * (1 - within), max: START_PRICE * (1 + within), noNaN: true })

const cases = [
  [100, 1, 'finest'],
  [500, 10, 'fine'],
  [3000, 60, 'common'],
  [10_000, 200, 'coarse'],
] as const

describe.each(cases)('a pool with a fee of %i and ticks every %i (%s)', (fee, spacing) => {
  test.each([true, false])(
    'agrees with real swaps to the last unit, wrapper as token0: %s',
    async (wrapperIsToken0) => {
      const setup = await setUpPool(fee, spacing, wrapperIsToken0)
      const { tick: start } = (await readPool(setup)).pool
      const [layout] = fc.sample(positions, { seed: fee * 2 + Number(wrapperIsToken0), numRuns: 1 }) as [
        typeof positions extends fc.Arbitrary<infer T> ? T : never,
      ]
      // Steps of about a thousandth for any spacing, so that every swap crosses many of them.
      const step = Math.max(1, Math.round(12 / spacing)) * spacing
      const base = Math.floor(start / spacing) * spacing
      await chain.send(actor, 'provide', [setup.pool.address, base - 120 * step, base + 120 * step, 10n ** 12n])
      for (const { from, width, liquidity } of layout)
        await chain.send(actor, 'provide', [
          setup.pool.address,
          base + from * step,
          base + (from + width) * step,
          liquidity,
        ])

      let crossedTicks = 0
      await fc.assert(
        fc.asyncProperty(
          priceWithin(0.06),
          priceWithin(0.05),
          fc.constantFrom(10, 50, 200),
          async (price, reference, bandBps) => {
            await chain.send(actor, 'moveTo', [setup.pool.address, [toSqrtPrice(toFraction(price), setup.units)]])
            const venue = await readPool(setup)
            const spot = spotPrice(venue)!
            const low = (toFraction(reference) * BigInt(10_000 - bandBps)) / 10_000n
            const high =
              (toFraction(reference) * BigInt(10_000 + bandBps) * BigInt(1_000_000 - fee)) / 10_000n / 1_000_000n
            const targets = [
              toSqrtPrice(low, setup.units),
              toSqrtPrice(high, setup.units),
              toSqrtPrice(toFraction(reference), setup.units),
            ]

            // The amounts of the swaps over all three prices.
            const onChain = await simulateOnChain(setup, targets)
            let pool = venue.pool
            for (const [index, target] of targets.entries()) {
              const swap = simulateSwapToPrice(pool, target)
              expect(swap.reachedTarget).toBe(true)
              expect({ in: swap.amountIn, out: swap.amountOut }).toEqual({
                in: onChain[index]!.amountIn,
                out: onChain[index]!.amountOut,
              })
              crossedTicks += Math.abs(swap.poolAfter.tick - pool.tick) / spacing
              pool = swap.poolAfter
            }

            // The published depth is exactly what can be bought inside the band.
            const depth = depthNearReference(venue, reference, bandBps)
            const highPrice = Number(high) / 1e12
            const lowPrice = Number(low) / 1e12
            if (spot >= highPrice || high <= low) expect(depth.tokens).toBe(0)
            else {
              const path = spot < lowPrice ? targets.slice(0, 2) : targets.slice(1, 2)
              const bought = (await simulateOnChain(setup, path)).at(-1)!.amountOut
              expect(depth.tokens).toBe(fromUnits(bought, WRAPPER_DECIMALS))
            }
          },
        ),
        { numRuns: 60, seed: 20261116 + fee },
      )
      expect(crossedTicks).toBeGreaterThan(20)
    },
  )
})
