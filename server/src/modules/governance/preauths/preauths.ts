import { type AwaitAudit, auditPending, pendingAuditId, withAuditLink } from '../../../platform/audit-link.ts'
import type { TenantCaller } from '../../../platform/auth-context.ts'
import { callStepWithLocks, StepRefused } from '../../../platform/batch.ts'
import type { Tx } from '../../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../../platform/idempotency.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import { readPage } from '../../../platform/paging.ts'
import { conflict, invalid, notFound, Problem, unavailable } from '../../../platform/problem.ts'
import { saltHashes } from '../../receipts/receipts.ts'
import { type AllowedPayment, assessPayment, toAllowedPayment, toRefusal } from '../assess/assess-payment.ts'
import type { AssessDeps } from '../assess/assess-run.ts'
import type { Hold, RefusedAssessment } from '../assess/assessment.ts'
import { toCounterNeed } from '../assess/assessment-outcome.ts'
import { MAX_ATTEMPTS, shouldAssessAgain, waitBeforeRetry } from '../assess/assessment-retry.ts'
import { agentNames } from '../assess/payment-facts.ts'
import {
  awaitRefusalAudit,
  draftRefusal,
  type RecordedRefusal,
  type RefusalDeps,
  type RefusalSubject,
  refusalCode,
  refusalFields,
  refusalLocks,
  toRecordedRefusal,
} from '../assess/refusals.ts'
import { readCounters } from '../counters/limit-counters.store.ts'
import { usedOf } from '../counters/limit-counters.ts'
import { toLimitHoldItem } from '../counters/limit-hold-item.ts'
import { openPreauthStep, recordRefusalStep } from '../governance.steps.ts'
import { findUsableOverride } from '../grants/authorize.ts'
import { findPreauth, type PreauthRow, readMandate } from '../grants/grants.store.ts'
import { readPreauthAccess } from './preauth-access.ts'
import { type PreauthInput, type PreauthTerms, preauthActionHash, preauthFacts, readTerms } from './preauth-terms.ts'
import { type PreauthClaims, signPreauthToken } from './preauth-token.ts'
import { listPreauths } from './preauths.store.ts'

export type PreauthsDeps = Omit<AssessDeps, 'readCounters'> &
  Pick<RefusalDeps, 'approvalWindowSeconds' | 'keys'> & {
    idempotency: Idempotency
    record(
      tenant: TenantCaller,
      subject: RefusalSubject,
      assessment: RefusedAssessment,
    ): Promise<RecordedRefusal | undefined>
    asset: string
    publicUrl: () => string
    closeSeconds: number
    awaitAudit: AwaitAudit
  }

export type Preauths = ReturnType<typeof createPreauths>

