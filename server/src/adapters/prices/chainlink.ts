import { type Covered, type Observation, type PriceSource, SourceRefused } from '../../modules/basis/price-source.ts'
import {
  argument,
  askEvm,
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

type FeedMemo = {
  asset: string
  underlying: string
  decimals: number
  includesMultiplier: boolean
  registry: boolean
}

/** The registry writes shares per token with this many decimals. */
const REGISTRY_DECIMALS = 18

/** Chainlink feeds of an EVM chain. For some wrappers the feed is already multiplied by shares per token. */
export function createChainlink(options: { endpoint: EvmEndpoint; everySeconds?: number }): PriceSource {
  const { endpoint } = options
  return {
    id: 'chainlink',
    everySeconds: options.everySeconds ?? 15,

    ask(covered) {
      return covered
        .filter(
          (each): each is Covered & { feed: NonNullable<Covered['feed']> } =>
            each.chain === endpoint.chain && each.feed !== null,
        )
        .map(({ asset, address, underlying, feed, registry }) => {
          const memo: FeedMemo = {
            asset,
            underlying,
            decimals: feed.decimals,
            includesMultiplier: feed.includesMultiplier,
            registry: registry !== null,
          }
          const calls = [
            getBlock('latest'),
            ethCall(feed.address, SELECTOR.latestRoundData, 'latest'),
            ethCall(feed.address, SELECTOR.decimals, 'latest'),
          ]
          if (registry) calls.push(ethCall(registry, SELECTOR.getOracleParams + argument(address), 'latest'))
          return askEvm(endpoint, calls, memo)
        })
    },

    read(request, answer) {
      const memo = request.memo as FeedMemo
      const results = readEvm(request, answer)
      const block = readBlock(results[0], answer.fetchedAt)
      const [roundId, rawPrice, , updatedAt, answeredIn] = words(results[1], 5, 'latestRoundData') as [
        bigint,
        bigint,
        bigint,
        bigint,
        bigint,
      ]
      if (word(results[2], 'decimals') !== BigInt(memo.decimals))
        throw new SourceRefused('the feed has other decimals than the coverage list says')
      const price = Number(signed(rawPrice)) / 10 ** memo.decimals
      if (!(price > 0) || !Number.isFinite(price))
        throw new SourceRefused(`the feed says ${price}, which is not a price`)
      if (answeredIn < roundId) throw new SourceRefused('the feed carries the answer of an older round')
      const publishedAt = timeOf(updatedAt, answer.fetchedAt)
      const reference: Observation = memo.includesMultiplier
        ? { kind: 'token_reference', asset: memo.asset, price, conf: 0, publishedAt }
        : { kind: 'share_price', underlying: memo.underlying, price, conf: 0, publishedAt }
      const params = memo.registry ? readParams(memo, results[3], block.at) : { paused: false, observations: [] }
      // A paused feed stands still on purpose, around a corporate action: its price is not one.
      const observations = params.paused ? params.observations : [reference, ...params.observations]
      return { observations, publishedAt, block: block.number }
    },
  }
}

function timeOf(seconds: bigint, fetchedAt: Date): Date {
  const ms = Number(seconds) * 1000
  if (seconds === 0n || !Number.isFinite(ms) || ms > 8.64e15)
    throw new SourceRefused('the feed does not say when it was updated')
  if (ms > fetchedAt.getTime() + 60_000)
    throw new SourceRefused(`the feed is dated ${new Date(ms).toISOString()}, in the future`)
  return new Date(ms)
}

function readParams(
  memo: FeedMemo,
  result: unknown,
  publishedAt: Date,
): { paused: boolean; observations: Observation[] } {
  const [rawMultiplier, rawPaused] = words(result, 2, 'getOracleParams') as [bigint, bigint]
  const current = Number(rawMultiplier) / 10 ** REGISTRY_DECIMALS
  if (!(current > 0)) throw new SourceRefused('the registry knows no multiplier for the token')
  const paused = rawPaused !== 0n
  const observations: Observation[] = [
    { kind: 'multiplier', asset: memo.asset, current, next: null, onChain: true, publishedAt },
  ]
  if (paused)
    observations.push({
      kind: 'issuer',
      asset: memo.asset,
      accepting: false,
      why: 'the oracle registry is paused',
      publishedAt,
    })
  return { paused, observations }
}
