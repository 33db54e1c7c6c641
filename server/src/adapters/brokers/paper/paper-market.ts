import type { Instrument, Quote, RwaReading } from '../../../modules/brokerage/broker.ts'

/** An instrument of the paper broker with what its price impact and fees depend on. */
export type Listing = Instrument & {
  /** Average daily volume in units, and the daily price range: they determine the price impact. */
  advE8: bigint
  sigmaBps: number
  /** Charged on sales only, in millionths of the proceeds. */
  saleFeePpm: number
}

export type MarketQuote = Quote & { listing: Listing }

export type CorporateAction =
  | { kind: 'dividend'; exAt: number; perShareE8: bigint }
  | { kind: 'split'; exAt: number; numerator: bigint; denominator: bigint }

/** The prices the paper broker trades on. A port, so that tests can set them. */
export type PaperMarket = {
  /** Undefined when there is no such instrument. */
  quote(type: Listing['type'], symbol: string, at: Date): Promise<MarketQuote | undefined>
  /** What is listed, for a hint; absent where that is not known. */
  symbols?(type: Listing['type']): string[]
  /** Corporate actions whose ex-time lies in (after, upTo]. */
  actions(symbol: string, after: Date, upTo: Date): Promise<CorporateAction[]>
}

/** The trading calendar of the exchange, as the basis module computes it. */
export type Calendar = {
  marketState(at: Date): 'open' | 'closed' | 'holiday'
  nextOpen(at: Date): Date
  lastSession(at: Date): { open: Date; close: Date }
}

export type ReadBasis = (symbol: string) => Promise<RwaReading | undefined>

/** The price of a share in the market that basis previews are about; undefined when they have no such share. */
export type ReadShare = (symbol: string, at: Date) => { price: number; pricedAt: Date } | undefined

/** The market at one moment, as the engine sees it. */
export type MarketSnapshot = {
  at: number
  /** By `quoteKey`: a merchant may have the name of a share. */
  quotes: ReadonlyMap<string, MarketQuote>
  actions: ReadonlyMap<string, readonly CorporateAction[]>
}

export const quoteKey = (listing: Pick<Listing, 'type' | 'symbol'>) => `${listing.type}/${listing.symbol}`

/** Whether an order can trade now: in its session, and not halted. */
export const isTrading = (quote: MarketQuote) =>
  !quote.halted && (quote.session === 'open' || quote.session === 'always')
