import type { TenantCaller } from '../../platform/auth-context.ts'
import { StepRefused, takeStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { IdempotentResponse } from '../../platform/idempotency.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { toPage } from '../../platform/paging.ts'
import { conflict, forbidden, invalid, notFound, unavailable } from '../../platform/problem.ts'
import { type ApprovalsQuery, findRunHistoryEntry, listApprovals, listExpired } from './approvals.store.ts'
import { assessPayment } from './assess-payment.ts'
import { expireApprovalStep, resolveApprovalStep } from './governance.steps.ts'
import {
  type ApprovalRow,
  findApproval,
  findMandate,
  findOverride,
  findPreauth,
  type OverrideRow,
  type PreauthRow,
  readVotes,
  toMandate,
} from './grants.store.ts'
import { toLimitHoldItem } from './limit-hold-item.ts'
import { preauthFacts, readStoredTerms } from './preauth-terms.ts'
import { limitLocks, type PreauthsDeps, preauthTimes } from './preauths.ts'
import { keysOfSameHolder, readKeys } from './rules-cache.store.ts'
import { beforeNextLook, MAX_LOOKS, shouldLookAgain } from './steps.ts'

export type ApprovalsDeps = PreauthsDeps & { outbox: Outbox }

export type Resolution = {
  approval_id: string
  decision: 'approve' | 'reject'
  reason?: string
  action_hash?: string
  idempotency_key?: string
}

const BATCH = 100
const CLOCK = 'expiry'

export type Approvals = ReturnType<typeof createApprovals>

/** People's word on what a rule wanted them to see. It is bound to the exact action and used once. */
export function createApprovals(d: ApprovalsDeps) {
  const record = async (tx: Tx, rows: readonly ApprovalRow[]) => {
    const votes = Map.groupBy(
      await readVotes(
        tx,
        rows.map((row) => row.id),
      ),
      (vote) => vote.approval_id,
    )
    return rows.map((row) => approvalRecord(row, votes.get(row.id) ?? []))
  }

  const vote = async (
    tenant: TenantCaller,
    input: Resolution,
    idempotencyKey: string | undefined,
  ): Promise<IdempotentResponse> => {
    const asked = { scope: `tenant:${tenant.tenantId}`, route: 'POST /api/approvals', key: idempotencyKey, body: input }
    const known = await findApproval(d.db, tenant.tenantId, input.approval_id)
    if (!known) throw notFound('approval')
    if (input.action_hash !== undefined && input.action_hash !== known.action_hash)
      throw invalid('body/action_hash is not the hash of the action that waits for approval.')
    const frozen = await d.frozen(tenant.tenantId, known.agent_id)
    return d.idempotency.once(asked, async (tx) => {
      const at = d.clock.now()
      const row = (await findApproval(tx, tenant.tenantId, input.approval_id))!
      const same = [...keysOfSameHolder(tenant.keyId, await readKeys(tx, tenant.tenantId))]
      const opens =
        row.preauth_id !== null && input.decision === 'approve' && row.status === 'pending' && row.expires_at > at
      const approved = opens ? await opening(d, tx, tenant, row, frozen, at) : undefined
      const item = {
        approval_id: row.id,
        tenant_id: tenant.tenantId,
        key_id: tenant.keyId,
        same_person: same,
        decision: input.decision,
        reason: input.reason ?? null,
        at: at.toISOString(),
        approved: { ...approved?.item, ...telling(d, row, tenant.keyId, 'approved', at) },
        rejected: telling(d, row, tenant.keyId, 'rejected', at),
        voted: { audit: telling(d, row, tenant.keyId, 'voted', at).audit },
      }
      await takeStep(tx, resolveApprovalStep, item, [...locksOf(row), ...(approved?.locks ?? [])])
      const [approval] = await record(tx, [(await findApproval(tx, tenant.tenantId, row.id))!])
      return { status: 200, body: { approval, run: await shownRun(tx, tenant.tenantId, row.run_id) } }
    })
  }

  const expire = async (row: ApprovalRow, at: Date): Promise<boolean> => {
    const item = {
      approval_id: row.id,
      at: at.toISOString(),
      ...telling(d, row, CLOCK, row.status === 'approved' ? 'lapsed' : 'expired', at),
    }
    const { expired } = await d.db.transaction().execute((tx) => takeStep(tx, expireApprovalStep, item, locksOf(row)))
    return expired
  }

  return {
    async list(tenant: TenantCaller, query: Partial<ApprovalsQuery> & { domain?: 'core' | 'rh' | 'cb' }) {
      const { domain = 'core', limit = 50, status = 'pending', ...rest } = query
      // Trades have approvals of their own; they are found where they are explained.
      if (domain !== 'core')
        return { approvals: [], has_more: false, next_cursor: null, see: `/api/${domain}/receipts` }
      const { rows, ...paging } = toPage(await listApprovals(d.db, tenant.tenantId, { ...rest, status, limit }), limit)
      return { approvals: await record(d.db, rows), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findApproval(d.db, tenant.tenantId, id)
      if (!row) throw notFound('approval')
      return (await record(d.db, [row]))[0]!
    },

    async resolve(
      tenant: TenantCaller,
      input: Resolution,
      idempotencyKey: string | undefined,
    ): Promise<IdempotentResponse> {
      for (let look = 0; look < MAX_LOOKS; look += 1) {
        try {
          return await vote(tenant, input, idempotencyKey)
        } catch (error) {
          if (!(error instanceof StepRefused)) throw error
          if (!shouldLookAgain(error)) throw await refusalOf(error)
          d.books.forget(tenant.tenantId)
          await beforeNextLook(look)
        }
      }
      throw unavailable('The limits of this payment keep changing; nothing was decided.', 1)

      async function refusalOf(error: StepRefused) {
        if (error.message === 'own_request')
          return forbidden('Who asked may not approve: the policy wants another key.')
        if (error.message === 'voted') return conflict('This key has decided already; another has to.')
        if (error.message === 'resolved')
          return conflict(`This approval is resolved already: ${error.detail.resolution}.`)
        if (error.message !== 'expired')
          return conflict(`This cannot be approved: ${error.message.replaceAll('_', ' ')}.`)
        const row = await findApproval(d.db, tenant.tenantId, input.approval_id)
        if (row) await expire(row, d.clock.now())
        return conflict('This approval was not decided in time; it is rejected.')
      }
    },

    /** Rejects what nobody decided in time, and ends what was approved and never used. */
    async sweepExpired(now: Date = d.clock.now()): Promise<number> {
      let count = 0
      for (const row of await listExpired(d.db, now, BATCH)) if (await expire(row, now)) count += 1
      return count
    },
  }
}

const locksOf = (row: ApprovalRow): string[] => [
  `approval:${row.id}`,
  `run:${row.run_id}`,
  ...(row.preauth_id ? [`preauth:${row.preauth_id}`] : []),
]

/** An approved pre-authorisation is judged again as it is opened: deny still wins, and there must still be room. */
async function opening(
  d: ApprovalsDeps,
  tx: Tx,
  tenant: TenantCaller,
  approval: ApprovalRow,
  frozen: { reason: string } | undefined,
  at: Date,
) {
  const row = (await findPreauth(tx, tenant.tenantId, approval.preauth_id!))!
  const terms = readStoredTerms(row)
  const mandateRow = row.mandate_id === null ? undefined : await findMandate(tx, tenant.tenantId, row.mandate_id)
  const mandate = mandateRow ? await toMandate(tx, mandateRow) : null
  // It is judged as the one who asked, whoever approves.
  const asker = { ...tenant, keyId: row.asked_by }
  const granted = { id: approval.id, votes: approval.approvals_required }
  const override = await overrideBrought(tx, row, at)
  const ruling = await assessPayment(d, tx, asker, {
    facts: preauthFacts(terms, at),
    actionHash: row.action_hash,
    mandate,
    override,
    approval: granted,
    frozen,
  })
  if (ruling.refused) throw conflict(`This can no longer be approved. ${ruling.message}`)
  const locks = limitLocks(ruling.holds)
  return {
    locks: [...locks, ...(ruling.overrideId ? [`override:${ruling.overrideId}`] : [])],
    item: {
      preauth: {
        ...preauthTimes(d, row.ttl_seconds, at),
        policy_hash: ruling.policyHash,
        policy_results: ruling.results,
        override_id: ruling.overrideId,
        locks,
      },
      holds: ruling.holds.map(toLimitHoldItem),
      grants: {
        rules_version: ruling.rulesVersion,
        approval_id: approval.id,
        action_hash: row.action_hash,
        override_id: ruling.overrideId,
        agent_id: row.agent_id,
        merchant: row.merchant_id,
        amount_micro: row.amount_micro,
      },
    },
  }
}

/** The override that came with the request is used only now, and only if it still can be. */
async function overrideBrought(tx: Tx, row: PreauthRow, at: Date): Promise<OverrideRow | undefined> {
  if (row.override_id === null) return undefined
  const override = (await findOverride(tx, row.tenant_id, { id: row.override_id }))!
  if (override.used_by !== null || override.expires_at <= at)
    throw conflict('This can no longer be approved: the override that it needs has been used or has run out.')
  return override
}

function telling(
  d: ApprovalsDeps,
  row: ApprovalRow,
  actor: string,
  what: 'approved' | 'rejected' | 'expired' | 'lapsed' | 'voted',
  at: Date,
) {
  const data = {
    approval_id: row.id,
    run_id: row.run_id,
    ...(row.preauth_id && { preauth_id: row.preauth_id }),
    agent_id: row.agent_id,
    merchant: row.merchant,
    amount: row.amount_micro.toString(),
    action_hash: row.action_hash,
  }
  const event = (type: string) => ({
    id: d.ids.next('evt'),
    tenant_id: row.tenant_id,
    type,
    data,
    created_at: at.toISOString(),
  })
  const events = {
    approved: ['approval.approved', ...(row.preauth_id ? ['preauth.created'] : [])],
    rejected: ['approval.rejected'],
    expired: ['approval.expired'],
    lapsed: ['approval.expired'],
    voted: [],
  }[what]
  return {
    audit: {
      id: d.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: `approval.${what}`,
      occurred_at: at.toISOString(),
      actor,
      subject: row.id,
      decision: what,
      input_hash: row.action_hash,
      data,
    },
    events: events.map(event),
  }
}

async function shownRun(tx: Tx, tenantId: string, runId: string) {
  const run = await findRunHistoryEntry(tx, tenantId, runId)
  if (!run) return null
  return {
    run_id: run.id!,
    outcome: run.outcome!,
    action: run.action!,
    agent_id: run.agent_id!,
    price_usdc: usdcFromMicro(run.price_micro!),
    created_at: run.created_at!.toISOString(),
    receipt_url: run.receipt_id === null ? null : `/api/receipts/${run.receipt_id}`,
  }
}

type Vote = Awaited<ReturnType<typeof readVotes>>[number]

const approvalRecord = (row: ApprovalRow, votes: readonly Vote[]) => ({
  id: row.id,
  approval_id: row.id,
  status: row.status,
  resolution: row.resolution,
  action: row.action,
  domain: 'core' as const,
  agent_id: row.agent_id,
  run_id: row.run_id,
  preauth_id: row.preauth_id,
  decision_id: row.decision_id,
  requested_by: row.requested_by,
  reason: row.reason,
  amount_usdc: usdcFromMicro(row.amount_micro),
  amount: row.amount_micro.toString(),
  merchant: row.merchant,
  risk_summary: row.risk_summary as Record<string, unknown>,
  action_hash: row.action_hash,
  approvals_required: row.approvals_required,
  separate_approver: row.separate_approver,
  approvals: votes.map((vote) => ({
    key_id: vote.key_id,
    decision: vote.decision,
    reason: vote.reason,
    at: vote.created_at.toISOString(),
  })),
  expires_at: row.expires_at.toISOString(),
  created_at: row.created_at.toISOString(),
  resolved_at: row.resolved_at?.toISOString() ?? null,
  used_at: row.consumed_at?.toISOString() ?? null,
})
