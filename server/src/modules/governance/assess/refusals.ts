import { type AuditLink, type AwaitAudit, auditPending } from '../../../platform/audit-link.ts'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import type { Step } from '../../../platform/batch.ts'
import { hashJson } from '../../../platform/canonical.ts'
import type { Clock } from '../../../platform/clock.ts'
import type { Tx } from '../../../platform/db.ts'
import type { Ids } from '../../../platform/ids.ts'
import type { Keys } from '../../../platform/keys.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import type { StepAnswer, StepInput } from '../../../platform/sql-step.ts'
import { type ApprovalContent, describeRule, encryptContent } from '../approvals/approval-content.ts'
import type { PreauthRowItem, recordRefusalStep } from '../governance.steps.ts'
import { readIdentity } from '../grants/self-decision.ts'
import type { RulesCache } from '../rules/rules-cache.ts'
import type { AssessmentRequest, RefusedAssessment } from './assessment.ts'
import { smallestChanges, toCounterNeed } from './assessment-outcome.ts'
import { shouldAssessAgain } from './assessment-retry.ts'
import type { PaymentFacts } from './payment-facts.ts'

export type RefusalDeps = {
  clock: Clock
  ids: Ids
  rulesCache: Pick<RulesCache, 'invalidate'>
  record: Step<StepInput<typeof recordRefusalStep>, StepAnswer<typeof recordRefusalStep>>
  approvalWindowSeconds: number
  keys: Pick<Keys, 'encrypt'>
  db: Tx
}

/** `audit_id` is the event of this refusal; null when the pending approval of the same action was found instead. */
export type RecordedRefusal = StepAnswer<typeof recordRefusalStep> & { audit_id: string | null }

/** The refused run, or the refused pre-authorisation with its row. The content is kept only when an approval needs it. */
export type RefusalSubject = { content: ApprovalContent } & (
  | {
      run: {
        requestHash: string
        sessionId: string | undefined
        kind: AssessmentRequest['kind']
        paymentMethod: 'wallet' | 'x402'
      }
    }
  | { preauth: Omit<PreauthRowItem, 'decision_id'> }
)

/**
 * Records a refusal: the row, the decision with its reasons, the approval it requires, audit and events.
 * Returns undefined when limits or rules changed meanwhile, and the request has to be assessed again.
 */
export const createRefusals =
  (deps: RefusalDeps) =>
  async (
    tenant: TenantCaller,
    subject: RefusalSubject,
    assessment: RefusedAssessment,
  ): Promise<RecordedRefusal | undefined> => {
    const at = deps.clock.now()
    const identity = assessment.review && 'run' in subject ? await readIdentity(deps.db, tenant) : undefined
    const item = draftRefusal(deps, tenant, subject, assessment, at, identity)
    try {
      return toRecordedRefusal(item, await deps.record(item, refusalLocks(assessment), { owner: tenant.tenantId }))
    } catch (error) {
      if (!shouldAssessAgain(error)) throw error
      deps.rulesCache.invalidate(tenant.tenantId)
      return undefined
    }
  }

export const toRecordedRefusal = (
  { decision, audit }: { decision: { id: string }; audit: { id: string } },
  answer: StepAnswer<typeof recordRefusalStep>,
): RecordedRefusal => ({ ...answer, audit_id: answer.decision_id === decision.id ? audit.id : null })

/** The audit event of a recorded refusal, where a policy wants the answer to wait for it. */
export async function awaitRefusalAudit(
  awaitAudit: AwaitAudit,
  tenant: TenantCaller,
  assessment: RefusedAssessment,
  { audit_id, decision_id }: RecordedRefusal,
): Promise<{ audit?: AuditLink }> {
  if (!assessment.summary.audit_required || audit_id === null) return {}
  const audit = await awaitAudit(tenant.tenantId, audit_id)
  if (!audit) throw auditPending({ decision_id }, `/api/decisions/${decision_id}`, true)
  return { audit }
}

export const refusalLocks = (assessment: RefusedAssessment): string[] => [
  `action:${assessment.actionHash}`,
  ...assessment.counterChecks.map(({ scope }) => `limit:${scope}`),
]

/**
 * The input of SQL `record_refusal`. `identity`: all keys of whoever asks, which share one pending approval of the same
 * action. Each pre-authorisation is an action of its own.
 */
