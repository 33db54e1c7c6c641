import type { Confidence } from './confidence.ts'
import { BPS, roundTo } from './numbers.ts'
import type { FetchRecord } from './price-source.ts'
import type { PrimaryMarket } from './primary-market.ts'
import type { UnderlyingState } from './reference.ts'
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

/** What an issuer says stands behind a token, restated. */
export type Backing = {
  ratio: number
  ratioBasis: 'reserve_report' | 'issuer_claim' | 'illustration'
  reportUrl: string | null
  reportAsOf: string | null
}

/** A quote with all that the board and the attestation say beside it. */
export type Reading = {
  quote: Quote
  window: WindowScore
  floatLocked: number | null
  meme: { symbol: string; change24h: number } | null
  backing: Backing
  records: readonly FetchRecord[]
}

/** Signed, of the prices as they are published, so that a reader who divides them gets the same. */
export function basisOf(wrapperPrice: number, referencePrice: number): { basis_pct: number; basis_bps: number } {
  const pct = roundTo((wrapperPrice - referencePrice) / referencePrice, 6)
  return { basis_pct: pct, basis_bps: roundTo(pct * BPS, 2) }
}

export const PRICE_DECIMALS = 6
export const USD_DECIMALS = 2
