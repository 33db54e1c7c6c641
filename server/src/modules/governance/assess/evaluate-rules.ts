import { budgetDemand, evaluateBudget, spendsFrom } from '../counters/evaluate-budget.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import type { CounterDemand, CounterState } from '../counters/limit-counters.ts'
import { evaluateMandate, type Mandate, mandateDemands } from '../mandates/evaluate-mandate.ts'
import { appliesTo, evaluatePolicy, type Policy, policyDemands } from '../rules/evaluate-policy.ts'
import { type Mode, type RuleResult, stricterMode } from '../rules/rule-result.ts'
import type { TenantRules } from '../rules/rules-cache.store.ts'
import type { PaymentFacts } from './payment-facts.ts'

/** The policies and the mode that the request itself asks for. */
export type RequestedPolicies = { policies: readonly Policy[]; mode?: Mode }

export type RulesInput = {
  rules: TenantRules
  keyId: string | null
  facts: PaymentFacts
  requestedPolicies: RequestedPolicies
  mandate: Mandate | null
  /** Counters in which the pre-authorisation already holds this payment. */
  heldScopes: ReadonlySet<string>
  freeze: { reason: string } | undefined
}

export type RulesEvaluation = {
  facts: PaymentFacts
  results: RuleResult[]
  /** The counters to hold, each with its rule result. */
  demands: { demand: CounterDemand; result: RuleResult; emitsThresholdEvents: boolean }[]
  policies: { policy: Policy; mode: Mode }[]
}

/** Evaluates every rule that applies to the payment. Counters are read in one query, or in none when no rule counts. */
export async function evaluateRules(readCounters: ReadCounters, input: RulesInput): Promise<RulesEvaluation> {
  const { rules, facts, mandate, heldScopes } = input
  const policies = findPoliciesInForce(input)
  const budgets = rules.budgets.filter((budget) => spendsFrom(budget, facts, mandate?.id ?? null))
  const countedBudgets = budgets.filter((budget) => budget.window !== 'run')
  const demands = [
    ...policies.flatMap(({ policy, mode }) => policyDemands(policy, facts, mode)),
    ...countedBudgets.map((budget) => budgetDemand(budget, facts)),
    ...(mandate ? mandateDemands(mandate, facts) : []),
  ]
  const newDemands = demands.filter((demand) => !heldScopes.has(demand.scope))
  const states = new Map((await readCounters(newDemands)).map((state) => [state.scope, state]))
  const stateOf = (demand: Pick<CounterDemand, 'scope'>): CounterState | 'held' | undefined =>
    heldScopes.has(demand.scope) ? 'held' : states.get(demand.scope)

  const results = [
    ...(input.freeze ? [frozenResult(facts.agentId, input.freeze.reason)] : []),
    ...policies.flatMap(({ policy, mode }) => evaluatePolicy(policy, facts, mode, stateOf)),
    ...budgets.flatMap((budget) => {
      const state = budget.window === 'run' ? emptyCounter(budget) : stateOf(budget)
      return state === undefined ? [] : [evaluateBudget(budget, facts, state)]
    }),
    ...(mandate ? evaluateMandate(mandate, facts, input.keyId ?? '', stateOf) : []),
  ]
  const scopesWithThresholds = new Set(
    countedBudgets.filter((budget) => budget.emitsThresholdEvents).map((budget) => budget.scope),
  )
  const demandsWithResults = newDemands.flatMap((demand) => {
    const result = results.find((candidate) => candidate.counter === demand.scope)
    return result ? [{ demand, result, emitsThresholdEvents: scopesWithThresholds.has(demand.scope) }] : []
  })
  return { facts, results, demands: demandsWithResults, policies }
}

/** The policies for this key and agent, and those named in the request. A request can only make a mode stricter. */
function findPoliciesInForce({ rules, keyId, facts, requestedPolicies }: RulesInput): { policy: Policy; mode: Mode }[] {
  const namedIds = new Set(requestedPolicies.policies.map((policy) => policy.id))
  const tenantPolicies = rules.policies.filter((policy) => appliesTo(policy, { keyId, agentId: facts.agentId }))
  const additionalPolicies = requestedPolicies.policies.filter((policy) => !tenantPolicies.includes(policy))
  return [
    ...tenantPolicies.map((policy) => ({
      policy,
      mode:
        namedIds.size === 0 || namedIds.has(policy.id)
          ? stricterMode(policy.mode, requestedPolicies.mode)
          : policy.mode,
    })),
    ...additionalPolicies.map((policy) => ({ policy, mode: requestedPolicies.mode ?? policy.mode })),
  ]
}

const emptyCounter = (budget: { limitMicro: bigint; softLimitMicro: bigint | null }): CounterState => ({
  limitMicro: budget.limitMicro,
  softLimitMicro: budget.softLimitMicro,
  spentMicro: 0n,
  reservedMicro: 0n,
})

const frozenResult = (agentId: string, reason: string): RuleResult => ({
  policy_id: null,
  rule: 'agent_frozen',
  mode: 'enforce',
  verdict: 'blocked',
  outcome: 'blocked',
  reason: `The agent '${agentId}' is frozen: ${reason}`,
  asked: agentId,
  smallest_change: { text: `Unfreeze '${agentId}' with POST /api/control-tower.` },
})
