import type { TenantCaller } from '../../platform/auth-context.ts'
import { StepRefused, takeStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, invalid, notFound, Problem, unavailable } from '../../platform/problem.ts'
import { type AllowedPayment, assessPayment } from './assess-payment.ts'
import type { AssessDeps } from './assess-run.ts'
import type { Hold, RefusedAssessment } from './assessment.ts'
import { findUsableOverride } from './check-grants.ts'
import { openPreauthStep, recordRefusalStep } from './governance.steps.ts'
import { findMandate, findPreauth, type PreauthRow, toMandate } from './grants.store.ts'
import { readCounters } from './limit-counters.store.ts'
import { usedOf } from './limit-counters.ts'
import { toLimitHoldItem } from './limit-hold-item.ts'
import { type PreauthInput, type PreauthTerms, preauthActionHash, preauthFacts, readTerms } from './preauth-terms.ts'
import { type PreauthClaims, signPreauthToken } from './preauth-token.ts'
import { listPreauths } from './preauths.store.ts'
import {
  draftRefusal,
  type RecordedRefusal,
  type RefusalDeps,
  type RefusalSubject,
  refusalFields,
  refusalLocks,
} from './refusals.ts'
import { policyIds } from './rule-result.ts'
import { beforeNextLook, MAX_LOOKS, shouldLookAgain } from './steps.ts'

export type PreauthsDeps = AssessDeps &
  Pick<RefusalDeps, 'approvalWindowSeconds'> & {
    idempotency: Idempotency
    record(
      tenant: TenantCaller,
      subject: RefusalSubject,
      ruling: RefusedAssessment,
    ): Promise<RecordedRefusal | undefined>
    asset: string
    publicUrl: () => string
    closeSeconds: number
  }

export type Preauths = ReturnType<typeof createPreauths>

