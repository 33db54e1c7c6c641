import {
  type CoveredWrapper,
  type ParsedResponse,
  type PriceSource,
  PriceSourceError,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import {
  decodeWord,
  decodeWords,
  type EvmCall,
  type EvmEndpoint,
  encodeArgument,
  ethCall,
  evmBatchRequest,
  getBlock,
  parseBlock,
  parseEvmBatch,
  SELECTOR,
  toAddress,
  toSigned,
} from './evm-rpc.ts'

/**
 * Reads pools of concentrated liquidity at one block: first the block, then the pool's state, then the bitmap words
 * around its price, then the ticks those words mark. Uniswap v3 and its forks differ only in the number of words of
 * their results; a result with another number of words is rejected, because it would be decoded wrongly.
 */
export type PoolLayout = {
  id: string
  kind: CoveredWrapper['pools'][number]['kind']
  slot0Words: number
  tickWords: number
}

/** About a quarter of the price to each side, which contains the band and any gap worth scoring. */
const TICK_RANGE = 2_500
const MAX_TICKS = 2_000
const CALLS_PER_BATCH = 100
const MIN_TICK = -887_272
const MAX_TICK = 887_272
const WORD_SIZE = 256

type PoolContext = {
  stage: 'block' | 'state' | 'bitmap' | 'ticks'
  asset: string
  pool: string
  wrapper: string
  wrapperDecimals: number
  quote: string
  quoteDecimals: number
  block?: { number: number; hex: string; at: string }
  state?: PoolState
  pendingTicks?: number[]
  readTicks?: [tick: number, liquidityNet: string][]
}

type PoolState = {
  sqrtPriceX96: string
  tick: number
  liquidity: string
  feePips: number
  tickSpacing: number
  wrapperIsToken0: boolean
  readFrom: number
  readTo: number
}

export function createConcentratedPools(
  layout: PoolLayout,
  options: { endpoint: EvmEndpoint; everySeconds?: number },
): PriceSource {
  const { endpoint } = options
  const buildRequest = (calls: EvmCall[], context: PoolContext): SourceRequest =>
    evmBatchRequest(endpoint, calls, context)

  return {
    id: layout.id,
    everySeconds: options.everySeconds ?? 15,

    buildRequests(wrappers) {
      return wrappers
        .filter((wrapper) => wrapper.chain === endpoint.chain)
        .flatMap((wrapper) =>
          wrapper.pools.filter(({ kind }) => kind === layout.kind).map((pool) => ({ wrapper, pool })),
        )
        .map(({ wrapper, pool }) =>
          buildRequest([getBlock('latest')], {
            stage: 'block',
            asset: wrapper.asset,
            pool: pool.address,
            wrapper: wrapper.address,
            wrapperDecimals: wrapper.decimals,
            quote: pool.quoteAddress,
            quoteDecimals: pool.quoteDecimals,
          }),
        )
    },

    parseResponse(request, response) {
      const context = request.context as PoolContext
      const results = parseEvmBatch(request, response)
      if (context.stage === 'block')
        return followUp(buildRequest, afterBlock(context, parseBlock(results[0], response.fetchedAt)))
      const blockInfo = { publishedAt: new Date(context.block!.at), block: context.block!.number }
      if (context.stage === 'state')
        return { ...followUp(buildRequest, afterState(context, results, layout)), ...blockInfo }
      if (context.stage === 'bitmap') {
        const next = afterBitmap(context, results)
        return next.pendingTicks!.length > 0
          ? { ...followUp(buildRequest, next), ...blockInfo }
          : { ...toVenueObservation(next), ...blockInfo }
      }
      const next = afterTicks(context, results, layout)
      return next.pendingTicks!.length > 0
        ? { ...followUp(buildRequest, next), ...blockInfo }
        : { ...toVenueObservation(next), ...blockInfo }
    },
  }
}

const followUp = (
  buildRequest: (calls: EvmCall[], context: PoolContext) => SourceRequest,
  context: PoolContext,
): ParsedResponse => ({
  observations: [],
  followUps: [buildRequest(stageCalls(context), context)],
})

function stageCalls(context: PoolContext): EvmCall[] {
  const { hex } = context.block!
  const call = (to: string, data: string) => ethCall(to, data, hex)
  if (context.stage === 'state')
    return [
      ...[SELECTOR.slot0, SELECTOR.liquidity, SELECTOR.fee, SELECTOR.tickSpacing, SELECTOR.token0, SELECTOR.token1].map(
        (selector) => call(context.pool, selector),
      ),
      call(context.wrapper, SELECTOR.decimals),
      call(context.quote, SELECTOR.decimals),
    ]
  if (context.stage === 'bitmap')
    return wordRange(context.state!).map((index) => call(context.pool, SELECTOR.tickBitmap + encodeArgument(index)))
  return context
    .pendingTicks!.slice(0, CALLS_PER_BATCH)
    .map((tick) => call(context.pool, SELECTOR.ticks + encodeArgument(tick)))
}

const afterBlock = (context: PoolContext, block: { number: number; hex: string; at: Date }): PoolContext => ({
  ...context,
  stage: 'state',
  block: { number: block.number, hex: block.hex, at: block.at.toISOString() },
})

function afterState(context: PoolContext, results: unknown[], layout: PoolLayout): PoolContext {
  const [sqrtPriceX96, rawTick] = decodeWords(results[0], layout.slot0Words, 'slot0') as [bigint, bigint]
  const token0 = toAddress(decodeWord(results[4], 'token0'))
  const token1 = toAddress(decodeWord(results[5], 'token1'))
  const wrapperIsToken0 = token0 === context.wrapper
  if (!(wrapperIsToken0 ? token1 === context.quote : token1 === context.wrapper && token0 === context.quote))
    throw new PriceSourceError(`the pool ${context.pool} does not trade the wrapper against its quote currency`)
  for (const [index, decimals] of [
    [6, context.wrapperDecimals],
    [7, context.quoteDecimals],
  ] as const)
    if (decodeWord(results[index], 'decimals') !== BigInt(decimals))
      throw new PriceSourceError(`a token of the pool ${context.pool} has other decimals than the coverage list says`)
  if (sqrtPriceX96 === 0n) throw new PriceSourceError(`the pool ${context.pool} has no price yet`)
  const tick = Number(toSigned(rawTick))
  const tickSpacing = Number(toSigned(decodeWord(results[3], 'tickSpacing')))
  const feePips = Number(decodeWord(results[2], 'fee'))
  if (tick < MIN_TICK || tick > MAX_TICK || tickSpacing < 1 || tickSpacing > 32_768 || feePips >= 1_000_000)
    throw new PriceSourceError(`the pool ${context.pool} returned values that no pool can have`)
  const state: PoolState = {
    sqrtPriceX96: String(sqrtPriceX96),
    tick,
    liquidity: String(decodeWord(results[1], 'liquidity')),
    feePips,
    tickSpacing,
    wrapperIsToken0,
    readFrom: Math.max(MIN_TICK, tick - TICK_RANGE),
    readTo: Math.min(MAX_TICK, tick + TICK_RANGE),
  }
  return { ...context, stage: 'bitmap', state }
}

function wordRange({ readFrom, readTo, tickSpacing }: PoolState): number[] {
  const wordOf = (tick: number) => Math.floor(Math.floor(tick / tickSpacing) / WORD_SIZE)
  const firstWord = wordOf(readFrom)
  return Array.from({ length: wordOf(readTo) - firstWord + 1 }, (_, index) => firstWord + index)
}

function afterBitmap(context: PoolContext, results: unknown[]): PoolContext {
  const { readFrom, readTo, tickSpacing } = context.state!
  const pendingTicks: number[] = []
  wordRange(context.state!).forEach((wordIndex, index) => {
    const bits = decodeWord(results[index], 'tickBitmap')
    for (let bit = 0; bit < WORD_SIZE; bit += 1) {
      const tick = (wordIndex * WORD_SIZE + bit) * tickSpacing
      if ((bits >> BigInt(bit)) & 1n && tick >= readFrom && tick <= readTo) pendingTicks.push(tick)
    }
  })
  if (pendingTicks.length > MAX_TICKS)
    throw new PriceSourceError(`the pool ${context.pool} marks more than ${MAX_TICKS} ticks`)
  return { ...context, stage: 'ticks', pendingTicks, readTicks: [] }
}

function afterTicks(context: PoolContext, results: unknown[], layout: PoolLayout): PoolContext {
  const requestedTicks = context.pendingTicks!.slice(0, CALLS_PER_BATCH)
  const readTicks = requestedTicks.map((tick, index): [number, string] => {
    const fields = decodeWords(results[index], layout.tickWords, 'ticks')
    if (fields.at(-1) !== 1n) throw new PriceSourceError(`the tick ${tick} is marked but not initialised`)
    return [tick, String(toSigned(fields[1]!))]
  })
  return {
    ...context,
    pendingTicks: context.pendingTicks!.slice(CALLS_PER_BATCH),
    readTicks: [...context.readTicks!, ...readTicks],
  }
}

function toVenueObservation(context: PoolContext): ParsedResponse {
  const state = context.state!
  return {
    observations: [
      {
        kind: 'venue',
        asset: context.asset,
        publishedAt: new Date(context.block!.at),
        block: context.block!.number,
        venue: {
          kind: 'concentrated',
          id: context.pool,
          units: {
            wrapperIsToken0: state.wrapperIsToken0,
            wrapperDecimals: context.wrapperDecimals,
            quoteDecimals: context.quoteDecimals,
          },
          pool: {
            sqrtPriceX96: BigInt(state.sqrtPriceX96),
            tick: state.tick,
            liquidity: BigInt(state.liquidity),
            tickSpacing: state.tickSpacing,
            feePips: state.feePips,
            ticks: context.readTicks!.map(([tick, liquidityNet]) => ({ tick, liquidityNet: BigInt(liquidityNet) })),
            readFrom: state.readFrom,
            readTo: state.readTo,
          },
        },
      },
    ],
  }
}
