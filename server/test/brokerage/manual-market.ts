import type {
  Calendar,
  CorporateAction,
  Listing,
  MarketQuote,
  PaperMarket,
} from '../../src/adapters/brokers/paper/paper-market.ts'
import { spreadAround } from '../../src/adapters/brokers/paper/simulated-market.ts'
import type { InstrumentType, OrderRequest } from '../../src/modules/brokerage/broker.ts'
import { parseDecimal } from '../../src/modules/brokerage/broker.ts'

/** A market whose prices, halts and corporate actions are set by the test. */
export type ManualMarket = PaperMarket & {
  list(listing: Partial<Listing> & { type: InstrumentType; symbol: string }, price: string, spreadBps?: number): void
  setPrice(symbol: string, price: string): void
  halt(symbol: string, halted: boolean): void
  setFundingRate(symbol: string, ratePpm: number): void
  addCorporateAction(symbol: string, action: CorporateAction): void
  /** Quotes keep this observation time from now on; null ends it. */
  freeze(at: Date | null): void
}

export const e8 = (text: string) => parseDecimal(text, 8)!

type Row = { listing: Listing; priceE8: bigint; spreadBps: number; halted: boolean; fundingRatePpm: number }

const base = {
  lotE8: 1n,
  tickE8: 1_000_000n,
  feeTier: 'test',
  takerFeeBps: 10,
  settlementLag: 'T+0',
  advE8: e8('1000000'),
  sigmaBps: 100,
  saleFeePpm: 0,
} as const

export function createManualMarket(calendar: Calendar): ManualMarket {
  const rows = new Map<string, Row>()
  let frozenAt: Date | null = null
  const actions: { symbol: string; action: CorporateAction }[] = []
  const findRow = (symbol: string) => [...rows.values()].find(({ listing }) => listing.symbol === symbol)!

  return {
    list(listing, price, spreadBps = 10) {
      const lag = listing.type === 'equity' ? 'T+1' : 'T+0'
      const perp = listing.type === 'perp' ? { perp: { maintenanceMarginBps: 50, maxLeverage: 50 } } : {}
      const fullListing: Listing = { ...base, name: listing.symbol, settlementLag: lag, ...perp, ...listing }
      const key = `${listing.type}/${listing.symbol}`
      rows.set(key, { listing: fullListing, priceE8: e8(price), spreadBps, halted: false, fundingRatePpm: 0 })
    },
    setPrice(symbol, price) {
      findRow(symbol).priceE8 = e8(price)
    },
    halt(symbol, halted) {
      findRow(symbol).halted = halted
    },
    setFundingRate(symbol, ratePpm) {
      findRow(symbol).fundingRatePpm = ratePpm
    },
    freeze(at) {
      frozenAt = at
    },
    addCorporateAction(symbol, action) {
      actions.push({ symbol, action })
    },
    async quote(type, symbol, at) {
      const row = rows.get(`${type}/${symbol}`)
      return row && { ...toQuote(row, calendar, at), ...(frozenAt && { observedAt: frozenAt }) }
    },
    async actions(symbol, after, upTo) {
      return actions
        .filter((entry) => entry.symbol === symbol)
        .map(({ action }) => action)
        .filter(({ exAt }) => exAt > after.getTime() && exAt <= upTo.getTime())
    },
  }
}

function toQuote(row: Row, calendar: Calendar, at: Date): MarketQuote {
  const session = row.listing.type === 'equity' ? calendar.marketState(at) : 'always'
  const open = session === 'open' || session === 'always'
  return {
    ...spreadAround(row.priceE8, row.spreadBps, row.listing.tickE8),
    symbol: row.listing.symbol,
    source: 'test',
    observedAt: at,
    session,
    nextOpen: open ? null : calendar.nextOpen(at),
    halted: row.halted,
    ...(row.listing.type === 'perp' && { fundingRatePpm: row.fundingRatePpm }),
    listing: row.listing,
  }
}

let orderCount = 0

/** A market order for immediate execution by default. */
export function createOrder(
  overrides: Partial<OrderRequest> & { quantity?: string; limit?: string } = {},
): OrderRequest {
  const { quantity = '1', limit, ...fields } = overrides
  orderCount += 1
  return {
    accountId: 'acct',
    clientOrderId: `order-${orderCount}`,
    type: 'equity',
    symbol: 'AAPL',
    side: 'buy',
    quantityE8: e8(quantity),
    orderType: limit === undefined ? 'market' : 'limit',
    limitPriceE8: limit === undefined ? null : e8(limit),
    worstPriceE8: null,
    tif: 'ioc',
    leverageE2: null,
    placeBy: new Date('2099-01-01T00:00:00Z'),
    executeBy: new Date('2099-01-01T00:00:00Z'),
    ...fields,
  }
}
