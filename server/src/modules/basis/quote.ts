import type { Confidence } from './confidence.ts'
import { BPS, roundTo } from './price-math.ts'
import type { FetchRecord } from './price-source.ts'
import type { PrimaryMarket } from './primary-market.ts'
import type { UnderlyingState } from './underlying-state.ts'
import type { WindowScore } from './window-score.ts'

/** The basis quote as it is published. Every `*_pct` is a fraction. */
export type Quote = {
  symbol: string
  underlying: string
  chain: string
  as_of: string
  wrapper_price: number
  reference_price: number
  reference_source: string
  basis_pct: number
  basis_bps: number
  effective_float: { near_reference_usd: number; band_bps: number; confidence: Confidence }
  borrow: { available: boolean; rate_apr: number | null; source: string | null }
  underlying_state: UnderlyingState
  primary_market: PrimaryMarket
  observations: string[]
  source: 'live' | 'preview'
  preview: boolean
}

/** The backing of a token, restated from the issuer's own statement. */
export type Backing = {
  ratio: number
  ratioBasis: 'reserve_report' | 'issuer_claim' | 'illustration'
  reportUrl: string | null
  reportAsOf: string | null
}

/** A quote with the further figures that the board and the attestation use. */
export type Reading = {
  quote: Quote
  window: WindowScore
  floatLocked: number | null
  meme: { symbol: string; change24h: number } | null
  backing: Backing
  records: readonly FetchRecord[]
}

/** No source of borrow rates is read: nothing is claimed about borrowing, and the reading says so. */
export const NO_BORROW_SOURCE: Quote['borrow'] = { available: false, rate_apr: null, source: null }
export const NO_BORROW_REASON =
  'No source of borrow rates is configured, so nothing is known about borrowing this wrapper.'

/** A reading as it is served: with the address of its attestation. */
export type PublishedQuote = Quote & { attestation_url: string }
export type PublishedReading = Reading & { quote: PublishedQuote }

/** A measured reading is named by its sequence number; a preview, which has none, by its time. */
export function attestationUrl({ symbol, chain, as_of }: Quote, seq: number | undefined): string {
  const reading = seq === undefined ? `as_of=${as_of}` : `seq=${seq}`
  return `/api/basis/v1/attestation/${encodeURIComponent(symbol)}?chain=${encodeURIComponent(chain)}&${reading}`
}

/** The signed basis of the published prices, so that anyone can compute it again from them. */
export function computeBasis(wrapperPrice: number, referencePrice: number): { basis_pct: number; basis_bps: number } {
  const pct = roundTo((wrapperPrice - referencePrice) / referencePrice, 6)
  return { basis_pct: pct, basis_bps: roundTo(pct * BPS, 2) }
}

export const PRICE_DECIMALS = 6
export const USD_DECIMALS = 2
