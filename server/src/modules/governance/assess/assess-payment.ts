import type { Ids } from '../../../platform/ids.ts'
import type { ReadCounters } from '../counters/limit-counters.store.ts'
import { requireOverrideMatches } from '../grants/authorize.ts'
import type { OverrideRow } from '../grants/grants.store.ts'
import { policyIds, type RuleResult, worstOutcome } from '../rules/rule-result.ts'
import type { AssessmentSummary, CounterCheck, Hold, RefusedAssessment } from './assessment.ts'
import {
  applyGrant,
  budgetOutcome,
  counterChecks,
  findDecidingResult,
  fullCounterChecks,
  isAuditRequired,
  isOverridable,
  needsApproval,
  needsOverride,
  policyHash,
  refusalError,
  refusalMessage,
  requiredHolds,
  requiredReview,
} from './assessment-outcome.ts'
import { boundTrace } from './bound-trace.ts'
import { evaluateRules, type RulesEvaluation, type RulesInput } from './evaluate-rules.ts'
import { payerOf } from './refusals.ts'

/** The approvals and overrides that a payment brings along. */
export type PaymentGrants = {
  override?: OverrideRow
  /** Present once the payment is approved, with the number of approving votes. */
  approval?: { id: string; votes: number; self_approved?: boolean }
  /** The pre-authorisation that a run uses: what was granted for it also applies to the run, for the same rules. */
  preauth?: {
    id: string
    override_id: string | null
    approval_id: string | null
    policy_results: unknown
    selfApproved: boolean
  }
}

export type PaymentRequest = RulesInput & {
  actionHash: string
  /** The results of the budget that the request sets itself. */
  requestResults?: readonly RuleResult[]
  grants: PaymentGrants
}

/** The results of all rules, with approvals and overrides applied. */
export type PaymentAssessment = {
  evaluation: RulesEvaluation
  results: RuleResult[]
  /** The result that refuses the payment; null when it is allowed. */
  decidingResult: RuleResult | null
  actionHash: string
  rulesVersion: bigint
  grants: PaymentGrants
  /** The override that the payment needs and uses. */
  overrideId: string | null
}

/** Assesses a payment by every rule: a run on one lane, a pre-authorisation, or a trade. It only reads. */
export async function assessPayment(
  readCounters: ReadCounters,
  { actionHash, requestResults = [], grants, ...input }: PaymentRequest,
): Promise<PaymentAssessment> {
  const { override, approval, preauth } = grants
  if (override) requireOverrideMatches(override, input.facts)
  const evaluation = await evaluateRules(readCounters, input)
  let results = [...requestResults, ...evaluation.results]
  if (preauth) {
    const { override_id: overrideId, approval_id: approvalId } = preauth
    const wasGranted = readGranted(preauth.policy_results as RuleResult[])
    if (overrideId) results = applyGrant(results, (result) => needsOverride(result) && wasGranted(result), overrideId)
    if (approvalId) results = applyGrant(results, (result) => needsApproval(result) && wasGranted(result), approvalId)
  }
  const overrideId = override !== undefined && results.some(needsOverride) ? override.id : null
  if (overrideId !== null) results = applyGrant(results, needsOverride, overrideId)
  const requiredVotes = requiredReview(evaluation, results)?.approvalsRequired ?? 1
  if (approval && approval.votes >= requiredVotes) results = applyGrant(results, needsApproval, approval.id)
  const decidingResult = findDecidingResult(results)
  return { evaluation, results, decidingResult, actionHash, rulesVersion: input.rules.version, grants, overrideId }
}

/** Which rules, in which version, the grants of a pre-authorisation were given for. */
function readGranted(results: readonly RuleResult[]): (result: RuleResult) => boolean {
  const keyOf = ({ policy_id, policy_version, budget_id, rule }: RuleResult) =>
    JSON.stringify([policy_id, policy_version ?? null, budget_id ?? null, rule])
  const granted = new Set(results.filter((result) => result.granted_by !== undefined).map(keyOf))
  return (result) => granted.has(keyOf(result))
}

export type AllowedPayment = {
  refused: false
  /** The listed results: `boundTrace`. */
  results: RuleResult[]
  policyIds: string[]
  policyHash: string | null
  holds: Hold[]
  /** Holds while the mandate is chosen for the same reason; SQL `require_same_room`. */
  needs: CounterCheck[]
  rulesVersion: bigint
  mandateId: string | null
  overrideId: string | null
  auditRequired: boolean
}

/** What an allowed payment holds and uses. */
export const toAllowedPayment = (ids: Ids, assessment: PaymentAssessment): AllowedPayment => ({
  refused: false,
  results: boundTrace(assessment.results),
  policyIds: policyIds(assessment.results),
  policyHash: policyHash(assessment.evaluation),
  holds: requiredHolds(assessment.evaluation, assessment.results, ids),
  needs: fullCounterChecks(assessment.evaluation),
  rulesVersion: assessment.rulesVersion,
  mandateId: assessment.evaluation.mandateId,
  overrideId: assessment.overrideId,
  auditRequired: isAuditRequired(assessment.evaluation),
})

export function toSummary(assessment: PaymentAssessment, decision: string, budget: string): AssessmentSummary {
  const { evaluation, results, overrideId } = assessment
  const { approval, override, preauth } = assessment.grants
  const selfApproved =
    approval?.self_approved || (overrideId !== null && override?.self_approved) || preauth?.selfApproved
  const { facts } = evaluation
  return {
    decision,
    budget_outcome: budget,
    policy_applied: boundTrace(results),
    policy_hash: policyHash(evaluation),
    mandate_id: evaluation.mandateId,
    preauth_id: preauth?.id ?? null,
    override_id: overrideId ?? preauth?.override_id ?? null,
    approval_id: approval?.id ?? preauth?.approval_id ?? null,
    ...(selfApproved && { self_approved: true as const }),
    asked_by: facts.keyId,
    decided_at: facts.at.toISOString(),
    merchant: facts.merchants[0]!,
    ...payerOf(facts),
    ...(isAuditRequired(evaluation) && { audit_required: true as const }),
  }
}

/** The refusal of a payment that the rules do not allow. */
export function toRefusal(assessment: PaymentAssessment): RefusedAssessment {
  const outcome = worstOutcome(assessment.results) === 'review_required' ? 'review_required' : 'blocked'
  const deciding = assessment.decidingResult!
  return {
    ...describeRefusal(assessment),
    error: refusalError(deciding),
    message: refusalMessage(deciding),
    outcome,
    decided_by: deciding,
    counterChecks: counterChecks(assessment.evaluation, assessment.results),
    overridable: isOverridable(assessment.results),
    review: outcome === 'review_required' ? requiredReview(assessment.evaluation, assessment.results) : null,
    summary: toSummary(assessment, outcome, budgetOutcome(assessment.results)),
  }
}

/** The approval that a request names was rejected, or expired before it was decided. */
export const toRejection = (assessment: PaymentAssessment, message: string): RefusedAssessment => ({
  ...describeRefusal(assessment),
  error: 'policy_blocked',
  message,
  outcome: 'rejected',
  decided_by: null,
  counterChecks: [],
  overridable: false,
  review: null,
  summary: toSummary(assessment, 'rejected', budgetOutcome(assessment.results)),
})

const describeRefusal = (assessment: PaymentAssessment) => ({
  refused: true as const,
  results: boundTrace(assessment.results),
  policyIds: policyIds(assessment.results),
  facts: assessment.evaluation.facts,
  actionHash: assessment.actionHash,
  rulesVersion: assessment.rulesVersion,
})
