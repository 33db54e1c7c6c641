import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Tx } from '../../../platform/db.ts'
import type { Ids } from '../../../platform/ids.ts'
import { readCounters } from '../counters/limit-counters.store.ts'
import { requireOverrideMatches } from '../grants/authorize.ts'
import type { OverrideRow } from '../grants/grants.store.ts'
import type { Mandate } from '../mandates/evaluate-mandate.ts'
import { policyIds, type RuleResult, worstOutcome } from '../rules/rule-result.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import type { AssessmentSummary, Hold, RefusedAssessment } from './assessment.ts'
import {
  applyGrant,
  counterChecks,
  findDecidingResult,
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
import { evaluateRules } from './evaluate-rules.ts'
import type { PaymentFacts } from './payment-facts.ts'

/** A payment that is made outside this service, with the grants sent along. */
export type PaymentAssessmentRequest = {
  facts: PaymentFacts
  actionHash: string
  mandate: Mandate | null
  override?: OverrideRow
  /** Present once the payment is approved, with the number of approving votes. */
  approval?: { id: string; votes: number }
  freeze: { reason: string } | undefined
}

export type PaymentDeps = { ids: Ids; rulesCache: RulesCache }

export type AllowedPayment = {
  refused: false
  /** The listed results: `boundTrace`. */
  results: RuleResult[]
  policyIds: string[]
  policyHash: string | null
  holds: Hold[]
  rulesVersion: bigint
  overrideId: string | null
}

/** Assesses a payment made outside this service by the same rules as a run, and by its mandate. */
export async function assessPayment(
  deps: PaymentDeps,
  tx: Tx,
  tenant: TenantCaller,
  request: PaymentAssessmentRequest,
): Promise<AllowedPayment | RefusedAssessment> {
  const { facts, actionHash, mandate, override, approval, freeze } = request
  if (override) requireOverrideMatches(override, facts)
  const rules = await deps.rulesCache.get(tenant.tenantId, tenant.keyId, tx)
  const evaluation = await evaluateRules((counters) => readCounters(tx, counters), {
    rules,
    keyId: tenant.keyId,
    facts,
    requestedPolicies: { policies: [] },
    mandate,
    heldScopes: new Set(),
    freeze,
  })
  const overrideUsed = override !== undefined && evaluation.results.some(needsOverride)
  let results = overrideUsed ? applyGrant(evaluation.results, needsOverride, override.id) : evaluation.results
  const requiredVotes = requiredReview(evaluation, results)?.approvalsRequired ?? 1
  if (approval && approval.votes >= requiredVotes) results = applyGrant(results, needsApproval, approval.id)

  const decidingResult = findDecidingResult(results)
  const hash = policyHash(evaluation)
  if (!decidingResult) {
    const overrideId = overrideUsed ? override.id : null
    return {
      refused: false,
      results: boundTrace(results),
      policyIds: policyIds(results),
      policyHash: hash,
      holds: requiredHolds(evaluation, results, deps.ids),
      rulesVersion: rules.version,
      overrideId,
    }
  }
  const outcome = worstOutcome(results) === 'review_required' ? 'review_required' : 'blocked'
  const summary: AssessmentSummary = {
    decision: outcome,
    budget_outcome: 'pass',
    policy_applied: boundTrace(results),
    policy_hash: hash,
    mandate_id: mandate?.id ?? null,
    preauth_id: null,
    override_id: overrideUsed ? override.id : null,
    approval_id: null,
    asked_by: tenant.keyId,
    decided_at: facts.at.toISOString(),
    merchant: facts.merchants[0]!,
  }
  return {
    refused: true,
    error: refusalError(decidingResult),
    message: refusalMessage(decidingResult),
    outcome,
    results: boundTrace(results),
    policyIds: policyIds(results),
    decided_by: decidingResult,
    facts,
    actionHash,
    rulesVersion: rules.version,
    counterChecks: counterChecks(evaluation, results),
    overridable: isOverridable(results),
    review: outcome === 'review_required' ? requiredReview(evaluation, results) : null,
    summary,
  }
}
