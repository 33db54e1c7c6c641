import { usdcFromMicro } from '../../platform/money.ts'
import { judgeRequestBudget } from './request-budget.ts'
import type { Offer, Proposal, Ruling } from './ruling.ts'

export type Governance = ReturnType<typeof createGovernance>

export function createGovernance() {
  return {
    /** May this be done at this price? Asked before any payment, so that nobody pays for what would be refused. */
    async assess(proposal: Proposal, offer: Offer): Promise<Ruling> {
      const budget = judgeRequestBudget(proposal.budget, offer)
      if (!budget.fits)
        return {
          refused: true,
          error: 'budget_exceeded',
          message: budget.message,
          outcome: 'blocked',
          extra: { price_usdc: usdcFromMicro(offer.priceMicro), limit_usdc: usdcFromMicro(budget.limitMicro) },
        }
      return {
        refused: false,
        offer: budget.offer,
        summary: {
          decision: budget.outcome === 'pass' ? 'approved' : budget.outcome,
          budget_outcome: budget.outcome,
          policy_applied: [],
          policy_hash: null,
          mandate_id: null,
          preauth_id: null,
          override_id: null,
          approval_id: null,
        },
        holds: [],
        grants: {},
      }
    },
  }
}
