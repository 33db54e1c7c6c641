import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Step } from '../../platform/batch.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Ids } from '../../platform/ids.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { StepAnswer, StepInput } from '../../platform/step.ts'
import type { AssessmentRequest, RefusedAssessment } from './assessment.ts'
import { smallestChanges } from './assessment-outcome.ts'
import type { recordRefusalStep } from './governance.steps.ts'
import { policyIds } from './rule-result.ts'
import type { RulesCache } from './rules-cache.ts'
import { shouldLookAgain } from './steps.ts'

export type RefusalDeps = {
  clock: Clock
  ids: Ids
  books: Pick<RulesCache, 'forget'>
  record: Step<StepInput<typeof recordRefusalStep>, RecordedRefusal>
  approvalWindowSeconds: number
}

export type RecordedRefusal = StepAnswer<typeof recordRefusalStep>

/** What is refused: a run with what was asked, or a pre-authorisation with its row. */
export type RefusalSubject =
  | { run: { requestHash: string; request: unknown; sessionId: string | undefined; kind: AssessmentRequest['kind'] } }
  | { preauth: Record<string, unknown> & { id: string; run_id: string } }

/**
 * Writes a tenant's refusal down: the row, the decision with its reasons, the approval it asks for, audit and events.
 * Undefined when the world has moved meanwhile (room again, other rules): then it has to be judged anew.
 */
export const createRefusals =
  (d: RefusalDeps) =>
  async (
    tenant: TenantCaller,
    subject: RefusalSubject,
    ruling: RefusedAssessment,
  ): Promise<RecordedRefusal | undefined> => {
    const at = d.clock.now()
    const item = draftRefusal(d, tenant, subject, ruling, at)
    try {
      return await d.record(item, refusalLocks(ruling))
    } catch (error) {
      if (!shouldLookAgain(error)) throw error
      d.books.forget(tenant.tenantId)
      return undefined
    }
  }

export const refusalLocks = (ruling: RefusedAssessment): string[] => [
  `action:${ruling.actionHash}`,
  ...ruling.counterChecks.map(({ scope }) => `limit:${scope}`),
]

/** What SQL `record_refusal` writes. */
export function draftRefusal(
  d: Pick<RefusalDeps, 'ids' | 'approvalWindowSeconds'>,
  tenant: TenantCaller,
  subject: RefusalSubject,
  ruling: RefusedAssessment,
  at: Date,
) {
  const { facts, results, review } = ruling
  const kind = 'run' in subject ? subject.run.kind : 'preauth'
  const runId = 'run' in subject ? d.ids.next('run') : subject.preauth.run_id
  const decisionId = d.ids.next('dec')
  const approvalId = review ? d.ids.next('apr') : null
  const expiresAt = new Date(at.getTime() + d.approvalWindowSeconds * 1000).toISOString()
  const amount = facts.amountMicro.toString()
  const told = {
    run_id: runId,
    ...('preauth' in subject && { preauth_id: subject.preauth.id }),
    decision_id: decisionId,
    agent_id: facts.agentId,
    merchant: facts.merchants[0],
    amount,
    outcome: ruling.outcome,
    reason: ruling.message,
  }
  const event = (type: string, data: Record<string, unknown>) => ({
    id: d.ids.next('evt'),
    tenant_id: tenant.tenantId,
    type,
    data,
    created_at: at.toISOString(),
  })
  const exceeded = results.filter(
    (result) => result.budget_id !== undefined && result.verdict !== 'pass' && result.granted_by === undefined,
  )
  return {
    run:
      'run' in subject
        ? {
            id: runId,
            kind,
            session_id: subject.run.sessionId ?? d.ids.next('ses'),
            loop_id: d.ids.next('loop'),
            request_hash: subject.run.requestHash,
            request: subject.run.request,
            terms: { ruling: ruling.summary },
          }
        : null,
    preauth: 'preauth' in subject ? { ...subject.preauth, decision_id: decisionId } : null,
    decision: {
      id: decisionId,
      tenant_id: tenant.tenantId,
      kind,
      run_id: runId,
      preauth_id: 'preauth' in subject ? subject.preauth.id : null,
      agent_id: facts.agentId,
      merchant: facts.merchants[0],
      amount_micro: amount,
      outcome: ruling.outcome,
      error: ruling.error,
      message: ruling.message,
      overridable: ruling.overridable,
      results,
      action_hash: ruling.actionHash,
      asked_by: tenant.keyId,
      created_at: at.toISOString(),
    },
    approval: review && {
      id: approvalId,
      action: facts.action,
      reason: ruling.message,
      risk_summary: riskSummary(ruling),
      action_hash: ruling.actionHash,
      approvals_required: review.approvalsRequired,
      separate_approver: review.separateApprover,
      expires_at: expiresAt,
    },
    needs: ruling.counterChecks.map(({ amountMicro, ...need }) => ({ ...need, amount_micro: amountMicro })),
    rules_version: ruling.rulesVersion,
    audit: {
      id: d.ids.next('aud'),
      tenant_id: tenant.tenantId,
      type: `${kind}.${ruling.outcome}`,
      occurred_at: at.toISOString(),
      actor: tenant.keyId,
      subject: 'preauth' in subject ? subject.preauth.id : runId,
      decision: ruling.outcome,
      policy_ids: policyIds(results),
      input_hash: ruling.actionHash,
      data: told,
    },
    events: [
      ...(review
        ? [
            event('approval.requested', {
              ...told,
              approval_id: approvalId,
              action_hash: ruling.actionHash,
              expires_at: expiresAt,
            }),
          ]
        : [event('run.blocked', told)]),
      ...exceeded.map((result) =>
        event('budget.exceeded', {
          ...told,
          budget_id: result.budget_id,
          limit_usdc: result.limit,
          used_usdc: result.used,
        }),
      ),
    ],
  }
}

/** What a person needs to see before saying yes. */
const riskSummary = ({ facts, results, decided_by }: RefusedAssessment) => ({
  amount_usdc: usdcFromMicro(facts.amountMicro),
  agent_id: facts.agentId,
  merchant: facts.merchants[0],
  network: facts.network,
  asked_at: facts.at.toISOString(),
  because: results
    .filter((result) => result.outcome === 'review_required')
    .map(({ rule, reason, asked, limit }) => ({ rule, reason, asked, limit })),
  warnings: results.filter((result) => result.outcome === 'warning').map(({ rule, reason }) => ({ rule, reason })),
  decided_by: decided_by?.rule ?? null,
})

/** Top-level fields of a governance refusal, the same on every endpoint. */
export const refusalFields = (ruling: RefusedAssessment, recorded: RecordedRefusal | null) => ({
  outcome: ruling.outcome,
  decision_id: recorded?.decision_id ?? null,
  approval_id: recorded?.approval_id ?? ruling.summary.approval_id,
  ...(recorded && { run_id: recorded.run_id }),
  ...(recorded?.preauth_id && { preauth_id: recorded.preauth_id }),
  decided_by: ruling.decided_by && {
    policy_id: ruling.decided_by.policy_id,
    budget_id: ruling.decided_by.budget_id ?? null,
    mandate_id: ruling.decided_by.mandate_id ?? null,
    rule: ruling.decided_by.rule,
  },
  policy_results: ruling.results,
  smallest_change: smallestChanges(ruling.results),
})