/** Pre-authorise, execute, close: here the first of the three. A signed token, with its money held. */
export function createPreauths(d: PreauthsDeps) {
  const ask = async (
    tenant: TenantCaller,
    input: PreauthInput,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse> => {
    const terms = readTerms(input, d)
    const frozen = await d.frozen(tenant.tenantId, terms.agentId)
    const asked = { scope: `tenant:${tenant.tenantId}`, route: 'POST /api/pre-auth', key: idempotencyKey, body: input }
    return d.idempotency.once(asked, async (tx) => {
      const mandate = await mandateNamed(tx, tenant, terms)
      const override =
        input.override_token === undefined
          ? undefined
          : await findUsableOverride({ ...d, db: tx }, tenant, input.override_token)
      const at = d.clock.now()
      const id = d.ids.next('pa')
      const hash = preauthActionHash(tenant, id, terms)
      const ruling = await assessPayment(d, tx, tenant, {
        facts: preauthFacts(terms, at),
        actionHash: hash,
        mandate,
        override,
        frozen,
      })
      const row = draftRow(tenant, { id, runId: d.ids.next('run'), terms, hash, at })
      if (ruling.refused) {
        const { policy_hash, override_id } = ruling.summary
        const subject = { preauth: { ...row, policy_hash, override_id, policy_results: ruling.results } }
        if (!ruling.review) throw new Rejected(subject, ruling)
        const refusal = draftRefusal(d, tenant, subject, ruling, at)
        const recorded = await takeStep(tx, recordRefusalStep, refusal, refusalLocks(ruling))
        return { status: 201, body: waiting(row, ruling, recorded) }
      }
      const { item, locks } = openingOf(d, row, ruling, terms, at)
      await takeStep(tx, openPreauthStep, item, locks)
      const stored = (await findPreauth(tx, tenant.tenantId, id))!
      return {
        status: 201,
        body: { ...preauthRecord(d, tenant, stored), remaining: await remainingOf(tx, ruling.holds) },
      }
    })
  }

  return {
    /** Looks again when a limit or a rule moved between judging and holding. */
    async create(
      tenant: TenantCaller,
      input: PreauthInput,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      for (let look = 0; look < MAX_LOOKS; look += 1) {
        try {
          return await ask(tenant, input, idempotencyKey)
        } catch (error) {
          if (error instanceof Rejected) {
            const problem = await reject(d, tenant, error)
            if (problem) throw problem
            await beforeNextLook(look)
            continue
          }
          if (error instanceof StepRefused && error.message === 'override_used')
            throw conflict('This override has been used; it works once.')
          if (!shouldLookAgain(error)) throw error
          d.books.forget(tenant.tenantId)
          await beforeNextLook(look)
        }
      }
      throw unavailable('The limits of this payment keep changing; nothing was held.', 1)
    },

    async list(tenant: TenantCaller, query: { limit?: number; cursor?: string; status?: string; agent_id?: string }) {
      const limit = query.limit ?? 50
      const { rows, ...paging } = toPage(await listPreauths(d.db, tenant.tenantId, { ...query, limit }), limit)
      return { preauths: rows.map((row) => preauthRecord(d, tenant, row)), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findPreauth(d.db, tenant.tenantId, id)
      if (!row) throw notFound('pre-authorisation')
      return preauthRecord(d, tenant, row)
    },
  }
}

async function mandateNamed(tx: Tx, tenant: TenantCaller, { mandateId }: PreauthTerms) {
  if (mandateId === null) return null
  const row = await findMandate(tx, tenant.tenantId, mandateId)
  if (!row) throw invalid(`There is no mandate '${mandateId}'.`)
  return toMandate(tx, row)
}

type Draft = { id: string; runId: string; terms: PreauthTerms; hash: string; at: Date }

const draftRow = (tenant: TenantCaller, { id, runId, terms, hash, at }: Draft) => ({
  id,
  run_id: runId,
  tenant_id: tenant.tenantId,
  agent_id: terms.agentId,
  mandate_id: terms.mandateId,
  merchant_id: terms.merchant.id,
  merchant: terms.merchant,
  amount_micro: terms.amountMicro,
  asset: terms.asset,
  network: terms.network,
  purpose: terms.purpose,
  request_hash: terms.requestHash,
  action_hash: hash,
  ttl_seconds: terms.ttlSeconds,
  asked_by: tenant.keyId,
  created_at: at.toISOString(),
  locks: [] as string[],
})

type Row = ReturnType<typeof draftRow>

/** Ends the transaction in which it was judged; it is written down in one of its own. */
class Rejected extends Error {
  readonly subject: RefusalSubject
  readonly ruling: RefusedAssessment
  constructor(subject: RefusalSubject, ruling: RefusedAssessment) {
    super(ruling.message)
    this.subject = subject
    this.ruling = ruling
  }
}

/** A rejection leaves its row too; the answer says why, rule by rule. Undefined when it has to be judged anew. */
async function reject(
  d: PreauthsDeps,
  tenant: TenantCaller,
  { subject, ruling }: Rejected,
): Promise<Problem | undefined> {
  const recorded = await d.record(tenant, subject, ruling)
  if (!recorded) return undefined
  const extra = { ...refusalFields(ruling, recorded), decision: 'rejected', outcome: 'rejected', status: 'rejected' }
  return new Problem(ruling.error, ruling.message, { status: 422, extra })
}

/** When the token begins and ends, and until when the payment has to be closed. */
export function preauthTimes(d: Pick<PreauthsDeps, 'closeSeconds'>, ttlSeconds: number, at: Date) {
  const seconds = (count: number) => new Date(at.getTime() + count * 1000).toISOString()
  return { issued_at: at.toISOString(), expires_at: seconds(ttlSeconds), close_by: seconds(d.closeSeconds) }
}

export const limitLocks = (holds: readonly Hold[]) => holds.map(({ scope }) => `limit:${scope}`)

function openingOf(d: PreauthsDeps, row: Row, ruling: AllowedPayment, terms: PreauthTerms, at: Date) {
  const times = preauthTimes(d, terms.ttlSeconds, at)
  const locks = limitLocks(ruling.holds)
  const told = {
    preauth_id: row.id,
    run_id: row.run_id,
    agent_id: row.agent_id,
    merchant: row.merchant_id,
    amount: terms.amountMicro.toString(),
    mandate_id: row.mandate_id,
    close_by: times.close_by,
  }
  const item = {
    preauth: {
      ...row,
      ...times,
      policy_hash: ruling.policyHash,
      policy_results: ruling.results,
      override_id: ruling.overrideId,
      locks,
    },
    holds: ruling.holds.map(toLimitHoldItem),
    grants: {
      rules_version: ruling.rulesVersion,
      override_id: ruling.overrideId,
      agent_id: row.agent_id,
      merchant: row.merchant_id,
      amount_micro: terms.amountMicro,
    },
    audit: {
      id: d.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: 'preauth.created',
      occurred_at: at.toISOString(),
      actor: row.asked_by,
      subject: row.id,
      decision: 'approved',
      policy_ids: policyIds(ruling.results),
      input_hash: row.action_hash,
      data: { ...told, ...(ruling.overrideId && { override_id: ruling.overrideId }) },
    },
    events: [
      {
        id: d.ids.next('evt'),
        tenant_id: row.tenant_id,
        type: 'preauth.created',
        data: told,
        created_at: at.toISOString(),
      },
    ],
  }
  return { item, locks: [...locks, ...(ruling.overrideId ? [`override:${ruling.overrideId}`] : [])] }
}

const waiting = (row: Row, ruling: RefusedAssessment, recorded: RecordedRefusal) => ({
  preauth_id: recorded.preauth_id,
  run_id: recorded.run_id,
  decision: 'review_required',
  status: 'pending_approval',
  token: null,
  approval_id: recorded.approval_id,
  decision_id: recorded.decision_id,
  message: ruling.message,
  reserved: '0',
  reserved_usdc: 0,
  remaining: null,
  amount: row.amount_micro.toString(),
  amount_usdc: usdcFromMicro(row.amount_micro),
  policy_results: ruling.results,
  expires_at: null,
  close_by: null,
})

/** What the tightest counter of money leaves, after this hold; null when none limits it. */
async function remainingOf(tx: Tx, holds: readonly Hold[]): Promise<string | null> {
  const states = await readCounters(
    tx,
    holds.filter((hold) => hold.measure !== 'count'),
  )
  if (states.length === 0) return null
  const left = states.map((state) => state.limitMicro - usedOf(state))
  return left.reduce((least, one) => (one < least ? one : least)).toString()
}

/** The token is shown as long as it can be used, to who may spend; it is signed anew and comes out the same. */
function preauthRecord(d: Pick<PreauthsDeps, 'keys' | 'clock' | 'publicUrl'>, tenant: TenantCaller, row: PreauthRow) {
  const usable = row.status === 'open' && row.expires_at! > d.clock.now() && tenant.scopes.includes('run')
  const reserved = ['open', 'in_use', 'escalated'].includes(row.status) ? row.amount_micro : 0n
  return {
    preauth_id: row.id,
    run_id: row.run_id,
    decision: decisionOf(row),
    status: row.status,
    token: usable ? signPreauthToken(d.keys.signer('tokens'), claimsOf(d, row)) : null,
    agent_id: row.agent_id,
    mandate_id: row.mandate_id,
    merchant: row.merchant as Record<string, unknown>,
    amount: row.amount_micro.toString(),
    amount_usdc: usdcFromMicro(row.amount_micro),
    asset: row.asset,
    network: row.network,
    purpose: row.purpose,
    request_hash: row.request_hash,
    reserved: reserved.toString(),
    reserved_usdc: usdcFromMicro(reserved),
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
            outcome: row.close_outcome,
            charged: row.charged_micro!.toString(),
            released: (row.amount_micro - row.charged_micro!).toString(),
            late: row.late,
            transaction: row.transaction,
            verified_onchain: row.verified_onchain,
            receipt_url: row.receipt_id === null ? null : `/api/receipts/${row.receipt_id}`,
          },
  }
}

function decisionOf(row: PreauthRow): 'approved' | 'rejected' | 'review_required' {
  if (row.status === 'pending_approval') return 'review_required'
  return row.status === 'rejected' ? 'rejected' : 'approved'
}

const secondsOf = (at: Date) => Math.floor(at.getTime() / 1000)

const claimsOf = (d: Pick<PreauthsDeps, 'publicUrl'>, row: PreauthRow): PreauthClaims => ({
  iss: d.publicUrl(),
  sub: row.agent_id,
  aud: row.merchant_id,
  jti: row.id,
  iat: secondsOf(row.issued_at!),
  exp: secondsOf(row.expires_at!),
  amount: row.amount_micro.toString(),
  asset: row.asset,
  network: row.network,
  pay_to: (row.merchant as { pay_to?: string }).pay_to ?? null,
  mandate_id: row.mandate_id,
  policy_hash: row.policy_hash,
  request_hash: row.request_hash,
})