/** Creates and lists pre-authorisations: a signed token for one payment, with its amount held. */
export function createPreauths(deps: PreauthsDeps) {
  const attemptCreate = async (
    tenant: TenantCaller,
    input: PreauthInput,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse> => {
    const terms = readTerms(tenant, input, deps)
    const freeze = await deps.findFreeze(tenant.tenantId, agentNames(terms))
    const request = {
      scope: `tenant:${tenant.tenantId}`,
      route: 'POST /api/pre-auth',
      key: idempotencyKey,
      body: input,
    }
    return deps.idempotency.once(request, async (tx) => {
      const namedMandate = await findNamedMandate(tx, tenant, terms)
      const override =
        input.override_token === undefined
          ? undefined
          : await findUsableOverride({ ...deps, db: tx }, tenant, input.override_token)
      const at = deps.clock.now()
      const id = deps.ids.next('pa')
      const runId = deps.ids.next('run')
      const hash = preauthActionHash(tenant, id, terms)
      const assessment = await assessPayment((counters) => readCounters(tx, counters, at), {
        rules: await deps.rulesCache.get(tenant.tenantId, tenant.keyId, tx),
        facts: preauthFacts(terms, tenant.keyId, deps, at),
        requestedPolicies: { policies: [] },
        namedMandate,
        heldScopes: new Set(),
        freeze,
        actionHash: hash,
        grants: { override },
      })
      const row = draftRow(tenant, { id, runId, terms, hash, at })
      if (assessment.decidingResult) {
        const refusal = toRefusal(assessment)
        const { policy_hash } = refusal.summary
        const { override_token: _, idempotency_key: __, ...shownRequest } = input
        const subject = {
          preauth: { ...row, policy_hash, override_id: assessment.overrideId, policy_results: refusal.results },
          content: { request: shownRequest },
        }
        if (!refusal.review) throw new PreauthRejectedError(subject, refusal)
        const item = draftRefusal(deps, tenant, subject, refusal, at)
        const recordedRefusal = await callStepWithLocks(tx, recordRefusalStep, item, refusalLocks(refusal))
        const pendingResponse = toPendingResponse(row, refusal, toRecordedRefusal(item, recordedRefusal))
        return {
          status: 201,
          body: { ...pendingResponse, ...namedAudit(refusal.summary.audit_required, item.audit) },
        }
      }
      const allowed = toAllowedPayment(deps.ids, assessment)
      const { item, locks } = draftOpenPreauth(deps, { ...row, mandate_id: allowed.mandateId }, allowed, terms, at)
      await callStepWithLocks(tx, openPreauthStep, item, locks)
      const storedRow = (await findPreauth(tx, tenant.tenantId, id))!
      return {
        status: 201,
        body: {
          ...toPreauthRecord(deps, tenant, storedRow, true),
          remaining: await readRemaining(tx, allowed.holds, at),
          ...namedAudit(allowed.auditRequired, item.audit),
        },
      }
    })
  }

  /** A stored answer goes to every key of the tenant, its token only to keys that may use it. */
  const withoutForeignToken = async (tenant: TenantCaller, response: IdempotentResponse) => {
    if (!response.replayed) return response
    const body = JSON.parse(response.body) as { preauth_id: string; token: string | null }
    if (body.token === null) return response
    const row = await findPreauth(deps.db, tenant.tenantId, body.preauth_id)
    if (row && (await readPreauthAccess(deps.db, tenant))(row)) return response
    return { ...response, body: JSON.stringify({ ...body, token: null }) }
  }

  const completeAudit = async (tenant: TenantCaller, response: IdempotentResponse, key: string | undefined) => {
    const eventId = pendingAuditId(response.body)
    if (eventId === undefined) return response
    const link = await deps.awaitAudit(tenant.tenantId, eventId)
    if (link) return { ...response, body: withAuditLink(response.body, link) }
    const { preauth_id } = JSON.parse(response.body) as { preauth_id: string }
    throw auditPending({ preauth_id }, `/api/pre-auth/${preauth_id}`, key !== undefined)
  }

  return {
    /** Retries when a limit or a rule changed between the assessment and the hold. */
    async create(
      tenant: TenantCaller,
      input: PreauthInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        try {
          const response = await attemptCreate(tenant, input, idempotencyKey)
          return await completeAudit(tenant, await withoutForeignToken(tenant, response), idempotencyKey)
        } catch (error) {
          if (error instanceof PreauthRejectedError) {
            const problem = await recordRejection(deps, tenant, error)
            if (problem) throw problem
            await waitBeforeRetry(attempt)
            continue
          }
          if (error instanceof StepRefused && error.message === 'override_used')
            throw conflict('This override has been used; it works once.')
          if (!shouldAssessAgain(error)) throw error
          deps.rulesCache.invalidate(tenant.tenantId)
          await waitBeforeRetry(attempt)
        }
      }
      throw unavailable('The limits of this payment keep changing; nothing was held.', 1)
    },

    async list(tenant: TenantCaller, query: { limit?: number; cursor?: string; status?: string; agent_id?: string }) {
      const readRows = (limit: number, after: PreauthRow | undefined) =>
        listPreauths(deps.db, tenant.tenantId, { ...query, limit, cursor: after?.id ?? query.cursor })
      const { rows, ...paging } = await readPage(query.limit ?? 50, readRows, (row) => row.id)
      const mayUse = await readPreauthAccess(deps.db, tenant)
      return { preauths: rows.map((row) => toPreauthRecord(deps, tenant, row, mayUse(row))), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findPreauth(deps.db, tenant.tenantId, id)
      if (!row) throw notFound('pre-authorisation')
      return toPreauthRecord(deps, tenant, row, (await readPreauthAccess(deps.db, tenant))(row))
    },
  }
}

async function findNamedMandate(tx: Tx, tenant: TenantCaller, { mandateId }: PreauthTerms) {
  if (mandateId === null) return null
  const mandate = await readMandate(tx, tenant.tenantId, mandateId)
  if (!mandate) throw invalid(`There is no mandate '${mandateId}'.`)
  return mandate
}

/** The event of the answer, as it is stored: last, and without its place in the chain. */
const namedAudit = (isRequired: boolean | undefined, { id }: { id: string }) =>
  isRequired ? { audit: { event_id: id } } : {}

type PreauthDraft = { id: string; runId: string; terms: PreauthTerms; hash: string; at: Date }

const draftRow = (tenant: TenantCaller, { id, runId, terms, hash, at }: PreauthDraft) => ({
  id,
  run_id: runId,
  tenant_id: tenant.tenantId,
  agent_id: terms.agentId,
  spender: terms.spender,
  team: terms.team,
  tags: Object.keys(terms.tags).length === 0 ? null : terms.tags,
  named_mandate_id: terms.mandateId,
  mandate_id: terms.mandateId,
  merchant_id: terms.merchant.id,
  merchant: terms.merchant,
  amount_micro: terms.amountMicro,
  asset: terms.asset,
  network: terms.network,
  purpose: terms.purpose,
  request_hash: terms.requestHash,
  payer: terms.payer,
  action_hash: hash,
  ttl_seconds: terms.ttlSeconds,
  asked_by: tenant.keyId,
  created_at: at.toISOString(),
  locks: [] as string[],
})

type DraftRow = ReturnType<typeof draftRow>

/** Rolls back the transaction of the assessment; the rejection is recorded in a transaction of its own. */
class PreauthRejectedError extends Error {
  readonly subject: RefusalSubject
  readonly assessment: RefusedAssessment
  constructor(subject: RefusalSubject, assessment: RefusedAssessment) {
    super(assessment.message)
    this.subject = subject
    this.assessment = assessment
  }
}

/** Records the rejection and returns its error with every rule result; undefined when it has to be assessed again. */
async function recordRejection(
  deps: PreauthsDeps,
  tenant: TenantCaller,
  { subject, assessment }: PreauthRejectedError,
): Promise<Problem | undefined> {
  const recordedRefusal = await deps.record(tenant, subject, assessment)
  if (!recordedRefusal) return undefined
  const extra = {
    ...refusalFields(assessment, recordedRefusal),
    ...(await awaitRefusalAudit(deps.awaitAudit, tenant, assessment, recordedRefusal)),
    decision: 'rejected',
    outcome: 'rejected',
    status: 'rejected',
  }
  return new Problem(assessment.error, assessment.message, { status: 422, code: refusalCode(assessment), extra })
}

/** When the token is issued and expires, and when the payment has to be closed. */
export function preauthTimes(deps: Pick<PreauthsDeps, 'closeSeconds'>, ttlSeconds: number, at: Date) {
  const seconds = (count: number) => new Date(at.getTime() + count * 1000).toISOString()
  return { issued_at: at.toISOString(), expires_at: seconds(ttlSeconds), close_by: seconds(deps.closeSeconds) }
}

export const limitLocks = (counters: readonly { scope: string }[]) => counters.map(({ scope }) => `limit:${scope}`)

function draftOpenPreauth(
  deps: PreauthsDeps,
  row: DraftRow,
  assessment: AllowedPayment,
  terms: PreauthTerms,
  at: Date,
) {
  const times = preauthTimes(deps, terms.ttlSeconds, at)
  const locks = limitLocks(assessment.holds)
  const eventData = {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    spender: row.spender,
    ...(row.team !== null && { team: row.team }),
    ...(row.tags !== null && { tags: row.tags }),
    merchant: row.merchant_id,
    amount: terms.amountMicro.toString(),
    mandate_id: row.mandate_id,
    close_by: times.close_by,
  }
  const item = {
    preauth: {
      ...row,
      ...times,
      policy_hash: assessment.policyHash,
      policy_results: assessment.results,
      decision_id: null,
      override_id: assessment.overrideId,
      locks,
    },
    holds: assessment.holds.map(toLimitHoldItem),
    grants: {
      rules_version: assessment.rulesVersion,
      override_id: assessment.overrideId,
      needs: assessment.needs.map(toCounterNeed),
      agent_id: row.agent_id,
      merchant: row.merchant_id,
      amount_micro: terms.amountMicro,
    },
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: 'preauth.created',
      occurred_at: at.toISOString(),
      actor: row.asked_by,
      subject: row.id,
      decision: 'approved',
      policy_ids: assessment.policyIds,
      input_hash: row.action_hash,
      data: { ...eventData, ...(assessment.overrideId && { override_id: assessment.overrideId }) },
    },
    events: [
      {
        id: deps.ids.next('evt'),
        tenant_id: row.tenant_id,
        type: 'preauth.created',
        data: eventData,
        created_at: at.toISOString(),
      },
    ],
  }
  const needLocks = limitLocks(assessment.needs)
  return {
    item,
    locks: [...locks, ...needLocks, ...(assessment.overrideId ? [`override:${assessment.overrideId}`] : [])],
  }
}

