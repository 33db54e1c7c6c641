import type { PrimaryMarket } from './primary-market.ts'
import type { PublishedReading } from './quote.ts'
import { SCORING_FORMULA, WINDOW_STATUSES, type WindowStatus } from './window-score.ts'

export type BoardRow = {
  rank: number
  symbol: string
  underlying: string
  chain: string
  meme_symbol: string | null
  window_score: number
  window_status: WindowStatus
  basis_bps: number
  meme_momentum_24h_pct: number | null
  float_locked_pct: number | null
  primary_market: PrimaryMarket
  source: 'live' | 'preview'
  as_of: string
  attestation_url: string
}

export type Board = {
  status: 'live' | 'preview'
  as_of: string
  scoring: { formula: string; note: string; statuses: Record<WindowStatus, string> }
  rows: BoardRow[]
  preview: boolean
}

const SCORING_NOTE =
  'Rows are ranked by how far the wrapper has run from its reference while primary-market supply has not caught up. It is a ranking aid, not a verdict. Every *_pct is a fraction.'

/** The board is live only if every row is. Rows with equal scores are sorted by symbol, so that ranks are stable. */
export function buildBoard(readings: readonly PublishedReading[], at: Date): Board {
  const sortedReadings = [...readings].sort(
    (a, b) =>
      b.window.score - a.window.score ||
      (a.quote.symbol < b.quote.symbol ? -1 : a.quote.symbol > b.quote.symbol ? 1 : 0),
  )
  const preview = !readings.every(({ quote }) => quote.source === 'live')
  return {
    status: preview ? 'preview' : 'live',
    as_of: at.toISOString(),
    scoring: { formula: SCORING_FORMULA, note: SCORING_NOTE, statuses: WINDOW_STATUSES },
    preview,
    rows: sortedReadings.map(({ quote, window, meme, floatLocked }, index) => ({
      rank: index + 1,
      symbol: quote.symbol,
      underlying: quote.underlying,
      chain: quote.chain,
      meme_symbol: meme?.symbol ?? null,
      window_score: window.score,
      window_status: window.status,
      basis_bps: quote.basis_bps,
      meme_momentum_24h_pct: meme?.change24h ?? null,
      float_locked_pct: floatLocked,
      primary_market: quote.primary_market,
      source: quote.source,
      as_of: quote.as_of,
      attestation_url: quote.attestation_url,
    })),
  }
}
