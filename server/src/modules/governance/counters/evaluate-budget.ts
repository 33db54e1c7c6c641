import { usdcFromMicro } from '../../../platform/money.ts'
import type { PaymentFacts } from '../assess/payment-facts.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { type CounterDemand, type CounterState, evaluateDemand, usedOf } from './limit-counters.ts'
import { type BudgetWindow, periodOf } from './windows.ts'

export type BudgetScope = 'tenant' | 'agent' | 'session' | 'mandate'
export type OnBreach = 'block' | 'downgrade' | 'review'

export type Budget = {
  budgetId: string
  /** The scope of its limit counter. */
  scope: string
  scopeType: BudgetScope
  scopeId: string
  window: BudgetWindow
  limitMicro: bigint
  softLimitMicro: bigint | null
  onBreach: OnBreach
  emitsThresholdEvents: boolean
}

export const budgetCounter = (tenantId: string, budgetId: string) => `budget:${tenantId}:${budgetId}`

/** Whether the payment is counted against the budget. */
export function spendsFrom(budget: Budget, facts: PaymentFacts, mandateId: string | null): boolean {
  const ids: Record<BudgetScope, string | null> = {
    tenant: budget.scopeId,
    agent: facts.agentId,
    session: facts.sessionId,
    mandate: mandateId,
  }
  return ids[budget.scopeType] === budget.scopeId
}

export function budgetDemand(budget: Budget, facts: PaymentFacts): CounterDemand {
  const window = budget.window === 'run' ? 'total' : budget.window
  return {
    scope: budget.scope,
    window,
    period: periodOf(window, facts.at),
    amountMicro: facts.amountMicro,
    measure: 'money',
    enforce: true,
    expectedLimitMicro: budget.limitMicro,
    rule: 'limit_usdc',
    path: `budgets.${budget.budgetId}.limit_usdc`,
  }
}

/**
 * `limit_usdc` is hard: a payment above it is refused, or needs an approval when `on_breach` is `review`.
 * Exceeding `soft_limit_usdc` only warns. The window `run` limits each payment on its own and has no counter.
 */
export function evaluateBudget(budget: Budget, facts: PaymentFacts, state: CounterState | 'held'): RuleResult {
  const demand = budgetDemand(budget, facts)
  const finding = evaluateDemand(demand, state, facts.at)
  const common = {
    policy_id: null,
    budget_id: budget.budgetId,
    rule: 'limit_usdc',
    mode: 'enforce' as const,
    ...(budget.window !== 'run' && { counter: budget.scope }),
  }
  if (finding.verdict === 'blocked') {
    const verdict = budget.onBreach === 'review' ? 'review_required' : 'blocked'
    return { ...common, ...finding, verdict, outcome: verdict }
  }
  const softLimitMicro = state === 'held' ? null : state.softLimitMicro
  if (softLimitMicro === null || usedOf(state as CounterState) + facts.amountMicro <= softLimitMicro)
    return { ...common, ...finding, outcome: 'pass' }
  return {
    ...common,
    ...finding,
    outcome: 'warning',
    reason: `${finding.reason} It passes soft_limit_usdc ${usdcFromMicro(softLimitMicro)}.`,
  }
}
