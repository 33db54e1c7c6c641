import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import type { Offer, Proposal } from './ruling.ts'

export type BudgetVerdict =
  | { fits: true; offer: Offer; outcome: 'pass' | 'warning' | 'downgrade' }
  | { fits: false; message: string; limitMicro: bigint }

/**
 * The request's own ceiling. A lane dearer than `max_price_usdc` is replaced by the best one that fits, unless the
 * caller named the lane, asked to be strict, or holds a quote: then it is refused, and nothing is charged.
 */
export function judgeRequestBudget(budget: Proposal['budget'], offer: Offer): BudgetVerdict {
  if (!budget) return { fits: true, offer, outcome: 'pass' }
  if (budget.currency !== undefined && budget.currency !== 'USDC') throw invalid(`budget.currency must be USDC, not '${budget.currency}'.`)
  const max = micro('budget.max_price_usdc', budget.max_price_usdc)
  const soft = micro('budget.soft_max_price_usdc', budget.soft_max_price_usdc)
  if (max !== undefined && soft !== undefined && soft > max) throw invalid('budget.soft_max_price_usdc is above budget.max_price_usdc.')

  if (max !== undefined && offer.priceMicro > max) {
    const cheaper = offer.alternatives.find((lane) => lane.priceMicro <= max)
    if (budget.strict || offer.explicit || offer.quoted || !cheaper)
      return {
        fits: false,
        limitMicro: max,
        message: `The lane '${offer.agentId}' costs ${usdcFromMicro(offer.priceMicro)} USDC, more than budget.max_price_usdc ${usdcFromMicro(max)}.`,
      }
    return { fits: true, outcome: 'downgrade', offer: { ...offer, ...cheaper, route: { ...offer.route, downgraded_from: offer.agentId } } }
  }
  return { fits: true, offer, outcome: soft !== undefined && offer.priceMicro > soft ? 'warning' : 'pass' }
}

function micro(name: string, usdc: number | undefined): bigint | undefined {
  if (usdc === undefined) return undefined
  const value = microFromUsdc(usdc)
  if (value === undefined) throw invalid(`${name} must be a non-negative amount with at most six decimals.`)
  return value
}
