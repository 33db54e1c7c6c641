import { type Covered, type PriceSource, type SourceReading, SourceRefused } from '../../modules/basis/price-source.ts'
import { anyTime, boolean, get, number, object, pastTime, readJson, shown, text } from './reading.ts'

type XStocksMemo = {
  about: 'asset' | 'multiplier' | 'reserves'
  asset: string
  symbol: string
  underlying: string
  address: string
}

/** The issuer of the xStocks: whether it trades now, shares per token with the announced next value, and its reserves. */
export function createXStocks(options: { baseUrl: string; everySeconds?: number }): PriceSource {
  const { baseUrl } = options
  const isOurs = (each: Covered) => each.issuerApi === 'xstocks'
  return {
    id: 'xstocks',
    everySeconds: options.everySeconds ?? 60,

    ask: (covered) =>
      covered.filter(isOurs).flatMap(({ asset, symbol, underlying, chain, address }) => {
        const memo = (about: XStocksMemo['about']): XStocksMemo => ({ about, asset, symbol, underlying, address })
        const network = chain.charAt(0).toUpperCase() + chain.slice(1)
        const name = encodeURIComponent(symbol)
        return [
          get(`${baseUrl}/assets/${name}`, { memo: memo('asset') }),
          get(`${baseUrl}/assets/${name}/multiplier?network=${encodeURIComponent(network)}`, {
            memo: memo('multiplier'),
          }),
          get(`${baseUrl}/proof-of-reserves/${name}`, { memo: memo('reserves') }),
        ]
      }),

    read(request, answer): SourceReading {
      const memo = request.memo as XStocksMemo
      const body = readJson(answer)
      if (memo.about === 'reserves') return readReserves(memo, body, request.shownUrl, answer.fetchedAt)
      if (memo.about === 'multiplier') return readMultiplier(memo, body, answer.fetchedAt)
      return readAsset(memo, body, answer.fetchedAt)
    },
  }
}

function readAsset(memo: XStocksMemo, body: unknown, publishedAt: Date): SourceReading {
  const asset = object(body, 'the asset')
  if (text(asset.underlyingSymbol, 'underlyingSymbol') !== memo.underlying)
    throw new SourceRefused(`${memo.symbol} has another underlying than the coverage list says`)
  const halted = boolean(asset.isTradingHalted, 'isTradingHalted')
  const trading = object(asset.trading, 'trading')
  const openNow = boolean(trading.openNow, 'trading.openNow')
  const period = typeof trading.currentPeriod === 'string' ? trading.currentPeriod.slice(0, 40) : 'another period'
  const why = halted ? 'the issuer has halted trading' : `the issuer is closed in ${period}`
  return {
    publishedAt,
    observations: [
      { kind: 'issuer', asset: memo.asset, accepting: openNow && !halted, why, publishedAt },
      { kind: 'halt', underlying: memo.underlying, halted, publishedAt },
    ],
  }
}

function readMultiplier(memo: XStocksMemo, body: unknown, publishedAt: Date): SourceReading {
  const { currentMultiplier, newMultiplier, activationDateTime } = object(body, 'the multiplier')
  const current = positive(currentMultiplier, 'currentMultiplier')
  const announced = newMultiplier !== null && newMultiplier !== undefined && activationDateTime
  const next = announced
    ? { value: positive(newMultiplier, 'newMultiplier'), at: anyTime(activationDateTime, 'activationDateTime') }
    : null
  return {
    publishedAt,
    observations: [{ kind: 'multiplier', asset: memo.asset, current, next, onChain: false, publishedAt }],
  }
}

function readReserves(memo: XStocksMemo, body: unknown, url: string, fetchedAt: Date): SourceReading {
  // For a symbol it has no report on, the issuer answers null.
  if (body === null) return { observations: [] }
  const report = object(body, 'the report')
  if (text(report.symbol, 'symbol') !== memo.symbol) throw new SourceRefused('the report is about another symbol')
  const reportAsOf = pastTime(report.timestamp, 'the time of the report', fetchedAt)
  const ratio = number(report.sharesHeld, 'sharesHeld') / positive(report.circulatingSupply, 'circulatingSupply')
  if (!(ratio >= 0 && ratio < 1e6)) throw new SourceRefused('the reserves of the report cannot be')
  return {
    publishedAt: reportAsOf,
    observations: [
      {
        kind: 'reserves',
        asset: memo.asset,
        ratio,
        ratioBasis: 'reserve_report',
        reportUrl: shown(url),
        reportAsOf,
        publishedAt: reportAsOf,
      },
    ],
  }
}

function positive(value: unknown, what: string): number {
  const read = number(value, what)
  if (read <= 0) throw new SourceRefused(`${what} is ${read}`)
  return read
}