const toPendingResponse = (row: DraftRow, assessment: RefusedAssessment, recordedRefusal: RecordedRefusal) => ({
  preauth_id: recordedRefusal.preauth_id,
  run_id: recordedRefusal.run_id,
  decision: 'review_required',
  status: 'pending_approval',
  token: null,
  approval_id: recordedRefusal.approval_id,
  decision_id: recordedRefusal.decision_id,
  message: assessment.message,
  reserved: '0',
  reserved_usdc: 0,
  remaining: null,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  policy_results: assessment.results,
  expires_at: null,
  close_by: null,
})

/** The lowest remaining amount of all held money limits; null when there is none. */
async function readRemaining(tx: Tx, holds: readonly Hold[], at: Date): Promise<string | null> {
  const states = await readCounters(
    tx,
    holds.filter((hold) => hold.measure !== 'count'),
    at,
  )
  if (states.length === 0) return null
  const remaining = states.map((state) => state.limitMicro - usedOf(state))
  return remaining.reduce((lowest, amount) => (amount < lowest ? amount : lowest)).toString()
}

/**
 * The token is shown while it can be used, to keys with the `run` scope that may use it (`readPreauthAccess`). It is signed
 * again, which gives the same token.
 */
function toPreauthRecord(
  deps: Pick<PreauthsDeps, 'keys' | 'clock' | 'publicUrl'>,
  tenant: TenantCaller,
  row: PreauthRow,
  mayUse: boolean,
) {
  const usable = mayUse && row.status === 'open' && row.expires_at! > deps.clock.now() && tenant.scopes.includes('run')
  const reservedMicro = ['open', 'in_use', 'escalated'].includes(row.status) ? row.amount_micro : 0n
  return {
    preauth_id: row.id,
    run_id: row.run_id,
    decision: toDecision(row),
    status: row.status,
    token: usable ? signPreauthToken(deps.keys.signer('tokens'), toClaims(deps, row)) : null,
    agent_id: row.agent_id,
    spender: row.spender ?? row.agent_id,
    team: row.team,
    tags: (row.tags ?? {}) as Record<string, string>,
    mandate_id: row.mandate_id,
    merchant: row.merchant as Record<string, unknown>,
    amount: row.amount_micro.toString(),
    amount_usdc: usdcFromMicro(row.amount_micro),
    asset: row.asset,
    network: row.network,
    purpose: row.purpose,
    request_hash: row.request_hash,
    payer: row.payer,
    reserved: reservedMicro.toString(),
    reserved_usdc: usdcFromMicro(reservedMicro),
    policy_hash: row.policy_hash,
    policy_results: row.policy_results as Record<string, unknown>[],
    decision_id: row.decision_id,
    approval_id: row.approval_id,
    override_id: row.override_id,
    created_at: row.created_at.toISOString(),
    expires_at: row.expires_at?.toISOString() ?? null,
    close_by: row.close_by?.toISOString() ?? null,
    escalated_at: row.escalated_at?.toISOString() ?? null,
    closed:
      row.closed_at === null
        ? null
        : {
            at: row.closed_at.toISOString(),
            outcome: row.settlement_status,
            charged: row.charged_micro!.toString(),
            released: (row.amount_micro - row.charged_micro!).toString(),
            late: row.late,
            transaction: row.transaction,
            verified_onchain: row.verified_onchain,
            evidence: closeEvidence(row),
            receipt_url: row.receipt_id === null ? null : `/api/receipts/${row.receipt_id}`,
            receipts: [row.receipt_id, row.correction_receipt_id].flatMap((id) =>
              id === null ? [] : [`/api/receipts/${id}`],
            ),
          },
    settlement: toSettlement(row),
  }
}

