import type { Tx } from '../../platform/db.ts'
import type { Book } from './book.ts'
import { demandOf, judgeBudget, spendsFrom } from './budget.ts'
import { readCounters } from './counters.store.ts'
import type { CounterState, Demand } from './counters.ts'
import type { Facts } from './facts.ts'
import { judgeMandate, type Mandate, mandateDemands } from './mandate.ts'
import { appliesTo, demandsOf, judgePolicy, type Policy } from './policy.ts'
import { type Mode, type RuleResult, stricter } from './result.ts'

/** What the request itself wants to be judged by. */
export type Wishes = { policies: readonly Policy[]; mode?: Mode }

export type Case = {
  book: Book
  keyId: string | null
  facts: Facts
  wishes: Wishes
  mandate: Mandate | null
  /** Counters in which a pre-authorisation already holds this payment's place. */
  heldScopes: ReadonlySet<string>
  frozen: { reason: string } | undefined
}

export type Judged = {
  facts: Facts
  results: RuleResult[]
  /** What has to be held, each with the result that speaks of it. */
  demands: { demand: Demand; result: RuleResult; announces: boolean }[]
  policies: { policy: Policy; mode: Mode }[]
}

/** Every rule that speaks about this payment, each explained. One look at the counters, and none when no rule counts. */
export async function judge(tx: Tx, asked: Case): Promise<Judged> {
  const { book, facts, mandate, heldScopes } = asked
  const policies = inForce(asked)
  const budgets = book.budgets.filter((budget) => spendsFrom(budget, facts, mandate?.id ?? null))
  const counted = budgets.filter((budget) => budget.window !== 'run')
  const demands = [
    ...policies.flatMap(({ policy, mode }) => demandsOf(policy, facts, mode)),
    ...counted.map((budget) => demandOf(budget, facts)),
    ...(mandate ? mandateDemands(mandate, facts) : []),
  ]
  const fresh = demands.filter((demand) => !heldScopes.has(demand.scope))
  const states = new Map((await readCounters(tx, fresh)).map((state) => [state.scope, state]))
  const stateOf = (demand: Pick<Demand, 'scope'>): CounterState | 'held' | undefined =>
    heldScopes.has(demand.scope) ? 'held' : states.get(demand.scope)

  const results = [
    ...(asked.frozen ? [frozenResult(facts.agentId, asked.frozen.reason)] : []),
    ...policies.flatMap(({ policy, mode }) => judgePolicy(policy, facts, mode, stateOf)),
    ...budgets.flatMap((budget) => {
      const state = budget.window === 'run' ? aRunOf(budget) : stateOf(budget)
      return state === undefined ? [] : [judgeBudget(budget, facts, state)]
    }),
    ...(mandate ? judgeMandate(mandate, facts, asked.keyId ?? '', stateOf) : []),
  ]
  const announcing = new Set(counted.filter((budget) => budget.announces).map((budget) => budget.scope))
  const held = fresh.flatMap((demand) => {
    const result = results.find((one) => one.counter === demand.scope)
    return result ? [{ demand, result, announces: announcing.has(demand.scope) }] : []
  })
  return { facts, results, demands: held, policies }
}

/** The tenant's policies for this key and agent, and those that the request names besides; a request can only tighten. */
function inForce({ book, keyId, facts, wishes }: Case): { policy: Policy; mode: Mode }[] {
  const named = new Set(wishes.policies.map((policy) => policy.id))
  const own = book.policies.filter((policy) => appliesTo(policy, { keyId, agentId: facts.agentId }))
  const besides = wishes.policies.filter((policy) => !own.includes(policy))
  return [
    ...own.map((policy) => ({
      policy,
      mode: named.size === 0 || named.has(policy.id) ? stricter(policy.mode, wishes.mode) : policy.mode,
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
