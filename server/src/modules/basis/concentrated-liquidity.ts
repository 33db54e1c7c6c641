import { ceilDivide } from './integer-math.ts'
import { MAX_TICK, MIN_TICK, Q96, sqrtPriceAtTick, tickAtSqrtPrice } from './tick-math.ts'

/** The state of a pool at one block. `ticks` holds every initialised tick from `readFrom` to `readTo`. */
export type ConcentratedPool = {
  sqrtPriceX96: bigint
  tick: number
  liquidity: bigint
  tickSpacing: number
  /** The fee in millionths of the input. */
  feePips: number
  ticks: readonly { tick: number; liquidityNet: bigint }[]
  readFrom: number
  readTo: number
}

/** The result of a simulated swap. `amountIn` includes the fee. */
export type SwapResult = { amountIn: bigint; amountOut: bigint; poolAfter: ConcentratedPool; reachedTarget: boolean }

const FEE_ONE = 1_000_000n
/** The pool stores its ticks in bitmap words of 256, and a swap ends a step at the edge of each word. */
const WORD_SIZE = 256
const MAX_STEPS = 100_000

/**
 * Moves the pool's price to `targetSqrtPrice` like a swap with that price limit and unlimited input.
 * Each step ends where the pool's own step does (an initialised tick or the edge of a bitmap word) and rounds like it,
 * so the amounts equal those of a real swap to the last unit. The swap stops where the ticks that were read end.
 */
export function simulateSwapToPrice(pool: ConcentratedPool, targetSqrtPrice: bigint): SwapResult {
  const target = min(max(targetSqrtPrice, sqrtPriceAtTick(pool.readFrom)), sqrtPriceAtTick(pool.readTo))
  const falling = target < pool.sqrtPriceX96
  const ticks = [...pool.ticks].sort((a, b) => a.tick - b.tick)
  let { sqrtPriceX96, tick, liquidity } = pool
  let amountIn = 0n
  let amountOut = 0n

  for (let steps = 0; sqrtPriceX96 !== target; steps += 1) {
    if (steps > MAX_STEPS) throw new RangeError('The simulated swap did not reach its target price.')
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
  return {
    amountIn,
    amountOut,
    reachedTarget: target === targetSqrtPrice,
    poolAfter: { ...pool, sqrtPriceX96, tick, liquidity },
  }
}

type Boundary = { tick: number; liquidityNet?: bigint }

function nextBoundary(ticks: ConcentratedPool['ticks'], tick: number, spacing: number, falling: boolean): Boundary {
  const tickIndex = Math.floor(tick / spacing)
  const edgeIndex = falling
    ? Math.floor(tickIndex / WORD_SIZE) * WORD_SIZE
    : Math.floor((tickIndex + 1) / WORD_SIZE) * WORD_SIZE + WORD_SIZE - 1
  const edgeTick = Math.min(Math.max(edgeIndex * spacing, MIN_TICK), MAX_TICK)
  const initialisedTick = falling ? lastAtOrBelow(ticks, tick) : firstAbove(ticks, tick)
  if (!initialisedTick) return { tick: edgeTick }
  const tickIsNearer = falling ? initialisedTick.tick >= edgeTick : initialisedTick.tick <= edgeTick
  return tickIsNearer ? initialisedTick : { tick: edgeTick }
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

/** Rounds the input up and the output down, in the pool's favour, at each step; the fee is added to the input. */
function stepAmounts(from: bigint, to: bigint, liquidity: bigint, feePips: number, falling: boolean) {
  const [lower, upper] = falling ? [to, from] : [from, to]
  const net = falling ? token0Between(lower, upper, liquidity, true) : token1Between(lower, upper, liquidity, true)
  const fee = ceilDivide(net * BigInt(feePips), FEE_ONE - BigInt(feePips))
  const amountOut = falling
    ? token1Between(lower, upper, liquidity, false)
    : token0Between(lower, upper, liquidity, false)
  return { amountIn: net + fee, amountOut }
}

/** L · (1/√a − 1/√b), with the pool's order of multiplication and rounding. */
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
