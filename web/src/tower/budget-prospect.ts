import type { ApiResponse } from '@countersign/sdk'
import { formatUsdc } from '../format.ts'

export type Outlook = ApiResponse<'/api/control-tower/budgets', 'get'>['budgets'][number]

/** The used share of a budget in percent, with what is reserved. */
export const usedShare = ({ spent_usdc, reserved_usdc, limit_usdc }: Outlook) =>
  limit_usdc === 0 ? 100 : Math.min(100, ((spent_usdc + reserved_usdc) / limit_usdc) * 100)

/** What can be said of a budget, and how sure it is. */
export function describeProspect(outlook: Outlook): { label: string; text: string; showsInterval: boolean } {
  const rate = outlook.forecast ? `at ${formatUsdc(outlook.forecast.rate_usdc_per_hour)} an hour` : ''
  switch (outlook.prospect) {
    case 'used_up':
      return { label: 'used up', text: 'Nothing is left.', showsInterval: false }
    case 'below_one_run':
      return { label: 'too little for a run', text: 'Less is left than the cheapest run costs.', showsInterval: false }
    case 'runs_out':
      return { label: 'runs out', text: `Before it resets, ${rate}.`, showsInterval: true }
    case 'may_run_out':
      return { label: 'may run out', text: `Not certain, ${rate}.`, showsInterval: true }
    case 'lasts':
      return { label: 'lasts', text: `Until it resets, ${rate}.`, showsInterval: false }
    case 'no_spending':
      return { label: 'unused', text: 'Nothing was spent in this window.', showsInterval: false }
    default:
      return { label: 'no forecast', text: 'Too little history to say when it runs out.', showsInterval: false }
  }
}
