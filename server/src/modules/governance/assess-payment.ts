import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Books } from './book.ts'
import type { Facts } from './facts.ts'
import type { OverrideRow } from './grants.store.ts'
import { needOverrideFits } from './grants.ts'
import { judge } from './judge.ts'
import type { Mandate } from './mandate.ts'
import { type RuleResult, worst } from './result.ts'
import type { Hold, Refused, RulingSummary } from './ruling.ts'
import {
  byApproval,
  byOverride,
  decidedBy,
  errorOf,
  grant,
  holdsOf,
  isOverridable,
  messageOf,
  needsOf,
  policyHash,
  reviewOf,
} from './verdict.ts'

/** A payment made elsewhere: what is asked, and what it brings along. */
export type PaymentCase = {
  facts: Facts
  actionHash: string
  mandate: Mandate | null
  override?: OverrideRow
  /** Given when people have approved it: how many have. */
  approval?: { id: string; votes: number }
  frozen: { reason: string } | undefined
}

export type PaymentDeps = { ids: Ids; books: Books }

export type PaymentAllowed = {
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
  asked: PaymentCase,
): Promise<PaymentAllowed | Refused> {
  const { facts, actionHash, mandate, override, approval, frozen } = asked
  if (override) needOverrideFits(override, facts)
  const book = await d.books.of(tenant.tenantId, tenant.keyId, tx)
  const judged = await judge(tx, {
    book,
    keyId: tenant.keyId,
    facts,
    wishes: { policies: [] },
    mandate,
    heldScopes: new Set(),
    frozen,
  })
  const overrideUsed = override !== undefined && judged.results.some(byOverride)
  let results = overrideUsed ? grant(judged.results, byOverride, override.id) : judged.results
  const required = reviewOf(judged, results)?.approvalsRequired ?? 1
  if (approval && approval.votes >= required) results = grant(results, byApproval, approval.id)

  const decided = decidedBy(results)
  const hash = policyHash(judged)
  if (!decided) {
    const overrideId = overrideUsed ? override.id : null
    return {
      refused: false,
      results,
      policyHash: hash,
      holds: holdsOf(judged, results, d.ids),
      rulesVersion: book.version,
      overrideId,
    }
  }
  const outcome = worst(results) === 'review_required' ? 'review_required' : 'blocked'
  const summary: RulingSummary = {
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
    error: errorOf(decided),
    message: messageOf(decided),
    outcome,
    results,
    decided_by: decided,
    facts,
    actionHash,
    rulesVersion: book.version,
    needs: needsOf(judged, results),
    overridable: isOverridable(results),
    review: outcome === 'review_required' ? reviewOf(judged, results) : null,
    summary,
  }
}