/** What is known of the payment, and who says so. The receipt is the latest one. */
function toSettlement(row: PreauthRow) {
  if (row.closed_at === null) return null
  const receiptId = row.correction_receipt_id ?? row.receipt_id
  return {
    status: row.settlement_status,
    asserted_by: row.asserted_by,
    transaction: row.transaction,
    amount: row.charged_micro!.toString(),
    reason: row.correction_reason,
    receipt_url: receiptId === null ? null : `/api/receipts/${receiptId}`,
  }
}

/** What opens the receipt of the close, for a tenant that lost the answer. */
function closeEvidence({ request_hash, receipt_salt: salt, receipt_counters: counters }: PreauthRow) {
  if (salt === null && counters === null) return null
  const hashes = saltHashes({ salt, request_hash, input_hash: null, output_hash: null })
  return { ...hashes, ...(counters !== null && { counters }) }
}

function toDecision(row: PreauthRow): 'approved' | 'rejected' | 'review_required' {
  if (row.status === 'pending_approval') return 'review_required'
  return row.status === 'rejected' ? 'rejected' : 'approved'
}

const toEpochSeconds = (at: Date) => Math.floor(at.getTime() / 1000)

const toClaims = (deps: Pick<PreauthsDeps, 'publicUrl'>, row: PreauthRow): PreauthClaims => ({
  iss: deps.publicUrl(),
  sub: row.agent_id,
  aud: row.merchant_id,
  jti: row.id,
  iat: toEpochSeconds(row.issued_at!),
  exp: toEpochSeconds(row.expires_at!),
  amount: row.amount_micro.toString(),
  asset: row.asset,
  network: row.network,
  pay_to: (row.merchant as { pay_to?: string }).pay_to ?? null,
  mandate_id: row.mandate_id,
  policy_hash: row.policy_hash,
  request_hash: row.request_hash,
})
