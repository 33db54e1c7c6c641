import { type PriceSource, SourceRefused } from '../../modules/basis/price-source.ts'
import { chunks, get, integer, number, object, price, readJson, readRows } from './reading.ts'

const MINTS_A_REQUEST = 50

type PricesMemo = {
  wrappers: { mint: string; asset: string; decimals: number }[]
  memes: { mint: string; asset: string; symbol: string }[]
}

/** Jupiter's prices on Solana, of wrappers and of the memecoins quoted in them. */
export function createJupiter(options: {
  baseUrl: string
  apiKey?: string
  chain?: string
  everySeconds?: number
}): PriceSource {
  const headers: Record<string, string> = options.apiKey ? { 'x-api-key': options.apiKey } : {}
  return {
    id: 'jupiter',
    everySeconds: options.everySeconds ?? 15,

    ask: (covered) =>
      chunks(
        covered.filter(({ chain }) => chain === (options.chain ?? 'solana')),
        MINTS_A_REQUEST / 2,
      ).map((part) => {
        const memo: PricesMemo = {
          wrappers: part.map(({ address, asset, decimals }) => ({ mint: address, asset, decimals })),
          memes: part.flatMap(({ meme, asset }) => (meme ? [{ mint: meme.address, asset, symbol: meme.symbol }] : [])),
        }
        const ids = [...memo.wrappers, ...memo.memes].map(({ mint }) => mint).join(',')
        return get(`${options.baseUrl}/price/v3?ids=${ids}`, { headers, memo })
      }),

    read(request, answer) {
      const { wrappers, memes } = request.memo as PricesMemo
      const prices = object(readJson(answer), 'the answer')
      const publishedAt = answer.fetchedAt
      const { observations, refused } = readRows(wrappers, ({ mint, asset, decimals }) => {
        if (!prices[mint]) return []
        const entry = object(prices[mint], 'a price')
        if (integer(entry.decimals, 'decimals') !== decimals)
          throw new SourceRefused(`${mint} has other decimals than the coverage list says`)
        const liquidity =
          entry.liquidity === undefined || entry.liquidity === null ? null : number(entry.liquidity, 'liquidity')
        if (liquidity !== null && liquidity < 0) throw new SourceRefused('liquidity is negative')
        const usdPrice = price(entry.usdPrice, 'usdPrice')
        return [{ kind: 'token_price', asset, price: usdPrice, liquidityUsd: liquidity, publishedAt }]
      })
      for (const { mint, asset, symbol } of memes) {
        const change = prices[mint] ? object(prices[mint], 'a price').priceChange24h : undefined
        // Jupiter writes per cent; every *_pct here is a fraction.
        if (typeof change === 'number' && Number.isFinite(change))
          observations.push({ kind: 'meme', asset, symbol, change24h: change / 100, publishedAt })
      }
      if (observations.length === 0) throw new SourceRefused('it prices none of the covered tokens')
      return { observations, refused, publishedAt }
    },
  }
}
