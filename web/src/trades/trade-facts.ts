import type { ApiResponse } from '@countersign/sdk'
import type { TradeRun } from '../approvals/inbox-item.ts'
import type { Tone } from '../components/ui.tsx'
import { formatSigned } from '../format.ts'

export type RunQuote = ApiResponse<'/api/rh/runs/{id}/quote', 'get'>

/** What an approver is shown of a trade beyond its terms; which of them there are depends on the instrument. */
export type TradeFacts = {
  quote?: { price: number; source: string; observed_at: string }
  session?: string
  margin?: number
  liquidation_price?: number
  distance_to_liq_pct?: number
  basis_bps?: number
  est_fees?: number
  est_slippage_bps?: number
  buying_power_before?: number
  buying_power_after?: number
  position_before?: number
  position_after?: number
  yield_rate?: number
  unlock_at?: string
  merchant?: string
  category?: string
  rail?: string
  remaining_budget?: number
}

/** Of a run that needed no approval there are none. */
export const readTradeFacts = ({ approval }: Pick<TradeRun, 'approval'>): TradeFacts =>
  Object.fromEntries(Object.entries(approval ?? {}).filter(([, value]) => value !== null))

export const formatUsd = (price: number) => `${price.toLocaleString('en-US', { maximumFractionDigits: 8 })} USD`

/** Without a sign when it rounds to nothing. */
export const formatBps = (bps: number) => `${Math.abs(bps) < 0.005 ? '0' : formatSigned(bps)} bps`

/** Whether the price is still where it was; a run whose price moved beyond the limit is cancelled when it is executed. */
export function describeDrift({ drift_bps, max_drift_bps }: RunQuote): { text: string; tone: Tone } {
  const moved = Math.abs(drift_bps)
  if (moved > max_drift_bps)
    return { text: `more than the ${max_drift_bps} bps allowed: the order would be cancelled`, tone: 'error' }
  return { text: `of at most ${max_drift_bps} bps`, tone: moved > max_drift_bps / 2 ? 'warning' : 'success' }
}
