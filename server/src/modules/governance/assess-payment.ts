import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
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
import { requireOverrideMatches } from './check-grants.ts'
import { evaluateRules } from './evaluate-rules.ts'
import type { OverrideRow } from './grants.store.ts'
import type { Mandate } from './mandate.ts'
import type { PaymentFacts } from './payment-facts.ts'
import { type RuleResult, worstOutcome } from './rule-result.ts'
import type { RulesCache } from './rules-cache.ts'

/** A payment made elsewhere: what is asked, and what it brings along. */
export type PaymentAssessmentRequest = {
  facts: PaymentFacts
  actionHash: string
  mandate: Mandate | null
  override?: OverrideRow
  /** Given when people have approved it: how many have. */
  approval?: { id: string; votes: number }
  frozen: { reason: string } | undefined
}

export type PaymentDeps = { ids: Ids; books: RulesCache }

export type AllowedPayment = {
  refused: false
  results: RuleResult[]
  policyHash: string | null
  holds: Hold[]
  rulesVersion: bigint
  overrideId: string | null
}

/** May this payment be made elsewhere? The same rules as for a run; a mandate's besides. */
export async function assessPayment(
  d: PaymentDeps,
  tx: Tx,
  tenant: TenantCaller,
  asked: PaymentAssessmentRequest,
): Promise<AllowedPayment | RefusedAssessment> {
  const { facts, actionHash, mandate, override, approval, frozen } = asked
  if (override) requireOverrideMatches(override, facts)
  const book = await d.books.of(tenant.tenantId, tenant.keyId, tx)
  const judged = await evaluateRules(tx, {
    book,
    keyId: tenant.keyId,
    facts,
    wishes: { policies: [] },
    mandate,
    heldScopes: new Set(),
    frozen,
  })
  const overrideUsed = override !== undefined && judged.results.some(needsOverride)
  let results = overrideUsed ? applyGrant(judged.results, needsOverride, override.id) : judged.results
  const required = requiredReview(judged, results)?.approvalsRequired ?? 1
  if (approval && approval.votes >= required) results = applyGrant(results, needsApproval, approval.id)

  const decided = findDecidingResult(results)
  const hash = policyHash(judged)
  if (!decided) {
    const overrideId = overrideUsed ? override.id : null
    return {
      refused: false,
      results,
      policyHash: hash,
      holds: requiredHolds(judged, results, d.ids),
      rulesVersion: book.version,
      overrideId,
    }
  }
  const outcome = worstOutcome(results) === 'review_required' ? 'review_required' : 'blocked'
  const summary: AssessmentSummary = {
    decision: outcome,
    budget_outcome: 'pass',
    policy_applied: results,
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
    error: refusalError(decided),
    message: refusalMessage(decided),
    outcome,
    results,
    decided_by: decided,
    facts,
    actionHash,
    rulesVersion: book.version,
    counterChecks: counterChecks(judged, results),
    overridable: isOverridable(results),
    review: outcome === 'review_required' ? requiredReview(judged, results) : null,
    summary,
  }
}
