import { ceilDivide } from './integer-math.ts'
import { MAX_TICK, MIN_TICK, Q96, sqrtPriceAtTick, tickAtSqrtPrice } from './tick-math.ts'

/** What is read from a pool at one block. `ticks` holds every initialised tick from `readFrom` to `readTo`. */
export type ConcentratedPool = {
  sqrtPriceX96: bigint
  tick: number
  liquidity: bigint
  tickSpacing: number
  /** Millionths of the input. */
  feePips: number
  ticks: readonly { tick: number; liquidityNet: bigint }[]
  readFrom: number
  readTo: number
}

/** What a swap to a price would do: paid in with the fee, given out, the pool after it. */
export type Crossing = { amountIn: bigint; amountOut: bigint; after: ConcentratedPool; reached: boolean }

const FEE_ONE = 1_000_000n
/** The pool keeps its ticks in words of 256, and a swap ends a step at each word's edge. */
const WORD = 256
const MAX_STEPS = 100_000

/**
 * Moves the pool's price to `target` as a swap with that price limit and no end of input would.
 * Each step ends where the pool's own does (an initialised tick or the edge of a bitmap word) and rounds as it does,
 * so the output agrees with a real swap to the last unit. Where the ticks that were read end, the crossing ends too.
 */
export function crossTo(pool: ConcentratedPool, wanted: bigint): Crossing {
  const target = min(max(wanted, sqrtPriceAtTick(pool.readFrom)), sqrtPriceAtTick(pool.readTo))
  const falling = target < pool.sqrtPriceX96
  const ticks = [...pool.ticks].sort((a, b) => a.tick - b.tick)
  let { sqrtPriceX96, tick, liquidity } = pool
  let amountIn = 0n
  let amountOut = 0n

  for (let steps = 0; sqrtPriceX96 !== target; steps += 1) {
    if (steps > MAX_STEPS) throw new RangeError('This crossing has no end.')
    const next = nextBoundary(ticks, tick, pool.tickSpacing, falling)
    const boundary = sqrtPriceAtTick(next.tick)
    const stop = falling ? max(boundary, target) : min(boundary, target)
    const step = stepAmounts(sqrtPriceX96, stop, liquidity, pool.feePips, falling)
    amountIn += step.amountIn
    amountOut += step.amountOut
    sqrtPriceX96 = stop
    if (stop === boundary) {
      if (next.liquidityNet !== undefined) liquidity += falling ? -next.liquidityNet : next.liquidityNet
      tick = falling ? next.tick - 1 : next.tick
    } else tick = tickAtSqrtPrice(stop)
  }
  return { amountIn, amountOut, reached: target === wanted, after: { ...pool, sqrtPriceX96, tick, liquidity } }
}

type Boundary = { tick: number; liquidityNet?: bigint }

function nextBoundary(ticks: ConcentratedPool['ticks'], tick: number, spacing: number, falling: boolean): Boundary {
  const compressed = Math.floor(tick / spacing)
  const edge = falling ? Math.floor(compressed / WORD) * WORD : Math.floor((compressed + 1) / WORD) * WORD + WORD - 1
  const edgeTick = Math.min(Math.max(edge * spacing, MIN_TICK), MAX_TICK)
  const initialised = falling ? lastAtOrBelow(ticks, tick) : firstAbove(ticks, tick)
  if (!initialised) return { tick: edgeTick }
  const first = falling ? initialised.tick >= edgeTick : initialised.tick <= edgeTick
  return first ? initialised : { tick: edgeTick }
}

function firstAbove(ticks: ConcentratedPool['ticks'], tick: number) {
  return ticks[countAtOrBelow(ticks, tick)]
}

function lastAtOrBelow(ticks: ConcentratedPool['ticks'], tick: number) {
  return ticks[countAtOrBelow(ticks, tick) - 1]
}

function countAtOrBelow(ticks: ConcentratedPool['ticks'], tick: number): number {
  let low = 0
  let high = ticks.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ticks[middle]!.tick <= tick) low = middle + 1
    else high = middle
  }
  return low
}

/** The input is rounded up and the output down, each step in the pool's favour; the fee comes on top of the input. */
function stepAmounts(from: bigint, to: bigint, liquidity: bigint, feePips: number, falling: boolean) {
  const [lower, upper] = falling ? [to, from] : [from, to]
  const net = falling ? token0Between(lower, upper, liquidity, true) : token1Between(lower, upper, liquidity, true)
  const fee = ceilDivide(net * BigInt(feePips), FEE_ONE - BigInt(feePips))
  const amountOut = falling
    ? token1Between(lower, upper, liquidity, false)
    : token0Between(lower, upper, liquidity, false)
  return { amountIn: net + fee, amountOut }
}

/** L · (1/√a − 1/√b), in the pool's own order of multiplications and roundings. */
function token0Between(lower: bigint, upper: bigint, liquidity: bigint, roundUp: boolean): bigint {
  const product = (liquidity << 96n) * (upper - lower)
  return roundUp ? ceilDivide(ceilDivide(product, upper), lower) : product / upper / lower
}

/** L · (√b − √a). */
function token1Between(lower: bigint, upper: bigint, liquidity: bigint, roundUp: boolean): bigint {
  const product = liquidity * (upper - lower)
  return roundUp ? ceilDivide(product, Q96) : product / Q96
}

const max = (a: bigint, b: bigint) => (a > b ? a : b)
const min = (a: bigint, b: bigint) => (a < b ? a : b)
