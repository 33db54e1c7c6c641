import type { Tx } from '../../platform/db.ts'
import { budgetDemand, evaluateBudget, spendsFrom } from './budget.ts'
import { readCounters } from './limit-counters.store.ts'
import type { CounterDemand, CounterState } from './limit-counters.ts'
import { evaluateMandate, type Mandate, mandateDemands } from './mandate.ts'
import type { PaymentFacts } from './payment-facts.ts'
import { appliesTo, evaluatePolicy, type Policy, policyDemands } from './policy.ts'
import { type Mode, type RuleResult, stricterMode } from './rule-result.ts'
import type { TenantRules } from './rules-cache.store.ts'

/** What the request itself wants to be judged by. */
export type RequestedPolicies = { policies: readonly Policy[]; mode?: Mode }

export type RulesInput = {
  book: TenantRules
  keyId: string | null
  facts: PaymentFacts
  wishes: RequestedPolicies
  mandate: Mandate | null
  /** Counters in which a pre-authorisation already holds this payment's place. */
  heldScopes: ReadonlySet<string>
  frozen: { reason: string } | undefined
}

export type RulesEvaluation = {
  facts: PaymentFacts
  results: RuleResult[]
  /** What has to be held, each with the result that speaks of it. */
  demands: { demand: CounterDemand; result: RuleResult; announces: boolean }[]
  policies: { policy: Policy; mode: Mode }[]
}

/** Every rule that speaks about this payment, each explained. One look at the counters, and none when no rule counts. */
export async function evaluateRules(tx: Tx, asked: RulesInput): Promise<RulesEvaluation> {
  const { book, facts, mandate, heldScopes } = asked
  const policies = inForce(asked)
  const budgets = book.budgets.filter((budget) => spendsFrom(budget, facts, mandate?.id ?? null))
  const counted = budgets.filter((budget) => budget.window !== 'run')
  const demands = [
    ...policies.flatMap(({ policy, mode }) => policyDemands(policy, facts, mode)),
    ...counted.map((budget) => budgetDemand(budget, facts)),
    ...(mandate ? mandateDemands(mandate, facts) : []),
  ]
  const fresh = demands.filter((demand) => !heldScopes.has(demand.scope))
  const states = new Map((await readCounters(tx, fresh)).map((state) => [state.scope, state]))
  const stateOf = (demand: Pick<CounterDemand, 'scope'>): CounterState | 'held' | undefined =>
    heldScopes.has(demand.scope) ? 'held' : states.get(demand.scope)

  const results = [
    ...(asked.frozen ? [frozenResult(facts.agentId, asked.frozen.reason)] : []),
    ...policies.flatMap(({ policy, mode }) => evaluatePolicy(policy, facts, mode, stateOf)),
    ...budgets.flatMap((budget) => {
      const state = budget.window === 'run' ? aRunOf(budget) : stateOf(budget)
      return state === undefined ? [] : [evaluateBudget(budget, facts, state)]
    }),
    ...(mandate ? evaluateMandate(mandate, facts, asked.keyId ?? '', stateOf) : []),
  ]
  const announcing = new Set(counted.filter((budget) => budget.announces).map((budget) => budget.scope))
  const held = fresh.flatMap((demand) => {
    const result = results.find((one) => one.counter === demand.scope)
    return result ? [{ demand, result, announces: announcing.has(demand.scope) }] : []
  })
  return { facts, results, demands: held, policies }
}

/** The tenant's policies for this key and agent, and those that the request names besides; a request can only tighten. */
function inForce({ book, keyId, facts, wishes }: RulesInput): { policy: Policy; mode: Mode }[] {
  const named = new Set(wishes.policies.map((policy) => policy.id))
  const own = book.policies.filter((policy) => appliesTo(policy, { keyId, agentId: facts.agentId }))
  const besides = wishes.policies.filter((policy) => !own.includes(policy))
  return [
    ...own.map((policy) => ({
      policy,
      mode: named.size === 0 || named.has(policy.id) ? stricterMode(policy.mode, wishes.mode) : policy.mode,
    })),
    ...besides.map((policy) => ({ policy, mode: wishes.mode ?? policy.mode })),
  ]
}

const aRunOf = (budget: { limitMicro: bigint; softLimitMicro: bigint | null }): CounterState => ({
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
