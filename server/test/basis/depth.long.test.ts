import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createHttpFetch } from '../../src/adapters/prices/http-fetch.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { collect } from '../../src/modules/basis/collect.ts'
import { crossTo } from '../../src/modules/basis/concentrated.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { nearReference, spotPrice, type Venue } from '../../src/modules/basis/depth.ts'
import { fromUnits, toFraction } from '../../src/modules/basis/integer-math.ts'
import type { Covered } from '../../src/modules/basis/price-source.ts'
import { sqrtPriceOf } from '../../src/modules/basis/tick-math.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type BasisChain, type Contract, startChain } from './chain.ts'

/** The pool contract is the oracle: what it gives for a swap is what the integration must have said, to the last unit. */
const WRAPPER_DECIMALS = 8
const QUOTE_DECIMALS = 6
const START = 250

let chain: BasisChain
let actor: Contract

beforeAll(async () => {
  chain = await startChain(systemClock)
  actor = await chain.deployTest('PoolActor')
  await chain.allowFee(100, 1)
})
afterAll(() => chain.close())

type Concentrated = Extract<Venue, { kind: 'concentrated' }>
type Rig = { pool: Contract; covered: Covered; units: Concentrated['units']; spacing: number }

async function build(fee: number, spacing: number, wrapperIsToken0: boolean): Promise<Rig> {
  const [wrapper, quote] = await chain.tokens([WRAPPER_DECIMALS, QUOTE_DECIMALS], wrapperIsToken0)
  for (const token of [wrapper, quote]) await chain.send(token, 'mint', [actor.address, 10n ** 30n])
  const units = { wrapperIsToken0, wrapperDecimals: WRAPPER_DECIMALS, quoteDecimals: QUOTE_DECIMALS }
  const pool = await chain.createPool(wrapper, quote, fee, sqrtPriceOf(toFraction(START), units))
  const covered: Covered = {
    ...loadCoverage().find('AAPLc')!,
    address: wrapper.address,
    asset: `base:${wrapper.address}`,
    pools: [{ kind: 'uniswap-v3', address: pool.address, quoteAddress: quote.address, quoteDecimals: QUOTE_DECIMALS }],
  }
  return { pool, covered, units, spacing }
}

/** Through the adapter and over HTTP, as in production. */
async function readPool({ covered }: Rig): Promise<Concentrated> {
  const source = createUniswapV3({ endpoint: { url: chain.rpcUrl, chain: 'base' } })
  const deps = { fetch: createHttpFetch({ clock: systemClock }), keepBody: async () => {} }
  const [collected] = await collect(source, [covered], new Date(), deps)
  if (collected!.refused) throw new Error(collected!.refused)
  const { observation } = collected!.kept[0]!
  return (observation as Extract<typeof observation, { kind: 'venue' }>).venue as Concentrated
}

/** What the contract itself pays and takes on the way over these prices, without keeping the outcome. */
async function swapped(rig: Rig, prices: bigint[]): Promise<{ amountIn: bigint; amountOut: bigint }[]> {
  const [amounts0, amounts1] = await chain.read<[bigint[], bigint[]]>(actor, 'moveTo', [rig.pool.address, prices])
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
const near = (within: number) => fc.double({ min: START * (1 - within), max: START * (1 + within), noNaN: true })

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
      const rig = await build(fee, spacing, wrapperIsToken0)
      const { tick: start } = (await readPool(rig)).pool
      const [layout] = fc.sample(positions, { seed: fee * 2 + Number(wrapperIsToken0), numRuns: 1 }) as [
        typeof positions extends fc.Arbitrary<infer T> ? T : never,
      ]
      // Steps of a thousandth or so, whatever the spacing, so that every swap crosses many of them.
      const step = Math.max(1, Math.round(12 / spacing)) * spacing
      const base = Math.floor(start / spacing) * spacing
      await chain.send(actor, 'provide', [rig.pool.address, base - 120 * step, base + 120 * step, 10n ** 12n])
      for (const { from, width, liquidity } of layout)
        await chain.send(actor, 'provide', [
          rig.pool.address,
          base + from * step,
          base + (from + width) * step,
          liquidity,
        ])

      let crossed = 0
      await fc.assert(
        fc.asyncProperty(near(0.06), near(0.05), fc.constantFrom(10, 50, 200), async (now, reference, bandBps) => {
          await chain.send(actor, 'moveTo', [rig.pool.address, [sqrtPriceOf(toFraction(now), rig.units)]])
          const venue = await readPool(rig)
          const spot = spotPrice(venue)!
          const low = (toFraction(reference) * BigInt(10_000 - bandBps)) / 10_000n
          const high =
            (toFraction(reference) * BigInt(10_000 + bandBps) * BigInt(1_000_000 - fee)) / 10_000n / 1_000_000n
          const targets = [
            sqrtPriceOf(low, rig.units),
            sqrtPriceOf(high, rig.units),
            sqrtPriceOf(toFraction(reference), rig.units),
          ]

          // Any way over the three prices, step by step: what goes in and what comes out.
          const real = await swapped(rig, targets)
          let pool = venue.pool
          for (const [index, target] of targets.entries()) {
            const crossing = crossTo(pool, target)
            expect(crossing.reached).toBe(true)
            expect({ in: crossing.amountIn, out: crossing.amountOut }).toEqual({
              in: real[index]!.amountIn,
              out: real[index]!.amountOut,
            })
            crossed += Math.abs(crossing.after.tick - pool.tick) / spacing
            pool = crossing.after
          }

          // The published figure is exactly what can be bought inside the band.
          const depth = nearReference(venue, reference, bandBps)
          const highPrice = Number(high) / 1e12
          const lowPrice = Number(low) / 1e12
          if (spot >= highPrice || high <= low) expect(depth.tokens).toBe(0)
          else {
            const way = spot < lowPrice ? targets.slice(0, 2) : targets.slice(1, 2)
            const bought = (await swapped(rig, way)).at(-1)!.amountOut
            expect(depth.tokens).toBe(fromUnits(bought, WRAPPER_DECIMALS))
          }
        }),
        { numRuns: 60, seed: 20261116 + fee },
      )
      expect(crossed).toBeGreaterThan(20)
    },
  )
})
