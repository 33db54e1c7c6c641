import type { PaymentFacts } from '../assess/payment-facts.ts'
import type { CounterDemand, CounterState } from '../counters/limit-counters.ts'
import type { RuleResult } from '../rules/rule-result.ts'
import { binds, evaluateMandate, evaluateStatelessMandate, type Mandate, mandateDemands } from './evaluate-mandate.ts'

/** How many mandates' counters are read at once. */
const READ_AT_ONCE = 16

export type StateOf = (demand: Pick<CounterDemand, 'scope'>) => CounterState | 'held' | undefined

export type MandateChoice = {
  /** The mandate that the payment uses; null when none binds it, or none of those that do fits. */
  mandate: Mandate | null
  results: RuleResult[]
  /** Counters without room, of mandates that come before the chosen one: they are the reason for the choice. */
  fullCounters: CounterDemand[]
}

/**
 * Chooses the mandate of a payment that names none: the first that fits, in the order of `compareMandates`. When none of
 * those that bind the payment fits, the results say for each why not.
 */
export async function chooseMandate(
  mandates: readonly Mandate[],
  facts: PaymentFacts,
  readStates: (demands: readonly CounterDemand[]) => Promise<StateOf>,
): Promise<MandateChoice> {
  const candidates = mandates
    .filter((mandate) => binds(mandate, facts))
    .map((mandate) => ({ mandate, objections: evaluateStatelessMandate(mandate, facts).filter(isObjection) }))
  const objections = new Map(candidates.map(({ mandate, objections }) => [mandate, objections]))
  const fitting = candidates.filter(({ objections }) => objections.length === 0).map(({ mandate }) => mandate)
  const fullCounters: CounterDemand[] = []
  for (let start = 0; start < fitting.length; start += READ_AT_ONCE) {
    const group = fitting.slice(start, start + READ_AT_ONCE)
    const stateOf = await readStates(group.flatMap((mandate) => mandateDemands(mandate, facts)))
    for (const mandate of group) {
      const results = evaluateMandate(mandate, facts, stateOf)
      const refusals = results.filter(isObjection)
      if (refusals.length === 0) return { mandate, results, fullCounters }
      objections.set(mandate, refusals)
      const full = new Set(refusals.map((result) => result.counter))
      fullCounters.push(...mandateDemands(mandate, facts).filter((demand) => full.has(demand.scope)))
    }
  }
  return { mandate: null, results: candidates.flatMap(({ mandate }) => objections.get(mandate)!), fullCounters }
}

const isObjection = (result: RuleResult) => result.verdict !== 'pass'
