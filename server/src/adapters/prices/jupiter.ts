import { type PriceSource, PriceSourceError } from '../../modules/basis/price-source.ts'
import {
  chunks,
  getRequest,
  parseJson,
  parseRows,
  requireInteger,
  requireNumber,
  requireObject,
  requirePrice,
} from './response-parsing.ts'

const MINTS_PER_REQUEST = 50

type PricesContext = {
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

    buildRequests: (wrappers) =>
      chunks(
        wrappers.filter(({ chain }) => chain === (options.chain ?? 'solana')),
        MINTS_PER_REQUEST / 2,
      ).map((batch) => {
        const context: PricesContext = {
          wrappers: batch.map(({ address, asset, decimals }) => ({ mint: address, asset, decimals })),
          memes: batch.flatMap(({ meme, asset }) => (meme ? [{ mint: meme.address, asset, symbol: meme.symbol }] : [])),
        }
        const ids = [...context.wrappers, ...context.memes].map(({ mint }) => mint).join(',')
        return getRequest(`${options.baseUrl}/price/v3?ids=${ids}`, { headers, context })
      }),

    parseResponse(request, response) {
      const { wrappers, memes } = request.context as PricesContext
      const prices = requireObject(parseJson(response), 'the response')
      const publishedAt = response.fetchedAt
      const { observations, rejected } = parseRows(wrappers, ({ mint, asset, decimals }) => {
        if (!prices[mint]) return []
        const entry = requireObject(prices[mint], 'a price')
        if (requireInteger(entry.decimals, 'decimals') !== decimals)
          throw new PriceSourceError(`${mint} has other decimals than the coverage list says`)
        const liquidity =
          entry.liquidity === undefined || entry.liquidity === null ? null : requireNumber(entry.liquidity, 'liquidity')
        if (liquidity !== null && liquidity < 0) throw new PriceSourceError('liquidity is negative')
        const usdPrice = requirePrice(entry.usdPrice, 'usdPrice')
        return [{ kind: 'token_price', asset, price: usdPrice, liquidityUsd: liquidity, publishedAt }]
      })
      for (const { mint, asset, symbol } of memes) {
        const change = prices[mint] ? requireObject(prices[mint], 'a price').priceChange24h : undefined
        // Jupiter reports per cent; every *_pct here is a fraction.
        if (typeof change === 'number' && Number.isFinite(change))
          observations.push({ kind: 'meme', asset, symbol, change24h: change / 100, publishedAt })
      }
      if (observations.length === 0) throw new PriceSourceError('it prices none of the covered tokens')
      return { observations, rejected, publishedAt }
    },
  }
}