export function draftRefusal(
  deps: Pick<RefusalDeps, 'ids' | 'keys' | 'approvalWindowSeconds'>,
  tenant: TenantCaller,
  subject: RefusalSubject,
  assessment: RefusedAssessment,
  at: Date,
  identity: Iterable<string> = [tenant.keyId],
) {
  const { facts, results, review } = assessment
  const kind = 'run' in subject ? subject.run.kind : 'preauth'
  const runId = 'run' in subject ? deps.ids.next('run') : subject.preauth.run_id
  const decisionId = deps.ids.next('dec')
  const approvalId = review ? deps.ids.next('apr') : null
  const traceHash = hashJson(results)
  const expiresAt = new Date(at.getTime() + deps.approvalWindowSeconds * 1000).toISOString()
  const amount = facts.amountMicro.toString()
  const eventData = {
    run_id: runId,
    ...('preauth' in subject && { preauth_id: subject.preauth.id }),
    decision_id: decisionId,
    agent_id: facts.agentId,
    ...payerOf(facts),
    merchant: facts.merchants[0],
    amount,
    outcome: assessment.outcome,
    reason: assessment.message,
  }
  const event = (type: string, data: Record<string, unknown>) => ({
    id: deps.ids.next('evt'),
    tenant_id: tenant.tenantId,
    type,
    data,
    created_at: at.toISOString(),
  })
  const exceededBudgets = results.filter(
    (result) => result.budget_id !== undefined && result.verdict !== 'pass' && result.granted_by === undefined,
  )
  return {
    run:
      'run' in subject
        ? {
            id: runId,
            kind,
            session_id: subject.run.sessionId ?? deps.ids.next('ses'),
            loop_id: deps.ids.next('loop'),
            request_hash: subject.run.requestHash,
            // The task is nowhere but in the content of the approval; a simulation reads the session.
            request: subject.run.sessionId === undefined ? {} : { session_id: subject.run.sessionId },
            // The trace is stored once, with the decision.
            terms: { ruling: { ...assessment.summary, policy_applied: [], trace_hash: traceHash } },
          }
        : null,
    preauth: 'preauth' in subject ? { ...subject.preauth, decision_id: decisionId } : null,
    decision: {
      id: decisionId,
      tenant_id: tenant.tenantId,
      kind,
      run_id: runId,
      preauth_id: 'preauth' in subject ? subject.preauth.id : null,
      // Only a trade may have none, and its refusals are recorded elsewhere.
      agent_id: facts.agentId!,
      merchant: facts.merchants[0]!,
      amount_micro: amount,
      outcome: assessment.outcome,
      error: assessment.error,
      message: assessment.message,
      overridable: assessment.overridable,
      results,
      trace_hash: traceHash,
      action_hash: assessment.actionHash,
      asked_by: tenant.keyId,
      ...toPayerColumns(facts),
      created_at: at.toISOString(),
    },
    approval: review && {
      id: approvalId!,
      action: facts.action,
      reason: assessment.message,
      risk_summary: riskSummary(assessment),
      action_hash: assessment.actionHash,
      same_identity: [...identity],
      approvals_required: review.approvalsRequired,
      separate_approver: review.separateApprover,
      expires_at: expiresAt,
      content: encryptContent(deps.keys, subject.content),
      rule: describeRule(assessment),
      payment_method: 'run' in subject ? subject.run.paymentMethod : null,
    },
    needs: assessment.counterChecks.map(toCounterNeed),
    rules_version: assessment.rulesVersion,
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: tenant.tenantId,
      type: `${kind}.${assessment.outcome}`,
      occurred_at: at.toISOString(),
      actor: tenant.keyId,
      subject: 'preauth' in subject ? subject.preauth.id : runId,
      decision: assessment.outcome,
      policy_ids: assessment.policyIds,
      input_hash: assessment.actionHash,
      data: eventData,
    },
    events: [
      ...(review
        ? [
            event('approval.requested', {
              ...eventData,
              approval_id: approvalId,
              action_hash: assessment.actionHash,
              expires_at: expiresAt,
            }),
          ]
        : [event('run.blocked', eventData)]),
      ...exceededBudgets.map((result) =>
        event('budget.exceeded', {
          ...eventData,
          budget_id: result.budget_id,
          limit_usdc: result.limit,
          used_usdc: result.used,
        }),
      ),
    ],
  }
}

/** Who spends, as far as the request or its key names it. */
export const payerOf = ({ spender, team, tags }: PaymentFacts) => ({
  ...(spender !== null && { spender }),
  ...(team !== null && { team }),
  ...(Object.keys(tags).length > 0 && { tags }),
})

/** Who spends, as records have it. */
export const toPayerColumns = ({ spender, team, tags, keyId }: PaymentFacts) => ({
  spender: spender ?? (keyId === null ? null : `key:${keyId}`),
  team,
  tags: Object.keys(tags).length === 0 ? null : tags,
})

/** How many reasons and warnings an approver is shown; the decision has more. */
const MAX_REASONS = 20

/** The summary shown to the approver. */
const riskSummary = ({ facts, results, decided_by }: RefusedAssessment) => ({
  amount_usdc: usdcFromMicro(facts.amountMicro),
  agent_id: facts.agentId,
  merchant: facts.merchants[0],
  network: facts.network,
  asked_at: facts.at.toISOString(),
  because: results
    .filter((result) => result.outcome === 'review_required')
    .slice(0, MAX_REASONS)
    .map(({ rule, reason, asked, limit }) => ({ rule, reason, asked, limit })),
  warnings: results
    .filter((result) => result.outcome === 'warning')
    .slice(0, MAX_REASONS)
    .map(({ rule, reason }) => ({ rule, reason })),
  decided_by: decided_by?.rule ?? null,
})

/** The request leaves out a field by which a rule selects. */
export const refusalCode = ({ decided_by }: RefusedAssessment): 'field_required' | undefined =>
  decided_by?.field_required === undefined ? undefined : 'field_required'

/** The response fields of a refusal, the same on every endpoint. */
export const refusalFields = (assessment: RefusedAssessment, recordedRefusal: RecordedRefusal | null) => ({
  outcome: assessment.outcome,
  decision_id: recordedRefusal?.decision_id ?? null,
  approval_id: recordedRefusal?.approval_id ?? assessment.summary.approval_id,
  ...(recordedRefusal && { run_id: recordedRefusal.run_id }),
  ...(recordedRefusal?.preauth_id && { preauth_id: recordedRefusal.preauth_id }),
  decided_by: assessment.decided_by && {
    policy_id: assessment.decided_by.policy_id,
    budget_id: assessment.decided_by.budget_id ?? null,
    mandate_id: assessment.decided_by.mandate_id ?? null,
    rule: assessment.decided_by.rule,
  },
  ...(assessment.decided_by?.field_required !== undefined && { field_required: assessment.decided_by.field_required }),
  policy_results: assessment.results,
  smallest_change: smallestChanges(assessment.results),
})
