import type { CounterDemand } from './limit-counters.ts'
import { appliesTo, evaluatePolicy, type Policy, policyDemands } from './policy.ts'
import { applyMode, type Outcome, type RuleResult, worstOutcome } from './rule-result.ts'
import type { PastDecision } from './simulate.store.ts'

export type Change = 'none' | 'newly_blocked' | 'newly_review' | 'newly_allowed'

export type ReplayedDecision = {
  past: PastDecision
  results: RuleResult[]
  /** What the draft says by itself, before anybody's approval or override. */
  outcome: Outcome
  wouldRun: boolean
  change: Change
}

type Held = { key: string; demand: CounterDemand }

/**
 * Judges what was decided once more, by a draft, in the order in which it was really decided. Counters are counted
 * anew: what the draft would have stopped is not counted, what failed gives back when it failed, and what a person let
 * pass stands outside the counter that refused it, just as it does live.
 */
export function replayDecisions(
  draft: Policy,
  past: readonly PastDecision[],
  replaces: string | null,
): ReplayedDecision[] {
  const used = new Map<string, bigint>()
  const holds = new Map<string, Held[]>()
  const count = (key: string, amount: bigint) => used.set(key, (used.get(key) ?? 0n) + amount)
  const keyOf = (demand: CounterDemand) => `${demand.scope} ${demand.period}`

  const decide = (item: PastDecision): ReplayedDecision => {
    const speaks = appliesTo(draft, { keyId: item.keyId, agentId: item.facts.agentId })
    const before = item.preauthId === null ? [] : (holds.get(item.preauthId) ?? [])
    const isHeld = (demand: CounterDemand) => before.some((held) => held.demand.scope === demand.scope)
    const stateOf = (demand: CounterDemand) =>
      isHeld(demand)
        ? 'held'
        : {
            limitMicro: demand.foreseenLimitMicro,
            softLimitMicro: null,
            spentMicro: used.get(keyOf(demand)) ?? 0n,
            reservedMicro: 0n,
          }
    const results = speaks ? evaluatePolicy(draft, item.facts, draft.mode, stateOf) : []
    const outcome = worstOutcome(results)
    const granted =
      item.ran &&
      ((outcome === 'review_required' && item.approvalId !== null) ||
        (outcome === 'blocked' && item.overrideId !== null))
    const others = item.results.filter((result) => result.policy_id === null || result.policy_id !== replaces)
    const wouldRun = !refuses(worstOutcome(others)) && (granted || !refuses(outcome))
    if (wouldRun && speaks) {
      const passed = (demand: CounterDemand) =>
        !refuses(results.find((result) => result.counter === demand.scope)?.outcome ?? 'pass')
      const taken = policyDemands(draft, item.facts, draft.mode).filter((demand) => !isHeld(demand) && passed(demand))
      for (const demand of taken) count(keyOf(demand), demand.amountMicro)
      holds.set(
        item.id,
        taken.map((demand) => ({ key: keyOf(demand), demand })),
      )
    }
    return { past: item, results, outcome, wouldRun, change: changeOf(item.ran, wouldRun, outcome) }
  }

  const end = (item: PastDecision) => {
    const { success, chargedMicro } = item.end!
    for (const { key, demand } of holds.get(item.id) ?? []) {
      const kept = !success
        ? 0n
        : demand.measure === 'count'
          ? demand.amountMicro
          : least(demand.amountMicro, chargedMicro)
      count(key, kept - demand.amountMicro)
    }
  }

  const replayed = new Map<string, ReplayedDecision>()
  for (const { item, ends } of inOrder(past)) {
    if (ends) end(item)
    else replayed.set(item.id, decide(item))
  }
  return past.map((item) => replayed.get(item.id)!)
}

/** Decisions and ends as they really followed each other. What never ran has nothing to give back. */
function inOrder(past: readonly PastDecision[]): { seq: bigint; item: PastDecision; ends: boolean }[] {
  const steps = past.flatMap((item) => [
    { seq: item.decidedSeq, item, ends: false },
    ...(item.ran && item.end && item.endedSeq !== null ? [{ seq: item.endedSeq, item, ends: true }] : []),
  ])
  return steps.sort((a, b) => (a.seq < b.seq ? -1 : 1))
}

const refuses = (outcome: Outcome) => outcome === 'blocked' || outcome === 'review_required'

function changeOf(ran: boolean, wouldRun: boolean, outcome: Outcome): Change {
  if (ran === wouldRun) return 'none'
  if (wouldRun) return 'newly_allowed'
  return outcome === 'review_required' ? 'newly_review' : 'newly_blocked'
}

/** What one policy had said by itself when it was decided; null when it had not spoken. */
export function recordedOutcome(past: PastDecision, policyId: string | null): Outcome | null {
  const said = past.results.filter((result) => policyId !== null && result.policy_id === policyId)
  if (said.length === 0) return null
  return worstOutcome(said.map((result) => ({ outcome: applyMode(result.verdict, result.mode) })))
}

const least = (a: bigint, b: bigint) => (a < b ? a : b)
