import { type PriceSource, SourceRefused } from '../../modules/basis/price-source.ts'
import { chunks, get, integer, list, number, object, pastTime, readJson, readRows, text, unique } from './reading.ts'

const FEEDS_A_REQUEST = 32

/** Pyth's Hermes: prices of shares with their own error. Off-hours prices are carried forward, so freshness is by publish time. */
export function createPythHermes(options: { baseUrl: string; apiKey?: string; everySeconds?: number }): PriceSource {
  const headers: Record<string, string> = options.apiKey ? { authorization: `Bearer ${options.apiKey}` } : {}
  return {
    id: 'pyth',
    everySeconds: options.everySeconds ?? 15,

    ask(covered) {
      const underlyings = new Map<string, string>()
      for (const { pythFeedId, underlying } of covered) if (pythFeedId) underlyings.set(pythFeedId, underlying)
      return chunks([...underlyings.keys()], FEEDS_A_REQUEST).map((ids) => {
        const query = ids.map((id) => `ids[]=${id}`).join('&')
        const memo = { underlyings: Object.fromEntries(ids.map((id) => [id, underlyings.get(id)])) }
        return get(`${options.baseUrl}/v2/updates/price/latest?${query}&parsed=true`, { headers, memo })
      })
    },

    read(request, answer) {
      const underlyings = request.memo.underlyings as Record<string, string>
      const parsed = list(object(readJson(answer), 'the answer').parsed, 'parsed')
      const feeds = parsed.map((entry) => {
        const feed = object(entry, 'a feed')
        const underlying = underlyings[text(feed.id, 'the id of a feed').replace(/^0x/, '')]
        if (!underlying) throw new SourceRefused('it answered about a feed that was not asked for')
        return { feed, underlying }
      })
      const { observations, refused } = readRows(feeds, ({ feed, underlying }) => {
        const quoted = object(feed.price, 'a price')
        const divisor = divisorOf(integer(quoted.expo, 'the exponent of a price'))
        const share = number(quoted.price, 'a price') / divisor
        if (share <= 0) throw new SourceRefused(`the price of ${underlying} is ${share}, which is not a price`)
        const conf = number(quoted.conf, 'the error of a price') / divisor
        const seconds = integer(quoted.publish_time, 'a publish time')
        const publishedAt = pastTime(seconds, 'a publish time', answer.fetchedAt)
        return [{ kind: 'share_price', underlying, price: share, conf, publishedAt }]
      })
      if (observations.length === 0) throw new SourceRefused('it knows none of the feeds')
      const times = unique(observations.map(({ publishedAt }) => publishedAt.getTime()))
      return { observations, refused, publishedAt: new Date(Math.max(...times)) }
    },
  }
}

/** Pyth writes prices of shares with a few decimals; an exponent far from that is a mistake of decimals. */
function divisorOf(expo: number): number {
  if (expo < -12 || expo > 0) throw new SourceRefused(`the exponent ${expo} of a price is out of range`)
  return 10 ** -expo
}
