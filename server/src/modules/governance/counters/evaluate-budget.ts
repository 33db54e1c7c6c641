import { usdcFromMicro } from '../../../platform/money.ts'
import { type PaymentClass, type PaymentFacts, paymentClass } from '../assess/payment-facts.ts'
import { missingFieldFinding } from '../rules/required-fields.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { type MissingField, type Selector, selects } from '../rules/selector.ts'
import { type CounterDemand, type CounterState, evaluateDemand, usedOf } from './limit-counters.ts'
import { type BudgetWindow, periodOf, sliceEnd } from './windows.ts'

export const budgetScopes = [
  'tenant',
  'agent',
  'session',
  'mandate',
  'spender',
  'team',
  'tag',
  'merchant',
  'key',
] as const
export type BudgetScope = (typeof budgetScopes)[number]
export type OnBreach = 'block' | 'downgrade' | 'review'

export type Budget = {
  budgetId: string
  parentId: string | null
  /** The scope of its limit counter. */
  scope: string
  scopeType: BudgetScope
  scopeId: string
  selector: Selector
  appliesTo: readonly PaymentClass[]
  window: BudgetWindow
  limitMicro: bigint
  softLimitMicro: bigint | null
  onBreach: OnBreach
  emitsThresholdEvents: boolean
}

export const budgetCounter = (tenantId: string, budgetId: string) => `budget:${tenantId}:${budgetId}`

/** Whether the payment is counted against the budget on its own account, not as a parent. */
export function spendsFrom(budget: Budget, facts: PaymentFacts): boolean | MissingField {
  return budget.appliesTo.includes(paymentClass(facts)) ? selects(budget.selector, facts) : false
}

/** The budgets that count the payment, and those that cannot be told because a field is missing. What counts in a budget counts in its parents. */
export function findBudgets(
  budgets: readonly Budget[],
  facts: PaymentFacts,
): { counting: Budget[]; missing: { budget: Budget; field: string }[] } {
  const byId = new Map(budgets.map((budget) => [budget.budgetId, budget]))
  const counting = new Set<Budget>()
  const missing: { budget: Budget; field: string }[] = []
  for (const budget of budgets) {
    const selected = spendsFrom(budget, facts)
    if (typeof selected === 'object') {
      if (facts.kind !== 'action') missing.push({ budget, field: selected.missing })
    } else if (selected)
      for (let next: Budget | undefined = budget; next && !counting.has(next); next = parentOf(next, byId))
        counting.add(next)
  }
  return { counting: budgets.filter((budget) => counting.has(budget)), missing }
}

const parentOf = ({ parentId }: Budget, byId: ReadonlyMap<string, Budget>) =>
  parentId === null ? undefined : byId.get(parentId)

/** The result when the payment leaves out the field that would tell whether the budget counts it. */
export const uncountedResult = ({ budgetId }: Budget, field: string): RuleResult => ({
  policy_id: null,
  budget_id: budgetId,
  rule: 'scope',
  mode: 'enforce',
  outcome: 'blocked',
  ...missingFieldFinding({ missing: field }),
})

export function budgetDemand(budget: Budget, facts: PaymentFacts): CounterDemand {
  const window = budget.window === 'run' ? 'total' : budget.window
  return {
    scope: budget.scope,
    window,
    period: periodOf(window, facts.at),
    amountMicro: facts.amountMicro,
    measure: 'money',
    sliceEndsAt: sliceEnd(window, facts.at),
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
