import {
  type CoveredWrapper,
  type Observation,
  type PriceSource,
  PriceSourceError,
} from '../../modules/basis/price-source.ts'
import {
  decodeWord,
  decodeWords,
  type EvmEndpoint,
  encodeArgument,
  ethCall,
  evmBatchRequest,
  getBlock,
  parseBlock,
  parseEvmBatch,
  SELECTOR,
  toSigned,
} from './evm-rpc.ts'

type FeedContext = {
  asset: string
  underlying: string
  decimals: number
  includesMultiplier: boolean
  hasRegistry: boolean
}

/** The registry stores shares per token with this many decimals. */
const REGISTRY_DECIMALS = 18

/** Chainlink feeds of an EVM chain. For some wrappers the feed is already multiplied by shares per token. */
export function createChainlink(options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource {
  const { endpoint } = options
  return {
    id: 'chainlink',
    everySeconds: options.everySeconds ?? 15,

    buildRequests(wrappers) {
      return wrappers
        .filter(
          (wrapper): wrapper is CoveredWrapper & { feed: NonNullable<CoveredWrapper['feed']> } =>
            wrapper.chain === endpoint.chain && wrapper.feed !== null,
        )
        .map(({ asset, address, underlying, feed, registry }) => {
          const context: FeedContext = {
            asset,
            underlying,
            decimals: feed.decimals,
            includesMultiplier: feed.includesMultiplier,
            hasRegistry: registry !== null,
          }
          const calls = [
            getBlock('latest'),
            ethCall(feed.address, SELECTOR.latestRoundData, 'latest'),
            ethCall(feed.address, SELECTOR.decimals, 'latest'),
          ]
          if (registry) calls.push(ethCall(registry, SELECTOR.getOracleParams + encodeArgument(address), 'latest'))
          return evmBatchRequest(endpoint, calls, context)
        })
    },

    parseResponse(request, response) {
      const context = request.context as FeedContext
      const results = parseEvmBatch(request, response)
      const block = parseBlock(results[0], response.fetchedAt)
      const [roundId, rawPrice, , updatedAt, answeredInRound] = decodeWords(results[1], 5, 'latestRoundData') as [
        bigint,
        bigint,
        bigint,
        bigint,
        bigint,
      ]
      if (decodeWord(results[2], 'decimals') !== BigInt(context.decimals))
        throw new PriceSourceError('the feed has other decimals than the coverage list says')
      const price = Number(toSigned(rawPrice)) / 10 ** context.decimals
      if (!(price > 0) || !Number.isFinite(price))
        throw new PriceSourceError(`the feed returned ${price}, which is not a price`)
      if (answeredInRound < roundId) throw new PriceSourceError('the feed returned the price of an older round')
      const publishedAt = parseUpdateTime(updatedAt, response.fetchedAt)
      const reference: Observation = context.includesMultiplier
        ? { kind: 'token_reference', asset: context.asset, price, conf: 0, publishedAt }
        : { kind: 'share_price', underlying: context.underlying, price, conf: 0, publishedAt }
      const oracleParams = context.hasRegistry
        ? parseOracleParams(context, results[3], block.at)
        : { paused: false, observations: [] }
      // A feed is paused on purpose around a corporate action; its price is not valid then.
      const observations = oracleParams.paused ? oracleParams.observations : [reference, ...oracleParams.observations]
      return { observations, publishedAt, block: block.number }
    },
  }
}

function parseUpdateTime(seconds: bigint, fetchedAt: Date): Date {
  const ms = Number(seconds) * 1000
  if (seconds === 0n || !Number.isFinite(ms) || ms > 8.64e15) throw new PriceSourceError('the feed has no update time')
  if (ms > fetchedAt.getTime() + 60_000)
    throw new PriceSourceError(`the feed is dated ${new Date(ms).toISOString()}, in the future`)
  return new Date(ms)
}

function parseOracleParams(
  context: FeedContext,
  result: unknown,
  publishedAt: Date,
): { paused: boolean; observations: Observation[] } {
  const [rawMultiplier, rawPaused] = decodeWords(result, 2, 'getOracleParams') as [bigint, bigint]
  const current = Number(rawMultiplier) / 10 ** REGISTRY_DECIMALS
  if (!(current > 0)) throw new PriceSourceError('the registry has no multiplier for the token')
  const paused = rawPaused !== 0n
  const observations: Observation[] = [
    { kind: 'multiplier', asset: context.asset, current, next: null, onChain: true, publishedAt },
  ]
  if (paused)
    observations.push({
      kind: 'issuer',
      asset: context.asset,
      accepting: false,
      reason: 'the oracle registry is paused',
      publishedAt,
    })
  return { paused, observations }
}
