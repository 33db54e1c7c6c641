import {
  type Issuance,
  type PriceSource,
  type SourceReading,
  SourceRefused,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import {
  argument,
  askEvm,
  type EvmCall,
  type EvmEndpoint,
  ethCall,
  getBlock,
  quantity,
  readBlock,
  readEvm,
  SELECTOR,
  word,
} from './evm-rpc.ts'
import { list, object } from './reading.ts'

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const ZERO_TOPIC = `0x${'0'.repeat(64)}`
/** Under what public nodes allow in one question, and more than passes between two questions. */
const LOOK_BACK_BLOCKS = 1_800
const MOST_EVENTS = 500
const MOST_BLOCKS = 50

type RawEvent = { block: number; size: number }

type SupplyMemo = {
  stage: 'block' | 'state' | 'times'
  asset: string
  address: string
  decimals: number
  holders: string[]
  block?: { number: number; hex: string; at: string }
  tokens?: number
  locked?: number
  events?: RawEvent[]
}

/** What an EVM chain says of a token's supply, at the last final block: how much there is, created, redeemed and locked. */
export function createEvmSupply(options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource {
  const { endpoint } = options
  const ask = (calls: EvmCall[], memo: SupplyMemo): SourceRequest => askEvm(endpoint, calls, memo)

  return {
    id: `${endpoint.chain}-supply`,
    everySeconds: options.everySeconds ?? 30,

    ask: (covered) =>
      covered
        .filter((each) => each.chain === endpoint.chain)
        .map(({ asset, address, decimals, lockedHolders }) => {
          const holders = lockedHolders.map((holder) => holder.address)
          return ask([getBlock('finalized')], { stage: 'block', asset, address, decimals, holders })
        }),

    read(request, answer) {
      const memo = request.memo as SupplyMemo
      const results = readEvm(request, answer)
      if (memo.stage === 'block') {
        const block = readBlock(results[0], answer.fetchedAt)
        const next: SupplyMemo = { ...memo, stage: 'state', block: { ...block, at: block.at.toISOString() } }
        return { observations: [], follow: [ask(stateCalls(next), next)], publishedAt: block.at, block: block.number }
      }
      const at = { publishedAt: new Date(memo.block!.at), block: memo.block!.number }
      if (memo.stage === 'state') {
        const next = afterState(memo, results)
        const blocks = blocksOf(next)
        if (blocks.length === 0) return { ...finished(next, new Map()), ...at }
        return {
          observations: [],
          follow: [
            ask(
              blocks.map((number) => getBlock(`0x${number.toString(16)}`)),
              next,
            ),
          ],
          ...at,
        }
      }
      const times = new Map(
        blocksOf(memo).map((number, index) => [number, readBlock(results[index], answer.fetchedAt).at]),
      )
      return { ...finished(memo, times), ...at }
    },
  }
}

function stateCalls({ address, block, holders }: SupplyMemo): EvmCall[] {
  const range = {
    fromBlock: `0x${Math.max(0, block!.number - LOOK_BACK_BLOCKS).toString(16)}`,
    toBlock: block!.hex,
    address,
  }
  return [
    ethCall(address, SELECTOR.totalSupply, block!.hex),
    ethCall(address, SELECTOR.decimals, block!.hex),
    { method: 'eth_getLogs', params: [{ ...range, topics: [TRANSFER, ZERO_TOPIC] }] },
    { method: 'eth_getLogs', params: [{ ...range, topics: [TRANSFER, null, ZERO_TOPIC] }] },
    ...holders.map((holder) => ethCall(address, SELECTOR.balanceOf + argument(holder), block!.hex)),
  ]
}

function afterState(memo: SupplyMemo, results: unknown[]): SupplyMemo {
  if (word(results[1], 'decimals') !== BigInt(memo.decimals))
    throw new SourceRefused('the token has other decimals than the coverage list says')
  const tokens = inTokens(word(results[0], 'totalSupply'), memo)
  const events = [...transfers(results[2], memo, 1), ...transfers(results[3], memo, -1)].sort(
    (a, b) => a.block - b.block,
  )
  const locked = memo.holders.reduce((sum, _, index) => sum + inTokens(word(results[4 + index], 'balanceOf'), memo), 0)
  return { ...memo, stage: 'times', tokens, locked, events }
}

/** Tokens from nowhere are created, tokens to nowhere redeemed. */
function transfers(result: unknown, memo: SupplyMemo, sign: 1 | -1): RawEvent[] {
  return list(result, 'the list of events', MOST_EVENTS).map((entry) => {
    const log = object(entry, 'an event')
    return {
      block: Number(quantity(log.blockNumber, 'the block of an event')),
      size: sign * inTokens(word(log.data, 'an event'), memo),
    }
  })
}

/** A busy hour has more blocks with events than one question should ask for; the newest matter most. */
const blocksOf = ({ events }: SupplyMemo): number[] =>
  [...new Set(events!.map(({ block }) => block))].sort((a, b) => a - b).slice(-MOST_BLOCKS)

function finished(memo: SupplyMemo, times: ReadonlyMap<number, Date>): SourceReading {
  const publishedAt = new Date(memo.block!.at)
  const events = memo.events!.flatMap(({ block, size }): Issuance[] => {
    const at = times.get(block)
    return at ? [{ at: at.toISOString(), block, size }] : []
  })
  return {
    observations: [
      { kind: 'supply', asset: memo.asset, tokens: memo.tokens!, block: memo.block!.number, publishedAt },
      { kind: 'issuance', asset: memo.asset, events, toBlock: memo.block!.number, publishedAt },
      ...(memo.holders.length > 0
        ? [{ kind: 'locked' as const, asset: memo.asset, tokens: memo.locked!, publishedAt }]
        : []),
    ],
  }
}

const inTokens = (units: bigint, { decimals }: SupplyMemo): number => Number(units) / 10 ** decimals
