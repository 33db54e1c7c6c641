import { type ParsedResponse, type PriceSource, PriceSourceError } from '../../modules/basis/price-source.ts'
import {
  getRequest,
  parseJson,
  requireBoolean,
  requireNumber,
  requireObject,
  requirePastTime,
  requireText,
  requireTime,
  toPublicUrl,
} from './response-parsing.ts'

type XStocksContext = {
  topic: 'asset' | 'multiplier' | 'reserves'
  asset: string
  symbol: string
  underlying: string
  address: string
}

/** The xStocks issuer API: whether the issuer is open, shares per token with the announced next value, and reserves. */
export function createXStocks(options: { baseUrl: string; everySeconds?: number }): PriceSource {
  const { baseUrl } = options
  return {
    id: 'xstocks',
    everySeconds: options.everySeconds ?? 60,

    buildRequests: (wrappers) =>
      wrappers
        .filter(({ issuerApi }) => issuerApi === 'xstocks')
        .flatMap(({ asset, symbol, underlying, chain, address }) => {
          const buildContext = (topic: XStocksContext['topic']): XStocksContext => ({
            topic,
            asset,
            symbol,
            underlying,
            address,
          })
          const network = chain.charAt(0).toUpperCase() + chain.slice(1)
          const name = encodeURIComponent(symbol)
          return [
            getRequest(`${baseUrl}/assets/${name}`, { context: buildContext('asset') }),
            getRequest(`${baseUrl}/assets/${name}/multiplier?network=${encodeURIComponent(network)}`, {
              context: buildContext('multiplier'),
            }),
            getRequest(`${baseUrl}/proof-of-reserves/${name}`, { context: buildContext('reserves') }),
          ]
        }),

    parseResponse(request, response): ParsedResponse {
      const context = request.context as XStocksContext
      const body = parseJson(response)
      if (context.topic === 'reserves') return parseReserves(context, body, request.publicUrl, response.fetchedAt)
      if (context.topic === 'multiplier') return parseMultiplier(context, body, response.fetchedAt)
      return parseAsset(context, body, response.fetchedAt)
    },
  }
}

function parseAsset(context: XStocksContext, body: unknown, publishedAt: Date): ParsedResponse {
  const asset = requireObject(body, 'the asset')
  if (requireText(asset.underlyingSymbol, 'underlyingSymbol') !== context.underlying)
    throw new PriceSourceError(`${context.symbol} has another underlying than the coverage list says`)
  const halted = requireBoolean(asset.isTradingHalted, 'isTradingHalted')
  const trading = requireObject(asset.trading, 'trading')
  const openNow = requireBoolean(trading.openNow, 'trading.openNow')
  const period = typeof trading.currentPeriod === 'string' ? trading.currentPeriod.slice(0, 40) : 'another period'
  const reason = halted ? 'the issuer has halted trading' : `the issuer is closed in ${period}`
  return {
    publishedAt,
    observations: [
      { kind: 'issuer', asset: context.asset, accepting: openNow && !halted, reason, publishedAt },
      { kind: 'halt', underlying: context.underlying, halted, publishedAt },
    ],
  }
}

function parseMultiplier(context: XStocksContext, body: unknown, publishedAt: Date): ParsedResponse {
  const { currentMultiplier, newMultiplier, activationDateTime } = requireObject(body, 'the multiplier')
  const current = requirePositive(currentMultiplier, 'currentMultiplier')
  const hasAnnouncedMultiplier = newMultiplier !== null && newMultiplier !== undefined && activationDateTime
  const next = hasAnnouncedMultiplier
    ? {
        value: requirePositive(newMultiplier, 'newMultiplier'),
        at: requireTime(activationDateTime, 'activationDateTime'),
      }
    : null
  return {
    publishedAt,
    observations: [{ kind: 'multiplier', asset: context.asset, current, next, onChain: false, publishedAt }],
  }
}

function parseReserves(context: XStocksContext, body: unknown, url: string, fetchedAt: Date): ParsedResponse {
  // The issuer returns null for a symbol without a report.
  if (body === null) return { observations: [] }
  const report = requireObject(body, 'the report')
  if (requireText(report.symbol, 'symbol') !== context.symbol)
    throw new PriceSourceError('the report is about another symbol')
  const reportAsOf = requirePastTime(report.timestamp, 'the time of the report', fetchedAt)
  const ratio =
    requireNumber(report.sharesHeld, 'sharesHeld') / requirePositive(report.circulatingSupply, 'circulatingSupply')
  if (!(ratio >= 0 && ratio < 1e6)) throw new PriceSourceError('the reserve ratio of the report is out of range')
  return {
    publishedAt: reportAsOf,
    observations: [
      {
        kind: 'reserves',
        asset: context.asset,
        ratio,
        ratioBasis: 'reserve_report',
        reportUrl: toPublicUrl(url),
        reportAsOf,
        publishedAt: reportAsOf,
      },
    ],
  }
}

function requirePositive(value: unknown, field: string): number {
  const number = requireNumber(value, field)
  if (number <= 0) throw new PriceSourceError(`${field} is ${number}, which is not positive`)
  return number
}
