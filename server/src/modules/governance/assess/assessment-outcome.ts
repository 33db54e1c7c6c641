import { hashJson } from '../../../platform/canonical.ts'
import type { Ids } from '../../../platform/ids.ts'
import { type Outcome, type RuleResult, type SmallestChange, worstOutcome } from '../rules/rule-result.ts'
import type { CounterCheck, Hold, RefusedAssessment } from './assessment.ts'
import type { RulesEvaluation } from './evaluate-rules.ts'

/** Budgets, including the budget of the request, refuse with `budget_exceeded`; everything else with `policy_blocked`. */
export const isBudgetResult = (result: RuleResult) =>
  result.field_required === undefined && (result.budget_id !== undefined || result.rule.startsWith('budget.'))

const refuses = (result: RuleResult) => result.outcome === 'blocked' || result.outcome === 'review_required'

/** The result that decides: deny wins over review, a missing field over others, and policies come before budgets. */
export function findDecidingResult(results: readonly RuleResult[]): RuleResult | null {
  const outcome = worstOutcome(results)
  const refusingResults = results.filter((result) => result.outcome === outcome && refuses(result))
  return (
    refusingResults.find((result) => result.field_required !== undefined) ??
    refusingResults.find((result) => !isBudgetResult(result)) ??
    refusingResults[0] ??
    null
  )
}

export const refusalError = (decidingResult: RuleResult | null): RefusedAssessment['error'] =>
  decidingResult && isBudgetResult(decidingResult) ? 'budget_exceeded' : 'policy_blocked'

export function refusalMessage(decidingResult: RuleResult): string {
  const { policy_id, policy_name, budget_id, mandate_id, mandate_name, outcome, reason } = decidingResult
  const source =
    policy_id !== null
      ? `The policy '${policy_name}'`
      : budget_id !== undefined
        ? `The budget '${budget_id}'`
        : mandate_id !== undefined
          ? `The mandate '${mandate_name ?? mandate_id}'`
          : undefined
  if (source === undefined) return reason
  return outcome === 'review_required'
    ? `${source} requires an approval. ${reason}`
    : `${source} refuses this. ${reason}`
}

/** One suggested change for each rule that refused the payment. */
export const smallestChanges = (results: readonly RuleResult[]): SmallestChange[] =>
  results.filter(refuses).flatMap((result) => (result.smallest_change ? [result.smallest_change] : []))

export const needsApproval = (result: RuleResult) => result.outcome === 'review_required'
export const needsOverride = (result: RuleResult) =>
  result.outcome === 'blocked' && result.policy_id !== null && result.field_required === undefined

/** Only denials by a policy can be overridden; hard limits, frozen agents and missing fields cannot. */
export const isOverridable = (results: readonly RuleResult[]) => results.some(needsOverride)

/** Turns the matching results into a pass and records the approval or override that allowed it. */
export const applyGrant = (
  results: readonly RuleResult[],
  applies: (result: RuleResult) => boolean,
  grantId: string,
): RuleResult[] =>
  results.map((result) => (applies(result) ? { ...result, outcome: 'pass', granted_by: grantId } : result))

/** The strictest review that any of the rules requires. */
export function requiredReview(
  { policies }: RulesEvaluation,
  results: readonly RuleResult[],
): RefusedAssessment['review'] {
  const reviewResults = results.filter((result) => result.outcome === 'review_required')
  if (reviewResults.length === 0) return null
  const constraints = policies
    .filter(({ policy }) => reviewResults.some((result) => result.policy_id === policy.id))
    .map(({ policy }) => policy.constraints)
  return {
    approvalsRequired: Math.max(1, ...constraints.map((constraint) => constraint.approvals_required ?? 1)),
    separateApprover: constraints.some((constraint) => constraint.separate_approver === true),
  }
}

/** A payment allowed by a grant is not held in the counter that refused it, so the counter stays within its limit. */
export const requiredHolds = (evaluation: RulesEvaluation, results: readonly RuleResult[], ids: Ids): Hold[] =>
  evaluation.demands.flatMap(({ demand, emitsThresholdEvents }) => {
    const result = results.find((candidate) => candidate.counter === demand.scope)
    if (result?.granted_by !== undefined) return []
    const { scope, period, amountMicro, measure, enforce, sliceEndsAt } = demand
    return [
      {
        scope,
        period,
        amountMicro,
        measure,
        onSuccess: 'spend',
        defined: true,
        enforce,
        ...(sliceEndsAt && { sliceEndsAt }),
        ...(emitsThresholdEvents && { eventId: ids.next('evt') }),
      },
    ]
  })

/** Every counter that was read and whether it had room, except those that a grant allowed to pass. */
export const counterChecks = (evaluation: RulesEvaluation, results: readonly RuleResult[]): CounterCheck[] => [
  ...evaluation.demands.flatMap(({ demand: { scope, period, amountMicro } }) => {
    const result = results.find((candidate) => candidate.counter === scope)
    if (!result || result.granted_by !== undefined) return []
    return [{ scope, period, amountMicro, room: result.verdict === 'pass' }]
  }),
  ...fullCounterChecks(evaluation),
]

/** The mandate was chosen because these counters of other mandates have no room. */
export const fullCounterChecks = ({ fullCounters }: RulesEvaluation): CounterCheck[] =>
  fullCounters.map(({ scope, period, amountMicro }) => ({ scope, period, amountMicro, room: false }))

/** A check in the form that SQL `require_same_room` reads. */
export const toCounterNeed = ({ scope, period, amountMicro, room }: CounterCheck) => ({
  scope,
  period,
  amount_micro: amountMicro,
  room,
})

/** Whether a policy that applied wants its answers to wait until they are in the audit chain. */
export const isAuditRequired = ({ policies }: Pick<RulesEvaluation, 'policies'>): boolean =>
  policies.some(({ policy }) => policy.audit_trail_required)

/** One hash over all policies that applied, with their versions. */
export function policyHash({ policies }: RulesEvaluation): string | null {
  if (policies.length === 0) return null
  const policyVersions = policies.map(({ policy, mode }) => ({
    policy_id: policy.id,
    version: policy.version,
    content_hash: policy.content_hash,
    mode,
  }))
  return hashJson(policyVersions.sort((a, b) => (a.policy_id < b.policy_id ? -1 : 1)))
}

/** The worst outcome of the budgets alone, shown as `budget_outcome`. */
export const budgetOutcome = (results: readonly RuleResult[]): Outcome => worstOutcome(results.filter(isBudgetResult))
