import type { Instrument, Quote, RwaReading } from '../../../modules/brokerage/broker.ts'

/** What is traded here and on what terms; the shipped list, a basis reading or a merchant becomes one. */
export type Listing = Instrument & {
  /** Units traded in a day, and the daily range of the price: what impact is made of. */
  advE8: bigint
  sigmaBps: number
  /** Charged on sales only, in millionths of the proceeds. */
  saleFeePpm: number
}

export type MarketQuote = Quote & { listing: Listing }

export type CorporateAction =
  | { kind: 'dividend'; exAt: number; perShareE8: bigint }
  | { kind: 'split'; exAt: number; numerator: bigint; denominator: bigint }

/** The prices a paper broker trades on: passed in, so that tests move them and operators replace them. */
export type PaperMarket = {
  /** Undefined when nothing by that name is traded. */
  quote(type: Listing['type'], symbol: string, at: Date): Promise<MarketQuote | undefined>
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

/** All the engine may see of the outside at one moment. */
export type View = {
  at: number
  /** By `quoteKey`: a merchant may bear the name of a share. */
  quotes: ReadonlyMap<string, MarketQuote>
  actions: ReadonlyMap<string, readonly CorporateAction[]>
}

export const quoteKey = (of: Pick<Listing, 'type' | 'symbol'>) => `${of.type}/${of.symbol}`

/** Whether an order can trade now: in its session, and not halted. */
export const isTrading = (quote: MarketQuote) =>
  !quote.halted && (quote.session === 'open' || quote.session === 'always')
