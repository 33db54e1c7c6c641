import { setImmediate as nextTurn } from 'node:timers/promises'
import { boundTrace, MAX_TRACE_RESULTS } from '../assess/bound-trace.ts'
import type { CounterDemand } from '../counters/limit-counters.ts'
import { appliesTo, evaluatePolicy, type Policy, policyDemands } from './evaluate-policy.ts'
import { applyMode, type Outcome, type RuleResult, worstOutcome } from './rule-result.ts'
import type { PastDecision } from './simulate.store.ts'

export type Change = 'none' | 'newly_blocked' | 'newly_review' | 'newly_allowed'

export type ReplayedDecision = {
  decision: PastDecision
  /** The listed results: `boundTrace`. */
  results: RuleResult[]
  /** The outcome of the draft, before approvals and overrides. */
  outcome: Outcome
  wouldRun: boolean
  change: Change
}

/** How many results the whole answer lists, and each decision at least. */
const MAX_LISTED = 1_000
const MIN_LISTED = 4
/** Other requests are served after so many rules. */
const RULES_PER_TURN = 2_000

type ReplayHold = { key: string; demand: CounterDemand }

/**
 * Replays past decisions under a draft policy, in their original order. Counters start at zero: decisions that the
 * draft would have refused are not counted, failed payments are released when they failed, and payments allowed by a
 * grant are not counted in the counter that refused them, as in production.
 */
export async function replayDecisions(
  draft: Policy,
  past: readonly PastDecision[],
  replaces: string | null,
): Promise<ReplayedDecision[]> {
  const listedResults = Math.max(MIN_LISTED, Math.min(MAX_TRACE_RESULTS, Math.floor(MAX_LISTED / past.length)))
  const usedByCounter = new Map<string, bigint>()
  const holds = new Map<string, ReplayHold[]>()
  const addToCounter = (key: string, amount: bigint) => usedByCounter.set(key, (usedByCounter.get(key) ?? 0n) + amount)
  const counterKey = (demand: CounterDemand) => `${demand.scope} ${demand.period}`

  const decide = (decision: PastDecision): ReplayedDecision => {
    const applies = appliesTo(draft, decision.facts)
    const preauthHolds = decision.preauthId === null ? [] : (holds.get(decision.preauthId) ?? [])
    const isHeld = (demand: CounterDemand) => preauthHolds.some((hold) => hold.demand.scope === demand.scope)
    const stateOf = (demand: CounterDemand) =>
      isHeld(demand)
        ? 'held'
        : {
            limitMicro: demand.expectedLimitMicro,
            softLimitMicro: null,
            spentMicro: usedByCounter.get(counterKey(demand)) ?? 0n,
            reservedMicro: 0n,
          }
    const results = applies ? evaluatePolicy(draft, decision.facts, draft.mode, stateOf) : []
    const outcome = worstOutcome(results)
    const hasGrant =
      decision.ran &&
      ((outcome === 'review_required' && decision.approvalId !== null) ||
        (outcome === 'blocked' && decision.overrideId !== null))
    const otherResults = decision.results.filter((result) => result.policy_id === null || result.policy_id !== replaces)
    const wouldRun = !refuses(worstOutcome(otherResults)) && (hasGrant || !refuses(outcome))
    if (wouldRun && applies) {
      const hasPassed = (demand: CounterDemand) =>
        !refuses(results.find((result) => result.counter === demand.scope)?.outcome ?? 'pass')
      const newDemands = policyDemands(draft, decision.facts, draft.mode).filter(
        (demand) => !isHeld(demand) && hasPassed(demand),
      )
      for (const demand of newDemands) addToCounter(counterKey(demand), demand.amountMicro)
      holds.set(
        decision.id,
        newDemands.map((demand) => ({ key: counterKey(demand), demand })),
      )
    }
    return {
      decision,
      results: boundTrace(results, listedResults),
      outcome,
      wouldRun,
      change: changeOf(decision.ran, wouldRun, outcome),
    }
  }

  const settle = (decision: PastDecision) => {
    const { success, chargedMicro } = decision.end!
    for (const { key, demand } of holds.get(decision.id) ?? []) {
      const finalMicro = !success
        ? 0n
        : demand.measure === 'count'
          ? demand.amountMicro
          : min(demand.amountMicro, chargedMicro)
      addToCounter(key, finalMicro - demand.amountMicro)
    }
  }

  const replayedById = new Map<string, ReplayedDecision>()
  const rulesOfDraft = Object.keys(draft.constraints).length + draft.rules.length
  let evaluatedRules = 0
  for (const { decision, isEnd } of toTimeline(past)) {
    if (isEnd) settle(decision)
    else replayedById.set(decision.id, decide(decision))
    evaluatedRules += rulesOfDraft + 1
    if (evaluatedRules < RULES_PER_TURN) continue
    evaluatedRules = 0
    await nextTurn()
  }
  return past.map((decision) => replayedById.get(decision.id)!)
}

/** Decisions and their ends in the original order. A decision that never ran has nothing to release. */
function toTimeline(past: readonly PastDecision[]): { seq: bigint; decision: PastDecision; isEnd: boolean }[] {
  const timeline = past.flatMap((decision) => [
    { seq: decision.decidedSeq, decision, isEnd: false },
    ...(decision.ran && decision.end && decision.endedSeq !== null
      ? [{ seq: decision.endedSeq, decision, isEnd: true }]
      : []),
  ])
  return timeline.sort((a, b) => (a.seq < b.seq ? -1 : 1))
}

const refuses = (outcome: Outcome) => outcome === 'blocked' || outcome === 'review_required'

function changeOf(ran: boolean, wouldRun: boolean, outcome: Outcome): Change {
  if (ran === wouldRun) return 'none'
  if (wouldRun) return 'newly_allowed'
  return outcome === 'review_required' ? 'newly_review' : 'newly_blocked'
}

/** The recorded outcome of one policy; null when it did not apply. */
export function recordedOutcome(decision: PastDecision, policyId: string | null): Outcome | null {
  const policyResults = decision.results.filter((result) => policyId !== null && result.policy_id === policyId)
  if (policyResults.length === 0) return null
  return worstOutcome(policyResults.map((result) => ({ outcome: applyMode(result.verdict, result.mode) })))
}

const min = (a: bigint, b: bigint) => (a < b ? a : b)
