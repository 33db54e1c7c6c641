import { hashJson } from '../../platform/canonical.ts'
import type { Ids } from '../../platform/ids.ts'
import type { CounterCheck, Hold, RefusedAssessment } from './assessment.ts'
import type { RulesEvaluation } from './evaluate-rules.ts'
import { type Outcome, type RuleResult, type SmallestChange, worstOutcome } from './rule-result.ts'

/** Budgets and the request's own ceiling refuse with `budget_exceeded`, everything else with `policy_blocked`. */
export const isBudgetResult = (result: RuleResult) =>
  result.budget_id !== undefined || result.rule.startsWith('budget.')

const refuses = (result: RuleResult) => result.outcome === 'blocked' || result.outcome === 'review_required'

/** Deny wins over review, and a policy's word comes before a budget's. */
export function findDecidingResult(results: readonly RuleResult[]): RuleResult | null {
  const outcome = worstOutcome(results)
  const speakers = results.filter((result) => result.outcome === outcome && refuses(result))
  return speakers.find((result) => !isBudgetResult(result)) ?? speakers[0] ?? null
}

export const refusalError = (decided: RuleResult | null): RefusedAssessment['error'] =>
  decided && isBudgetResult(decided) ? 'budget_exceeded' : 'policy_blocked'

export function refusalMessage(decided: RuleResult): string {
  const { policy_id, policy_name, budget_id, mandate_id, outcome, reason } = decided
  const who =
    policy_id !== null
      ? `The policy '${policy_name}'`
      : budget_id !== undefined
        ? `The budget '${budget_id}'`
        : mandate_id !== undefined
          ? 'The mandate'
          : undefined
  if (who === undefined) return reason
  return outcome === 'review_required'
    ? `${who} wants a person to approve this. ${reason}`
    : `${who} refuses this. ${reason}`
}

/** Everything that would have to be different, one change for each rule that refused. */
export const smallestChanges = (results: readonly RuleResult[]): SmallestChange[] =>
  results.filter(refuses).flatMap((result) => (result.smallest_change ? [result.smallest_change] : []))

/** A policy's denial can be overridden by a person; a hard limit and a frozen agent cannot. */
export const isOverridable = (results: readonly RuleResult[]) =>
  results.some((result) => result.outcome === 'blocked' && result.policy_id !== null)

/** Lets what was refused pass by the word of a person, and says by whose. */
export const applyGrant = (
  results: readonly RuleResult[],
  applies: (result: RuleResult) => boolean,
  by: string,
): RuleResult[] => results.map((result) => (applies(result) ? { ...result, outcome: 'pass', granted_by: by } : result))

export const needsApproval = (result: RuleResult) => result.outcome === 'review_required'
export const needsOverride = (result: RuleResult) => result.outcome === 'blocked' && result.policy_id !== null

/** Who has to approve: the most that any of the rules asks for. */
export function requiredReview(
  { policies }: RulesEvaluation,
  results: readonly RuleResult[],
): RefusedAssessment['review'] {
  const asking = results.filter((result) => result.outcome === 'review_required')
  if (asking.length === 0) return null
  const constraints = policies
    .filter(({ policy }) => asking.some((result) => result.policy_id === policy.id))
    .map(({ policy }) => policy.constraints)
  return {
    approvalsRequired: Math.max(1, ...constraints.map((one) => one.approvals_required ?? 1)),
    separateApprover: constraints.some((one) => one.separate_approver === true),
  }
}

/** What a person let pass stands outside the counter that refused it, so that the counter stays within its limit. */
export const requiredHolds = (judged: RulesEvaluation, results: readonly RuleResult[], ids: Ids): Hold[] =>
  judged.demands.flatMap(({ demand, announces }) => {
    const result = results.find((one) => one.counter === demand.scope)
    if (result?.granted_by !== undefined) return []
    const { scope, period, amountMicro, measure, enforce } = demand
    return [
      {
        scope,
        period,
        amountMicro,
        measure,
        onSuccess: 'spend',
        defined: true,
        enforce,
        ...(announces && { eventId: ids.next('evt') }),
      },
    ]
  })

/** Every counter that was looked at, with what was seen; what a person let pass is no longer in question. */
export const counterChecks = (judged: RulesEvaluation, results: readonly RuleResult[]): CounterCheck[] =>
  judged.demands.flatMap(({ demand: { scope, period, amountMicro } }) => {
    const result = results.find((one) => one.counter === scope)
    if (!result || result.granted_by !== undefined) return []
    return [{ scope, period, amountMicro, room: result.verdict === 'pass' }]
  })

/** One hash for all the policies that spoke, in the versions that spoke. */
export function policyHash({ policies }: RulesEvaluation): string | null {
  if (policies.length === 0) return null
  const said = policies.map(({ policy, mode }) => ({
    policy_id: policy.id,
    version: policy.version,
    content_hash: policy.content_hash,
    mode,
  }))
  return hashJson(said.sort((a, b) => (a.policy_id < b.policy_id ? -1 : 1)))
}

/** Of the budgets alone: what the contract shows as `budget_outcome`. */
export const budgetOutcome = (results: readonly RuleResult[]): Outcome => worstOutcome(results.filter(isBudgetResult))
