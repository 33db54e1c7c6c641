import { budgetDemand, evaluateBudget, findBudgets, uncountedResult } from '../counters/evaluate-budget.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import type { CounterDemand, CounterState } from '../counters/limit-counters.ts'
import { chooseMandate, type MandateChoice, type StateOf } from '../mandates/choose-mandate.ts'
import {
  bindsAgent,
  evaluateMandate,
  type Mandate,
  mandateDemands,
  unboundResult,
} from '../mandates/evaluate-mandate.ts'
import {
  evaluatePolicy,
  type Policy,
  policyDemands,
  policySelector,
  unselectedResult,
} from '../rules/evaluate-policy.ts'
import { missingFieldFinding } from '../rules/required-fields.ts'
import { type Mode, type RuleResult, stricterMode } from '../rules/rule-result.ts'
import type { TenantRules } from '../rules/rules-cache.store.ts'
import { selects } from '../rules/selector.ts'
import { agentNames, type PaymentFacts } from './payment-facts.ts'

/** The policies and the mode that the request itself asks for. */
export type RequestedPolicies = { policies: readonly Policy[]; mode?: Mode }

/** A frozen agent of the payment; no agent when the payment names none and some agent of the tenant is frozen. */
export type Freeze = { agentId: string; reason: string } | { agentId: null }

export type RulesInput = {
  rules: TenantRules
  facts: PaymentFacts
  requestedPolicies: RequestedPolicies
  /** The mandate that the request or its pre-authorisation names: it is used alone. */
  namedMandate: Mandate | null
  /** Counters in which the pre-authorisation already holds this payment. */
  heldScopes: ReadonlySet<string>
  freeze: Freeze | undefined
}

export type RulesEvaluation = {
  facts: PaymentFacts
  results: RuleResult[]
  /** The counters to hold, each with its rule result. */
  demands: { demand: CounterDemand; result: RuleResult; emitsThresholdEvents: boolean }[]
  /** Counters of other mandates that had no room; the choice of the mandate holds while they have none. */
  fullCounters: CounterDemand[]
  policies: { policy: Policy; mode: Mode }[]
  mandateId: string | null
}

/** Evaluates every rule that applies to the payment. Counters are read in one query, or in none when no rule counts. */
export async function evaluateRules(readCounters: ReadCounters, input: RulesInput): Promise<RulesEvaluation> {
  const { rules, heldScopes } = input
  const read = async (demands: readonly CounterDemand[]): Promise<StateOf> => {
    const newDemands = demands.filter((demand) => !heldScopes.has(demand.scope))
    const states = new Map((await readCounters(newDemands, input.facts.at)).map((state) => [state.scope, state]))
    return (demand) => (heldScopes.has(demand.scope) ? 'held' : states.get(demand.scope))
  }
  const choice = await findMandate(input, read)
  const facts = { ...input.facts, mandateId: choice.mandate?.id ?? null }
  const policies = findPoliciesInForce(input, facts)
  const policiesInForce = policies.flatMap(({ policy, mode, missing }) =>
    missing === undefined ? [{ policy, mode }] : [],
  )
  const budgets = findBudgets(rules.budgets, facts)
  const countingBudgets = budgets.counting.filter((budget) => budget.window !== 'run')
  const demands = [
    ...policiesInForce.flatMap(({ policy, mode }) => policyDemands(policy, facts, mode)),
    ...countingBudgets.map((budget) => budgetDemand(budget, facts)),
  ]
  const stateOf = await read(demands)

  const results = [
    ...(input.freeze ? [frozenResult(input.freeze)] : []),
    ...policies.flatMap(({ policy, mode, missing }) =>
      missing === undefined ? evaluatePolicy(policy, facts, mode, stateOf) : [unselectedResult(policy, mode, missing)],
    ),
    ...budgets.missing.map(({ budget, field }) => uncountedResult(budget, field)),
    ...budgets.counting.flatMap((budget) => {
      const state = budget.window === 'run' ? emptyCounter(budget) : stateOf(budget)
      return state === undefined ? [] : [evaluateBudget(budget, facts, state)]
    }),
    ...choice.results,
  ]
  const scopesWithThresholds = new Set(
    countingBudgets.filter((budget) => budget.emitsThresholdEvents).map((budget) => budget.scope),
  )
  const resultOf = new Map(
    results.flatMap((result) => (result.counter === undefined ? [] : [[result.counter, result]])),
  )
  const demandsWithResults = [...demands, ...(choice.mandate ? mandateDemands(choice.mandate, facts) : [])]
    .filter((demand) => !heldScopes.has(demand.scope))
    .flatMap((demand) => {
      const result = resultOf.get(demand.scope)
      return result ? [{ demand, result, emitsThresholdEvents: scopesWithThresholds.has(demand.scope) }] : []
    })
  return {
    facts,
    results,
    demands: demandsWithResults,
    fullCounters: choice.fullCounters,
    policies: policiesInForce,
    mandateId: facts.mandateId,
  }
}

async function findMandate(
  { rules, facts, namedMandate }: RulesInput,
  read: (demands: readonly CounterDemand[]) => Promise<StateOf>,
): Promise<MandateChoice> {
  if (namedMandate) {
    const stateOf = await read(mandateDemands(namedMandate, facts))
    return { mandate: namedMandate, results: evaluateMandate(namedMandate, facts, stateOf), fullCounters: [] }
  }
  const agentMandate =
    agentNames(facts).length === 0 ? rules.mandates.find((mandate) => bindsAgent(mandate, facts)) : undefined
  if (agentMandate && facts.kind !== 'action')
    return { mandate: null, results: [unboundResult(agentMandate)], fullCounters: [] }
  // The actions that a loop proposes are not payments yet.
  return chooseMandate(facts.kind === 'action' ? [] : rules.mandates, facts, read)
}

type PolicyInForce = { policy: Policy; mode: Mode; missing?: string }

/** The policies for this payment, and those named in the request. A request can only make a mode stricter. */
function findPoliciesInForce({ rules, requestedPolicies }: RulesInput, facts: PaymentFacts): PolicyInForce[] {
  const namedIds = new Set(requestedPolicies.policies.map((policy) => policy.id))
  const tenantPolicies = rules.policies.flatMap((policy) => {
    const selected = selects(policySelector(policy), facts)
    if (selected === true) return [{ policy }]
    return selected === false || facts.kind === 'action' ? [] : [{ policy, missing: selected.missing }]
  })
  const additionalPolicies = requestedPolicies.policies.filter(
    (policy) => !tenantPolicies.some((own) => own.policy === policy),
  )
  return [
    ...tenantPolicies.map((own) => ({
      ...own,
      mode:
        namedIds.size === 0 || namedIds.has(own.policy.id)
          ? stricterMode(own.policy.mode, requestedPolicies.mode)
          : own.policy.mode,
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

const frozenResult = (freeze: Freeze): RuleResult => {
  const common = { policy_id: null, rule: 'agent_frozen', mode: 'enforce' as const, outcome: 'blocked' as const }
  if (freeze.agentId === null) return { ...common, ...missingFieldFinding({ missing: 'agent_id' }) }
  return {
    ...common,
    verdict: 'blocked',
    reason: `The agent '${freeze.agentId}' is frozen: ${freeze.reason}`,
    asked: freeze.agentId,
    smallest_change: { text: `Unfreeze '${freeze.agentId}' with POST /api/control-tower.` },
  }
}
