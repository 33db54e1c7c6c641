import { type PriceSource, PriceSourceError } from '../../modules/basis/price-source.ts'
import {
  chunks,
  getRequest,
  parseJson,
  parseRows,
  requireInteger,
  requireList,
  requireNumber,
  requireObject,
  requirePastTime,
  requireText,
  unique,
} from './response-parsing.ts'

const FEEDS_PER_REQUEST = 32

/** Pyth Hermes: share prices with a confidence interval. Off-hours prices are repeated, so freshness goes by publish time. */
export function createPythHermes(options: { baseUrl: string; apiKey?: string; everySeconds?: number }): PriceSource {
  const headers: Record<string, string> = options.apiKey ? { authorization: `Bearer ${options.apiKey}` } : {}
  return {
    id: 'pyth',
    everySeconds: options.everySeconds ?? 15,

    buildRequests(wrappers) {
      const underlyings = new Map<string, string>()
      for (const { pythFeedId, underlying } of wrappers) if (pythFeedId) underlyings.set(pythFeedId, underlying)
      return chunks([...underlyings.keys()], FEEDS_PER_REQUEST).map((ids) => {
        const query = ids.map((id) => `ids[]=${id}`).join('&')
        const context = { underlyings: Object.fromEntries(ids.map((id) => [id, underlyings.get(id)])) }
        return getRequest(`${options.baseUrl}/v2/updates/price/latest?${query}&parsed=true`, { headers, context })
      })
    },

    parseResponse(request, response) {
      const underlyings = request.context.underlyings as Record<string, string>
      const parsed = requireList(requireObject(parseJson(response), 'the response').parsed, 'parsed')
      const feeds = parsed.map((entry) => {
        const feed = requireObject(entry, 'a feed')
        const underlying = underlyings[requireText(feed.id, 'the id of a feed').replace(/^0x/, '')]
        if (!underlying) throw new PriceSourceError('it returned a feed that was not requested')
        return { feed, underlying }
      })
      const { observations, rejected } = parseRows(feeds, ({ feed, underlying }) => {
        const feedPrice = requireObject(feed.price, 'a price')
        const divisor = toDivisor(requireInteger(feedPrice.expo, 'the exponent of a price'))
        const sharePrice = requireNumber(feedPrice.price, 'a price') / divisor
        if (sharePrice <= 0)
          throw new PriceSourceError(`the price of ${underlying} is ${sharePrice}, which is not a price`)
        const conf = requireNumber(feedPrice.conf, 'the error of a price') / divisor
        const seconds = requireInteger(feedPrice.publish_time, 'a publish time')
        const publishedAt = requirePastTime(seconds, 'a publish time', response.fetchedAt)
        return [{ kind: 'share_price', underlying, price: sharePrice, conf, publishedAt }]
      })
      if (observations.length === 0) throw new PriceSourceError('it returned none of the requested feeds')
      const times = unique(observations.map(({ publishedAt }) => publishedAt.getTime()))
      return { observations, rejected, publishedAt: new Date(Math.max(...times)) }
    },
  }
}

/** Pyth publishes share prices with a few decimals; an exponent far from that is an error. */
function toDivisor(expo: number): number {
  if (expo < -12 || expo > 0) throw new PriceSourceError(`the exponent ${expo} of a price is out of range`)
  return 10 ** -expo
}
