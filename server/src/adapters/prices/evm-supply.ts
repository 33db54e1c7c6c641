import {
  type Issuance,
  type ParsedResponse,
  type PriceSource,
  PriceSourceError,
  type SourceRequest,
} from '../../modules/basis/price-source.ts'
import {
  decodeWord,
  type EvmCall,
  type EvmEndpoint,
  encodeArgument,
  ethCall,
  evmBatchRequest,
  getBlock,
  parseBlock,
  parseEvmBatch,
  parseQuantity,
  SELECTOR,
} from './evm-rpc.ts'
import { requireList, requireObject } from './response-parsing.ts'

const TRANSFER_TOPIC = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const ZERO_TOPIC = `0x${'0'.repeat(64)}`
/** Below the limit of public nodes for one query, and more blocks than pass between two polls. */
const LOG_RANGE_BLOCKS = 1_800
const MAX_EVENTS = 500
const MAX_BLOCKS = 50

type RawEvent = { block: number; size: number }

type SupplyContext = {
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

/** A token's supply, mints, burns and locked balances on an EVM chain, at the last final block. */
export function createEvmSupply(options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource {
  const { endpoint } = options
  const buildRequest = (calls: EvmCall[], context: SupplyContext): SourceRequest =>
    evmBatchRequest(endpoint, calls, context)

  return {
    id: `${endpoint.chain}-supply`,
    everySeconds: options.everySeconds ?? 30,

    buildRequests: (wrappers) =>
      wrappers
        .filter((wrapper) => wrapper.chain === endpoint.chain)
        .map(({ asset, address, decimals, lockedHolders }) => {
          const holders = lockedHolders.map((holder) => holder.address)
          return buildRequest([getBlock('finalized')], { stage: 'block', asset, address, decimals, holders })
        }),

    parseResponse(request, response) {
      const context = request.context as SupplyContext
      const results = parseEvmBatch(request, response)
      if (context.stage === 'block') {
        const block = parseBlock(results[0], response.fetchedAt)
        const next: SupplyContext = { ...context, stage: 'state', block: { ...block, at: block.at.toISOString() } }
        return {
          observations: [],
          followUps: [buildRequest(stateCalls(next), next)],
          publishedAt: block.at,
          block: block.number,
        }
      }
      const blockInfo = { publishedAt: new Date(context.block!.at), block: context.block!.number }
      if (context.stage === 'state') {
        const next = afterState(context, results)
        const blocks = eventBlocks(next)
        if (blocks.length === 0) return { ...toObservations(next, new Map()), ...blockInfo }
        return {
          observations: [],
          followUps: [
            buildRequest(
              blocks.map((number) => getBlock(`0x${number.toString(16)}`)),
              next,
            ),
          ],
          ...blockInfo,
        }
      }
      const times = new Map(
        eventBlocks(context).map((number, index) => [number, parseBlock(results[index], response.fetchedAt).at]),
      )
      return { ...toObservations(context, times), ...blockInfo }
    },
  }
}

function stateCalls({ address, block, holders }: SupplyContext): EvmCall[] {
  const range = {
    fromBlock: `0x${Math.max(0, block!.number - LOG_RANGE_BLOCKS).toString(16)}`,
    toBlock: block!.hex,
    address,
  }
  return [
    ethCall(address, SELECTOR.totalSupply, block!.hex),
    ethCall(address, SELECTOR.decimals, block!.hex),
    { method: 'eth_getLogs', params: [{ ...range, topics: [TRANSFER_TOPIC, ZERO_TOPIC] }] },
    { method: 'eth_getLogs', params: [{ ...range, topics: [TRANSFER_TOPIC, null, ZERO_TOPIC] }] },
    ...holders.map((holder) => ethCall(address, SELECTOR.balanceOf + encodeArgument(holder), block!.hex)),
  ]
}

function afterState(context: SupplyContext, results: unknown[]): SupplyContext {
  if (decodeWord(results[1], 'decimals') !== BigInt(context.decimals))
    throw new PriceSourceError('the token has other decimals than the coverage list says')
  const tokens = toTokens(decodeWord(results[0], 'totalSupply'), context)
  const events = [...parseTransfers(results[2], context, 1), ...parseTransfers(results[3], context, -1)].sort(
    (a, b) => a.block - b.block,
  )
  const locked = context.holders.reduce(
    (sum, _, index) => sum + toTokens(decodeWord(results[4 + index], 'balanceOf'), context),
    0,
  )
  return { ...context, stage: 'times', tokens, locked, events }
}

/** Transfers from the zero address create tokens, transfers to it redeem them. */
function parseTransfers(result: unknown, context: SupplyContext, sign: 1 | -1): RawEvent[] {
  return requireList(result, 'the list of events', MAX_EVENTS).map((entry) => {
    const log = requireObject(entry, 'an event')
    return {
      block: Number(parseQuantity(log.blockNumber, 'the block of an event')),
      size: sign * toTokens(decodeWord(log.data, 'an event'), context),
    }
  })
}

/** The newest blocks with events, limited to what one batch may request. */
const eventBlocks = ({ events }: SupplyContext): number[] =>
  [...new Set(events!.map(({ block }) => block))].sort((a, b) => a - b).slice(-MAX_BLOCKS)

function toObservations(context: SupplyContext, times: ReadonlyMap<number, Date>): ParsedResponse {
  const publishedAt = new Date(context.block!.at)
  const events = context.events!.flatMap(({ block, size }): Issuance[] => {
    const at = times.get(block)
    return at ? [{ at: at.toISOString(), block, size }] : []
  })
  return {
    observations: [
      { kind: 'supply', asset: context.asset, tokens: context.tokens!, block: context.block!.number, publishedAt },
      { kind: 'issuance', asset: context.asset, events, toBlock: context.block!.number, publishedAt },
      ...(context.holders.length > 0
        ? [{ kind: 'locked' as const, asset: context.asset, tokens: context.locked!, publishedAt }]
        : []),
    ],
  }
}

const toTokens = (units: bigint, { decimals }: SupplyContext): number => Number(units) / 10 ** decimals
