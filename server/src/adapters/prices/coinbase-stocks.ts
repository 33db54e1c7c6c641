import { type Covered, type Observation, type PriceSource, SourceRefused } from '../../modules/basis/price-source.ts'
import { get, integer, type Json, list, number, object, pastTime, price, readJson, readRows, text } from './reading.ts'

type ListMemo = { wanted: { address: string; asset: string; symbol: string; decimals: number }[] }

/**
 * Coinbase's list of its tokenised stocks. It reports supply, not reserves: that a share stands behind each is the
 * issuer's claim, and is passed on as one.
 */
export function createCoinbaseStocks(options: { url: string; everySeconds?: number }): PriceSource {
  const isOurs = (each: Covered) => each.issuerApi === 'coinbase'
  return {
    id: 'coinbase',
    everySeconds: options.everySeconds ?? 60,

    ask(covered) {
      const wanted = covered
        .filter(isOurs)
        .map(({ address, asset, symbol, decimals }) => ({ address, asset, symbol, decimals }))
      return wanted.length === 0 ? [] : [get(options.url, { memo: { wanted } })]
    },

    read(request, answer) {
      const { wanted } = request.memo as ListMemo
      const tokens = list(object(readJson(answer), 'the answer').tokens, 'tokens').map((entry) =>
        object(entry, 'a token'),
      )
      const listed = new Map(
        tokens.map((token) => [text(token.contract_address, 'contract_address').toLowerCase(), token]),
      )
      const { observations, refused } = readRows(wanted, (each) => {
        const token = listed.get(each.address.toLowerCase())
        return token ? readToken(each, token, request.shownUrl, answer.fetchedAt) : []
      })
      if (observations.length === 0) throw new SourceRefused('it lists none of the covered tokens')
      return { observations, refused, publishedAt: answer.fetchedAt }
    },
  }
}

function readToken(wanted: ListMemo['wanted'][number], token: Json, reportUrl: string, fetchedAt: Date): Observation[] {
  const { asset } = wanted
  if (integer(token.decimals, 'decimals') !== wanted.decimals)
    throw new SourceRefused(`${wanted.symbol} has other decimals than the coverage list says`)
  const multiplier = price(token.multiplier, 'multiplier')
  const navAt = pastTime(token.nav_price_updated_at, 'nav_price_updated_at', fetchedAt)
  const paused = list(token.paused_features, 'paused_features', 50).map((feature) => text(feature, 'a paused feature'))
  return [
    { kind: 'token_reference', asset, price: price(token.nav_price, 'nav_price'), conf: 0, publishedAt: navAt },
    { kind: 'multiplier', asset, current: multiplier, next: null, onChain: false, publishedAt: fetchedAt },
    { kind: 'supply', asset, tokens: supplyOf(token.total_supply, wanted.decimals), block: 0, publishedAt: fetchedAt },
    {
      kind: 'issuer',
      asset,
      accepting: paused.length === 0,
      why: `the issuer has paused ${paused.join(', ').slice(0, 200)}`,
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

/** Whole digits are atomic units, as in every token interface; a decimal point means whole tokens. */
function supplyOf(value: unknown, decimals: number): number {
  const read = number(value, 'total_supply')
  if (read < 0) throw new SourceRefused('total_supply is negative')
  return String(value).includes('.') ? read : read / 10 ** decimals
}
