import {
  type CoveredWrapper,
  type Observation,
  type PriceSource,
  PriceSourceError,
} from '../../modules/basis/price-source.ts'
import {
  getRequest,
  type JsonObject,
  parseJson,
  parseRows,
  requireInteger,
  requireList,
  requireNumber,
  requireObject,
  requirePastTime,
  requirePrice,
  requireText,
} from './response-parsing.ts'

type ListedToken = Pick<CoveredWrapper, 'address' | 'asset' | 'symbol' | 'decimals'>
type ListContext = { tokens: ListedToken[] }

/**
 * Coinbase's list of its tokenised stocks. It reports supply, not reserves: that each token is backed by shares is the
 * issuer's claim, and is published as a claim.
 */
export function createCoinbaseStocks(options: { url: string; everySeconds?: number }): PriceSource {
  return {
    id: 'coinbase',
    everySeconds: options.everySeconds ?? 60,

    buildRequests(wrappers) {
      const tokens = wrappers
        .filter(({ issuerApi }) => issuerApi === 'coinbase')
        .map(({ address, asset, symbol, decimals }) => ({ address, asset, symbol, decimals }))
      return tokens.length === 0 ? [] : [getRequest(options.url, { context: { tokens } })]
    },

    parseResponse(request, response) {
      const { tokens } = request.context as ListContext
      const entries = requireList(requireObject(parseJson(response), 'the response').tokens, 'tokens').map((entry) =>
        requireObject(entry, 'a token'),
      )
      const entriesByAddress = new Map(
        entries.map((entry) => [requireText(entry.contract_address, 'contract_address').toLowerCase(), entry]),
      )
      const { observations, rejected } = parseRows(tokens, (token) => {
        const entry = entriesByAddress.get(token.address.toLowerCase())
        return entry ? parseToken(token, entry, request.publicUrl, response.fetchedAt) : []
      })
      if (observations.length === 0) throw new PriceSourceError('it lists none of the covered tokens')
      return { observations, rejected, publishedAt: response.fetchedAt }
    },
  }
}

function parseToken(token: ListedToken, entry: JsonObject, reportUrl: string, fetchedAt: Date): Observation[] {
  const { asset, symbol, decimals } = token
  if (requireInteger(entry.decimals, 'decimals') !== decimals)
    throw new PriceSourceError(`${symbol} has other decimals than the coverage list says`)
  const multiplier = requirePrice(entry.multiplier, 'multiplier')
  const navAt = requirePastTime(entry.nav_price_updated_at, 'nav_price_updated_at', fetchedAt)
  const pausedFeatures = requireList(entry.paused_features, 'paused_features', 50).map((feature) =>
    requireText(feature, 'a paused feature'),
  )
  return [
    { kind: 'token_reference', asset, price: requirePrice(entry.nav_price, 'nav_price'), conf: 0, publishedAt: navAt },
    { kind: 'multiplier', asset, current: multiplier, next: null, onChain: false, publishedAt: fetchedAt },
    { kind: 'supply', asset, tokens: parseSupply(entry.total_supply, decimals), block: 0, publishedAt: fetchedAt },
    {
      kind: 'issuer',
      asset,
      accepting: pausedFeatures.length === 0,
      reason: `the issuer has paused ${pausedFeatures.join(', ').slice(0, 200)}`,
      publishedAt: fetchedAt,
    },
    {
      kind: 'reserves',
      asset,
      ratio: multiplier,
      ratioBasis: 'issuer_claim',
      reportUrl,
      reportAsOf: navAt,
      publishedAt: fetchedAt,
    },
  ]
}

/** A value without a decimal point is in atomic units; with one, it is in whole tokens. */
function parseSupply(value: unknown, decimals: number): number {
  const supply = requireNumber(value, 'total_supply')
  if (supply < 0) throw new PriceSourceError('total_supply is negative')
  return String(value).includes('.') ? supply : supply / 10 ** decimals
}
