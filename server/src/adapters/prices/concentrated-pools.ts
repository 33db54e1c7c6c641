import {
  type Covered,
  type PriceSource,
  type SourceReading,
  SourceRefused,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import {
  addressOf,
  argument,
  askEvm,
  type EvmCall,
  type EvmEndpoint,
  ethCall,
  getBlock,
  readBlock,
  readEvm,
  SELECTOR,
  signed,
  word,
  words,
} from './evm-rpc.ts'

/**
 * Reads pools of concentrated liquidity at one block: first the block, then the pool's state, then the words of the
 * bitmap around its price, then the ticks those words mark. Uniswap v3 and its kin differ only in how wide their
 * answers are, and an answer of another width is refused, since read as the wrong kind it would decode to nonsense.
 */
export type PoolLayout = { id: string; kind: Covered['pools'][number]['kind']; slot0Words: number; tickWords: number }

/** About a quarter of the price to each side: the band and any gap worth scoring lie inside. */
const REACH_TICKS = 2_500
const MOST_TICKS = 2_000
const CALLS_A_BATCH = 100
const MIN_TICK = -887_272
const MAX_TICK = 887_272
const WORD = 256

type PoolMemo = {
  stage: 'block' | 'state' | 'bitmap' | 'ticks'
  asset: string
  pool: string
  wrapper: string
  wrapperDecimals: number
  quote: string
  quoteDecimals: number
  block?: { number: number; hex: string; at: string }
  state?: PoolState
  firstWord?: number
  waiting?: number[]
  read?: [tick: number, net: string][]
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
  const ask = (calls: EvmCall[], memo: PoolMemo): SourceRequest => askEvm(endpoint, calls, memo)

  return {
    id: layout.id,
    everySeconds: options.everySeconds ?? 15,

    ask(covered) {
      return covered
        .filter((each) => each.chain === endpoint.chain)
        .flatMap((each) => each.pools.filter(({ kind }) => kind === layout.kind).map((pool) => ({ each, pool })))
        .map(({ each, pool }) =>
          ask([getBlock('latest')], {
            stage: 'block',
            asset: each.asset,
            pool: pool.address,
            wrapper: each.address,
            wrapperDecimals: each.decimals,
            quote: pool.quoteAddress,
            quoteDecimals: pool.quoteDecimals,
          }),
        )
    },

    read(request, answer) {
      const memo = request.memo as PoolMemo
      const results = readEvm(request, answer)
      if (memo.stage === 'block') return follow(ask, afterBlock(memo, readBlock(results[0], answer.fetchedAt)))
      const at = { publishedAt: new Date(memo.block!.at), block: memo.block!.number }
      if (memo.stage === 'state') return { ...follow(ask, afterState(memo, results, layout)), ...at }
      if (memo.stage === 'bitmap') {
        const next = afterBitmap(memo, results)
        return next.waiting!.length > 0 ? { ...follow(ask, next), ...at } : { ...finished(next), ...at }
      }
      const next = afterTicks(memo, results, layout)
      return next.waiting!.length > 0 ? { ...follow(ask, next), ...at } : { ...finished(next), ...at }
    },
  }
}

const follow = (ask: (calls: EvmCall[], memo: PoolMemo) => SourceRequest, memo: PoolMemo): SourceReading => ({
  observations: [],
  follow: [ask(callsOf(memo), memo)],
})

function callsOf(memo: PoolMemo): EvmCall[] {
  const { hex } = memo.block!
  const call = (to: string, data: string) => ethCall(to, data, hex)
  if (memo.stage === 'state')
    return [
      ...[SELECTOR.slot0, SELECTOR.liquidity, SELECTOR.fee, SELECTOR.tickSpacing, SELECTOR.token0, SELECTOR.token1].map(
        (selector) => call(memo.pool, selector),
      ),
      call(memo.wrapper, SELECTOR.decimals),
      call(memo.quote, SELECTOR.decimals),
    ]
  if (memo.stage === 'bitmap')
    return wordRange(memo.state!).map((index) => call(memo.pool, SELECTOR.tickBitmap + argument(index)))
  return memo.waiting!.slice(0, CALLS_A_BATCH).map((tick) => call(memo.pool, SELECTOR.ticks + argument(tick)))
}

const afterBlock = (memo: PoolMemo, block: { number: number; hex: string; at: Date }): PoolMemo => ({
  ...memo,
  stage: 'state',
  block: { number: block.number, hex: block.hex, at: block.at.toISOString() },
})

function afterState(memo: PoolMemo, results: unknown[], layout: PoolLayout): PoolMemo {
  const [sqrtPriceX96, rawTick] = words(results[0], layout.slot0Words, 'slot0') as [bigint, bigint]
  const token0 = addressOf(word(results[4], 'token0'))
  const token1 = addressOf(word(results[5], 'token1'))
  const wrapperIsToken0 = token0 === memo.wrapper
  if (!(wrapperIsToken0 ? token1 === memo.quote : token1 === memo.wrapper && token0 === memo.quote))
    throw new SourceRefused(`the pool ${memo.pool} does not trade the wrapper against its quote currency`)
  for (const [index, decimals] of [
    [6, memo.wrapperDecimals],
    [7, memo.quoteDecimals],
  ] as const)
    if (word(results[index], 'decimals') !== BigInt(decimals))
      throw new SourceRefused(`a token of the pool ${memo.pool} has other decimals than the coverage list says`)
  if (sqrtPriceX96 === 0n) throw new SourceRefused(`the pool ${memo.pool} has no price yet`)
  const tick = Number(signed(rawTick))
  const tickSpacing = Number(signed(word(results[3], 'tickSpacing')))
  const feePips = Number(word(results[2], 'fee'))
  if (tick < MIN_TICK || tick > MAX_TICK || tickSpacing < 1 || tickSpacing > 32_768 || feePips >= 1_000_000)
    throw new SourceRefused(`the pool ${memo.pool} answers what no pool can`)
  const state: PoolState = {
    sqrtPriceX96: String(sqrtPriceX96),
    tick,
    liquidity: String(word(results[1], 'liquidity')),
    feePips,
    tickSpacing,
    wrapperIsToken0,
    readFrom: Math.max(MIN_TICK, tick - REACH_TICKS),
    readTo: Math.min(MAX_TICK, tick + REACH_TICKS),
  }
  return { ...memo, stage: 'bitmap', state }
}

function wordRange({ readFrom, readTo, tickSpacing }: PoolState): number[] {
  const wordOf = (tick: number) => Math.floor(Math.floor(tick / tickSpacing) / WORD)
  const first = wordOf(readFrom)
  return Array.from({ length: wordOf(readTo) - first + 1 }, (_, index) => first + index)
}

function afterBitmap(memo: PoolMemo, results: unknown[]): PoolMemo {
  const { readFrom, readTo, tickSpacing } = memo.state!
  const waiting: number[] = []
  wordRange(memo.state!).forEach((wordIndex, index) => {
    const bits = word(results[index], 'tickBitmap')
    for (let bit = 0; bit < WORD; bit += 1) {
      const tick = (wordIndex * WORD + bit) * tickSpacing
      if ((bits >> BigInt(bit)) & 1n && tick >= readFrom && tick <= readTo) waiting.push(tick)
    }
  })
  if (waiting.length > MOST_TICKS) throw new SourceRefused(`the pool ${memo.pool} marks more than ${MOST_TICKS} ticks`)
  return { ...memo, stage: 'ticks', waiting, read: [] }
}

function afterTicks(memo: PoolMemo, results: unknown[], layout: PoolLayout): PoolMemo {
  const asked = memo.waiting!.slice(0, CALLS_A_BATCH)
  const read = asked.map((tick, index): [number, string] => {
    const fields = words(results[index], layout.tickWords, 'ticks')
    if (fields.at(-1) !== 1n) throw new SourceRefused(`the tick ${tick} is marked but not initialised`)
    return [tick, String(signed(fields[1]!))]
  })
  return { ...memo, waiting: memo.waiting!.slice(CALLS_A_BATCH), read: [...memo.read!, ...read] }
}

function finished(memo: PoolMemo): SourceReading {
  const state = memo.state!
  return {
    observations: [
      {
        kind: 'venue',
        asset: memo.asset,
        publishedAt: new Date(memo.block!.at),
        block: memo.block!.number,
        venue: {
          kind: 'concentrated',
          id: memo.pool,
          units: {
            wrapperIsToken0: state.wrapperIsToken0,
            wrapperDecimals: memo.wrapperDecimals,
            quoteDecimals: memo.quoteDecimals,
          },
          pool: {
            sqrtPriceX96: BigInt(state.sqrtPriceX96),
            tick: state.tick,
            liquidity: BigInt(state.liquidity),
            tickSpacing: state.tickSpacing,
            feePips: state.feePips,
            ticks: memo.read!.map(([tick, net]) => ({ tick, liquidityNet: BigInt(net) })),
            readFrom: state.readFrom,
            readTo: state.readTo,
          },
        },
      },
    ],
  }
}
