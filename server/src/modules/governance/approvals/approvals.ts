import type { TenantCaller } from '../../../platform/auth-context.ts'
import { callStepWithLocks, StepRefused } from '../../../platform/batch.ts'
import type { Tx } from '../../../platform/db.ts'
import type { IdempotentResponse } from '../../../platform/idempotency.ts'
import type { Keys } from '../../../platform/keys.ts'
import type { Log } from '../../../platform/log.ts'
import { usdcFromMicro } from '../../../platform/money.ts'
import type { Outbox } from '../../../platform/outbox.ts'
import { readPage } from '../../../platform/paging.ts'
import { conflict, forbidden, invalid, notFound, type StableError, unavailable } from '../../../platform/problem.ts'
import { assessPayment, toAllowedPayment, toRefusal } from '../assess/assess-payment.ts'
import type { RefusedAssessment } from '../assess/assessment.ts'
import { toCounterNeed } from '../assess/assessment-outcome.ts'
import { MAX_ATTEMPTS, shouldAssessAgain, waitBeforeRetry } from '../assess/assessment-retry.ts'
import type { Freeze } from '../assess/evaluate-rules.ts'
import { agentNames } from '../assess/payment-facts.ts'
import { refusalFields } from '../assess/refusals.ts'
import { readCounters } from '../counters/limit-counters.store.ts'
import { toLimitHoldItem } from '../counters/limit-hold-item.ts'
import { expireApprovalStep, refuseApprovedRunStep, resolveApprovalStep } from '../governance.steps.ts'
import {
  type ApprovalRow,
  findApproval,
  findOverride,
  findPreauth,
  type OverrideRow,
  type PreauthRow,
  readMandate,
  readVotes,
} from '../grants/grants.store.ts'
import {
  ASKER_INACTIVE,
  type FindCaller,
  isAskerActive,
  readDecider,
  requireAsker,
  requireMayDecide,
  selfDecisionRefused,
} from '../grants/self-decision.ts'
import { preauthFacts, readStoredTerms } from '../preauths/preauth-terms.ts'
import { limitLocks, type PreauthsDeps, preauthTimes } from '../preauths/preauths.ts'
import { type ApprovalContent, type ApprovalRule, decryptContent, type ResendContent } from './approval-content.ts'
import {
  type ApprovalsQuery,
  claimApprovedRuns,
  delayApprovedRun,
  deleteOldContent,
  findRunHistoryEntry,
  listApprovals,
  listExpired,
  type NormalSpend,
  readNormalSpend,
} from './approvals.store.ts'
import { recipientsAddedBy } from './messages.store.ts'

export type ApprovalsDeps = PreauthsDeps & {
  outbox: Outbox
  keys: Pick<Keys, 'encrypt' | 'decrypt'>
  log: Log
  /** For how many days the request of an approval that ended is kept. */
  contentDays: number
  findCaller: FindCaller
}

export type Resolution = {
  approval_id: string
  decision: 'approve' | 'reject'
  reason?: string
  action_hash?: string
  idempotency_key?: string
}

/** A recipient of a channel who decides through a link, as the identity of the key that added it. */
export type LinkVoter = {
  id: string
  /** What the audit event says about the recipient. */
  audit: Record<string, unknown>
  /** Other voters who are the same person. */
  sameVoters(tx: Tx): Promise<string[]>
  /** Uses the link in the transaction of the vote; throws when it cannot be used. */
  use(tx: Tx): Promise<void>
}

const BATCH = 100
const CONTENT_BATCH = 1_000
const DAY_MS = 86_400_000
const NORMAL_DAYS = 30
const EXPIRY_ACTOR = 'expiry'

/** How long a process has to admit a run that it takes; after that, another one may try. */
const START_LEASE_SECONDS = 10

/** An approved run that waits to be started, with its request. */
export type ApprovedRun = {
  approvalId: string
  runId: string
  tenantId: string
  /** The key that made the request. */
  keyId: string
  kind: 'run' | 'loop'
  request: Record<string, unknown>
  resend: ResendContent
}

/** Why an approved run is not started, and the answer that its caller would have got. */
export type StartRefusal = {
  status: number
  error: StableError
  code?: string
  reason: string
  /** When the rules refuse it. */
  assessment?: RefusedAssessment
}

export type Approvals = ReturnType<typeof createApprovals>

/** Approvals that a policy or budget requires. Each is bound to the hash of one action and can be used once. */
export function createApprovals(deps: ApprovalsDeps) {
  const contentEnd = () => new Date(deps.clock.now().getTime() - deps.contentDays * DAY_MS)

  /** `request` is the caller's text: it is added for approvers, and left out of answers that are stored. */
  const toRecords = async (tx: Tx, rows: readonly ApprovalRow[], options: { withRequest: boolean }) => {
    if (rows.length === 0) return []
    const ids = rows.map((row) => row.id)
    const votes = Map.groupBy(await readVotes(tx, ids), (vote) => vote.approval_id)
    const since = new Date(deps.clock.now().getTime() - NORMAL_DAYS * DAY_MS)
    const spenders = [...new Set(rows.map(spenderOf))]
    const targets = [...new Set(rows.map(targetOf))]
    const spending = await readNormalSpend(tx, rows[0]!.tenant_id, spenders, targets, since)
    return rows.map((row) => ({
      ...toApprovalRecord(row, votes.get(row.id) ?? []),
      normal: toNormal(row, spending),
      ...(options.withRequest && { request: readRequest(row) }),
    }))
  }

  /** Null once the retention has passed, even before the content is deleted. */
  const readRequest = (row: ApprovalRow): Record<string, unknown> | null => {
    const endedAt = endOf(row)
    return endedAt !== null && endedAt <= contentEnd() ? null : (readContent(row)?.request ?? null)
  }

  /** A damaged value must not hide the other approvals. */
  const readContent = (row: ApprovalRow): ApprovalContent | null => {
    try {
      return row.content === null ? null : decryptContent(deps.keys, row.content)
    } catch (error) {
      deps.log.error({ err: error, approval_id: row.id }, 'the content of an approval cannot be decrypted')
      return null
    }
  }

  const vote = async (
    tenant: TenantCaller,
    input: Resolution,
    idempotencyKey: string | undefined,
    link?: LinkVoter,
  ): Promise<IdempotentResponse> => {
    const voterId = link?.id ?? tenant.keyId
    const request = {
      scope: `tenant:${tenant.tenantId}`,
      route: 'POST /api/approvals',
      key: idempotencyKey,
      body: input,
    }
    const existingApproval = await findApproval(deps.db, tenant.tenantId, input.approval_id)
    if (!existingApproval) throw notFound('approval')
    if (input.action_hash !== undefined && input.action_hash !== existingApproval.action_hash)
      throw invalid('body/action_hash is not the hash of the action that waits for approval.')
    const freeze = await findApprovalFreeze(deps, existingApproval)
    const askerIsActive = await isAskerActive(deps.findCaller, tenant.tenantId, existingApproval.requested_by)
    return deps.idempotency.once(request, async (tx) => {
      const at = deps.clock.now()
      const row = (await findApproval(tx, tenant.tenantId, input.approval_id))!
      const decider = await readDecider(tx, tenant, at)
      // Before the payment is assessed again: who may not decide is not told whether it could still be approved.
      if (row.status === 'pending' && row.expires_at > at) requireMayDecide(decider, row.requested_by)
      const samePersonKeys = [...decider.identity]
      const sameVoters = link ? await link.sameVoters(tx) : await recipientsAddedBy(tx, tenant.tenantId, samePersonKeys)
      const opensPreauth =
        row.preauth_id !== null && input.decision === 'approve' && row.status === 'pending' && row.expires_at > at
      // A run says so when it starts.
      if (opensPreauth && !askerIsActive) throw conflict(`This can no longer be approved. ${ASKER_INACTIVE}`)
      const preauthToOpen = opensPreauth ? await assessApprovedPreauth(deps, tx, tenant, row, freeze, at) : undefined
      const item = {
        approval_id: row.id,
        tenant_id: tenant.tenantId,
        key_id: voterId,
        same_person: [...samePersonKeys, ...sameVoters],
        may_decide_for_itself: decider.mayDecideForItself,
        key_count: decider.keyCount,
        decision: input.decision,
        reason: input.reason ?? null,
        at: at.toISOString(),
        approved: { ...preauthToOpen?.item, ...toAuditAndEvents(deps, row, voterId, 'approved', at, link?.audit) },
        rejected: toAuditAndEvents(deps, row, voterId, 'rejected', at, link?.audit),
        voted: toAuditAndEvents(deps, row, voterId, 'voted', at, link?.audit),
      }
      await callStepWithLocks(tx, resolveApprovalStep, item, [...approvalLocks(row), ...(preauthToOpen?.locks ?? [])])
      await link?.use(tx)
      // An answer may be stored for its idempotency key, and the request is not stored twice.
      const [approval] = await toRecords(tx, [(await findApproval(tx, tenant.tenantId, row.id))!], {
        withRequest: false,
      })
      const run = await readRunHistoryEntry(tx, tenant.tenantId, row.run_id)
      return { status: 200, body: { approval, run, self_approved: approval!.self_approved } }
    })
  }

  const expire = async (row: ApprovalRow, at: Date): Promise<boolean> => {
    const item = {
      approval_id: row.id,
      at: at.toISOString(),
      ...toAuditAndEvents(deps, row, EXPIRY_ACTOR, row.status === 'approved' ? 'lapsed' : 'expired', at),
    }
    const { expired } = await deps.db
      .transaction()
      .execute((tx) => callStepWithLocks(tx, expireApprovalStep, item, approvalLocks(row)))
    return expired
  }

  return {
    async list(tenant: TenantCaller, query: Partial<ApprovalsQuery> & { domain?: 'core' | 'rh' | 'cb' }) {
      const { domain = 'core', limit = 50, status = 'pending', ...filters } = query
      // Approvals of trades are listed with the trade receipts.
      if (domain !== 'core')
        return { approvals: [], has_more: false, next_cursor: null, see: `/api/${domain}/receipts` }
      const readRows = (count: number, after: ApprovalRow | undefined) =>
        listApprovals(deps.db, tenant.tenantId, {
          ...filters,
          status,
          limit: count,
          cursor: after?.id ?? filters.cursor,
        })
      const { rows, ...paging } = await readPage(limit, readRows, (row) => row.id)
      return { approvals: await toRecords(deps.db, rows, { withRequest: isApprover(tenant) }), ...paging }
    },

    async get(tenant: TenantCaller, id: string) {
      const row = await findApproval(deps.db, tenant.tenantId, id)
      if (!row) throw notFound('approval')
      return (await toRecords(deps.db, [row], { withRequest: isApprover(tenant) }))[0]!
    },

    /** One approval with its request, for whoever may decide about it. */
    async findForApprover(tenantId: string, id: string) {
      const row = await findApproval(deps.db, tenantId, id)
      return row && (await toRecords(deps.db, [row], { withRequest: true }))[0]!
    },

    async resolve(
      tenant: TenantCaller,
      input: Resolution,
      idempotencyKey: string | undefined,
      link?: LinkVoter,
    ): Promise<IdempotentResponse> {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        try {
          return await vote(tenant, input, idempotencyKey, link)
        } catch (error) {
          if (!(error instanceof StepRefused)) throw error
          if (!shouldAssessAgain(error) && error.message !== 'keys_changed') throw await toProblem(error)
          deps.rulesCache.invalidate(tenant.tenantId)
          await waitBeforeRetry(attempt)
        }
      }
      throw unavailable('The limits of this payment keep changing; nothing was decided.', 1)

      async function toProblem(error: StepRefused) {
        if (error.message === 'own_request') return selfDecisionRefused()
        if (error.message === 'separate_approver')
          return forbidden('A request cannot be approved with the key that made it: the policy requires another key.')
        if (error.message === 'voted')
          return conflict(
            link
              ? 'You, or whoever added you as a recipient, have already voted; somebody else has to decide.'
              : 'This key, or another of the same identity, has already voted; somebody else has to decide.',
          )
        if (error.message === 'resolved')
          return conflict(`This approval is already resolved: ${error.detail.resolution}.`)
        if (error.message !== 'expired')
          return conflict(`This cannot be approved: ${error.message.replaceAll('_', ' ')}.`)
        const row = await findApproval(deps.db, tenant.tenantId, input.approval_id)
        if (row) await expire(row, deps.clock.now())
        return conflict('This approval expired before it was decided; it is rejected.')
      }
    },

    /** Rejects approvals that expired undecided, and ends those that were approved but never used. */
    async sweepExpired(now: Date = deps.clock.now()): Promise<number> {
      let count = 0
      for (const row of await listExpired(deps.db, now, BATCH)) if (await expire(row, now)) count += 1
      return count
    },

    /** The run that an approval was used for; undefined while it was not, or for a pre-authorisation. */
    async findRunOf(tenant: TenantCaller, id: string): Promise<string | undefined> {
      const row = await findApproval(deps.db, tenant.tenantId, id)
      if (!row || row.preauth_id !== null || row.consumed_by === null) return undefined
      await requireAsker(deps.db, tenant, 'approval', row.requested_by)
      return row.consumed_by
    },

    /** Approved runs that are due to be started, taken for a short time. */
    async claimRuns(maxRows: number): Promise<ApprovedRun[]> {
      const rows = await claimApprovedRuns(deps.db, deps.clock.now(), START_LEASE_SECONDS, maxRows)
      return rows.flatMap((row) => {
        const content = readContent(row)
        if (!content?.resend) return []
        return [
          {
            approvalId: row.id,
            runId: row.run_id,
            tenantId: row.tenant_id,
            keyId: row.requested_by,
            kind: row.kind as ApprovedRun['kind'],
            request: content.request,
            resend: content.resend,
          },
        ]
      })
    },

    delayRun: (run: ApprovedRun, reason: string, milliseconds: number): Promise<void> =>
      delayApprovedRun(deps.db, run.approvalId, reason, new Date(deps.clock.now().getTime() + milliseconds)),

    /** Ends an approved run that was refused when it was to start. Its approval lapses: the action must be asked for again. */
    async refuseRun(run: ApprovedRun, refusal: StartRefusal): Promise<void> {
      const row = await findApproval(deps.db, run.tenantId, run.approvalId)
      if (!row) return
      const at = deps.clock.now()
      const data = { ...eventDataOf(row), reason: refusal.reason }
      const item = {
        approval_id: row.id,
        at: at.toISOString(),
        reason: refusal.reason,
        answer: { status: refusal.status, body: JSON.stringify(toRefusedAnswer(row, refusal)) },
        audit: {
          id: deps.ids.next('aud'),
          tenant_id: row.tenant_id,
          type: `${row.kind}.blocked`,
          occurred_at: at.toISOString(),
          actor: row.requested_by,
          subject: row.run_id,
          decision: 'blocked',
          input_hash: row.action_hash,
          data,
        },
        events: [
          {
            id: deps.ids.next('evt'),
            tenant_id: row.tenant_id,
            type: 'run.blocked',
            data,
            created_at: at.toISOString(),
          },
        ],
      }
      await deps.db
        .transaction()
        .execute((tx) => callStepWithLocks(tx, refuseApprovedRunStep, item, approvalLocks(row)))
    },

    pruneContent: (): Promise<number> => deleteOldContent(deps.db, contentEnd(), CONTENT_BATCH),
  }
}

const toRefusedAnswer = (row: ApprovalRow, { error, code, reason, assessment }: StartRefusal) => ({
  error,
  ...(code && { code }),
  message: reason,
  ...(assessment && refusalFields(assessment, null)),
  outcome: 'blocked',
  run_id: row.run_id,
  approval_id: row.id,
})

const isApprover = (tenant: TenantCaller) => tenant.scopes.includes('control')

/** When an approval ended: rejected, used or lapsed. Null while it is pending or waits to be used. */
const endOf = (row: ApprovalRow): Date | null =>
  row.consumed_at ?? row.lapsed_at ?? (row.status === 'rejected' ? row.resolved_at : null)

/** Approvals of earlier releases name no spender. */
const spenderOf = (row: ApprovalRow): string =>
  row.spender ?? (row.preauth_id === null ? `key:${row.requested_by}` : row.agent_id)

/** What is the same when an agent asks again: the lane of a run, the merchant of a payment. */
const targetOf = (row: ApprovalRow): string => (row.preauth_id === null ? row.agent_id : row.merchant)

function toNormal(row: ApprovalRow, spending: readonly NormalSpend[]) {
  const own = spending.filter(({ spender }) => spender === spenderOf(row))
  const all = own.find(({ target }) => target === null)
  return {
    count_30d: all?.count ?? 0,
    median_usdc: all ? usdcFromMicro(all.median_micro) : null,
    max_usdc: all ? usdcFromMicro(all.max_micro) : null,
    same_30d: own.find(({ target }) => target === targetOf(row))?.count ?? 0,
  }
}

/** What happens next, or has happened, in a sentence for a person. */
function describeNext(row: ApprovalRow, approveVotes: number): string {
  const answer = `its answer is at GET /api/runs/${row.run_id}`
  if (row.status === 'rejected')
    return row.resolution === 'expired' ? 'Nothing: it expired undecided.' : 'Nothing: it was rejected.'
  if (row.lapsed_at !== null)
    return row.lapse_reason === null
      ? 'Nothing: it was approved and not used in time.'
      : `Nothing: the run was refused when it was to start. ${row.lapse_reason}`
  if (row.consumed_by !== null)
    return row.preauth_id === null
      ? `The run was started; ${answer}.`
      : `The token was issued; GET /api/pre-auth/${row.preauth_id} returns it while it can be used.`
  const missingVotes = row.approvals_required - approveVotes
  const lead =
    row.status === 'approved' ? '' : missingVotes > 1 ? `After ${missingVotes} approvals ` : 'After approval '
  const sentence = (text: string) => `${lead === '' ? text[0]!.toUpperCase() + text.slice(1) : lead + text}`
  if (row.preauth_id !== null)
    return sentence(`the amount is held and the token issued: GET /api/pre-auth/${row.preauth_id} returns it.`)
  if (row.status === 'approved' && row.start_at !== null && row.lapse_reason !== null)
    return `The run did not start yet and is tried again until ${row.expires_at.toISOString()}. ${row.lapse_reason}`
  if (row.status === 'approved' && row.payment_method === 'wallet' && row.start_at === null)
    return `The run ended without a charge; the same request with approval_id starts it again, until ${row.expires_at.toISOString()}.`
  if (row.payment_method === 'wallet' && row.content !== null)
    return sentence(`the run starts by itself, paid from the wallet; ${answer}.`)
  return sentence(
    'the run waits for its payment: it starts when the same request is sent with approval_id and a payment.',
  )
}

const approvalLocks = (row: ApprovalRow): string[] => [
  `approval:${row.id}`,
  `run:${row.run_id}`,
  ...(row.preauth_id ? [`preauth:${row.preauth_id}`] : []),
]

/** Assesses a pre-authorisation again when it is approved: a policy may deny it by now, or a limit may be reached. */
async function assessApprovedPreauth(
  deps: ApprovalsDeps,
  tx: Tx,
  tenant: TenantCaller,
  approval: ApprovalRow,
  freeze: Freeze | undefined,
  at: Date,
) {
  const row = (await findPreauth(tx, tenant.tenantId, approval.preauth_id!))!
  const terms = readStoredTerms(row)
  const namedMandate =
    terms.mandateId === null ? null : ((await readMandate(tx, tenant.tenantId, terms.mandateId)) ?? null)
  const override = await findNamedOverride(tx, row, at)
  // The rules apply to the key that made the request, not to the key that approves it.
  const assessment = await assessPayment((counters) => readCounters(tx, counters, at), {
    rules: await deps.rulesCache.get(tenant.tenantId, row.asked_by, tx),
    facts: preauthFacts(terms, row.asked_by, deps, at),
    requestedPolicies: { policies: [] },
    namedMandate,
    heldScopes: new Set(),
    freeze,
    actionHash: row.action_hash,
    grants: { override, approval: { id: approval.id, votes: approval.approvals_required } },
  })
  if (assessment.decidingResult) throw conflict(`This can no longer be approved. ${toRefusal(assessment).message}`)
  const allowed = toAllowedPayment(deps.ids, assessment)
  const locks = limitLocks(allowed.holds)
  return {
    locks: [...locks, ...limitLocks(allowed.needs), ...(allowed.overrideId ? [`override:${allowed.overrideId}`] : [])],
    item: {
      preauth: {
        ...preauthTimes(deps, row.ttl_seconds, at),
        mandate_id: allowed.mandateId,
        policy_hash: allowed.policyHash,
        policy_results: allowed.results,
        override_id: allowed.overrideId,
        locks,
      },
      holds: allowed.holds.map(toLimitHoldItem),
      grants: {
        rules_version: allowed.rulesVersion,
        needs: allowed.needs.map(toCounterNeed),
        approval_id: approval.id,
        action_hash: row.action_hash,
        override_id: allowed.overrideId,
        agent_id: row.agent_id,
        merchant: row.merchant_id,
        amount_micro: row.amount_micro,
      },
    },
  }
}

/** The spender of an approval is `key:<id>` when the request named none; that is nobody's name. */
const findApprovalFreeze = (deps: ApprovalsDeps, { tenant_id, agent_id, spender }: ApprovalRow) =>
  deps.findFreeze(tenant_id, agentNames({ agentId: agent_id, spender }))

/** The override sent with the request is used only on approval, if it is still unused and has not expired. */
async function findNamedOverride(tx: Tx, row: PreauthRow, at: Date): Promise<OverrideRow | undefined> {
  if (row.override_id === null) return undefined
  const override = (await findOverride(tx, row.tenant_id, { id: row.override_id }))!
  if (override.used_by !== null || override.expires_at <= at)
    throw conflict('This can no longer be approved: the override that it needs has been used or has expired.')
  return override
}

function toAuditAndEvents(
  deps: ApprovalsDeps,
  row: ApprovalRow,
  actor: string,
  outcome: 'approved' | 'rejected' | 'expired' | 'lapsed' | 'voted',
  at: Date,
  auditData: Record<string, unknown> = {},
) {
  const data = eventDataOf(row)
  const event = (type: string) => ({
    id: deps.ids.next('evt'),
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
  }[outcome]
  return {
    audit: {
      id: deps.ids.next('aud'),
      tenant_id: row.tenant_id,
      type: `approval.${outcome}`,
      occurred_at: at.toISOString(),
      actor,
      subject: row.id,
      decision: outcome,
      input_hash: row.action_hash,
      data: { ...data, ...auditData },
    },
    events: events.map(event),
  }
}

const eventDataOf = (row: ApprovalRow) => ({
  approval_id: row.id,
  run_id: row.run_id,
  ...(row.preauth_id && { preauth_id: row.preauth_id }),
  agent_id: row.agent_id,
  spender: spenderOf(row),
  team: row.team,
  tags: row.tags ?? {},
  merchant: row.merchant,
  amount: row.amount_micro.toString(),
  action_hash: row.action_hash,
})

async function readRunHistoryEntry(tx: Tx, tenantId: string, runId: string) {
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

const toApprovalRecord = (row: ApprovalRow, votes: readonly Vote[]) => ({
  rule: (row.rule as ApprovalRule | null) ?? { policy_id: null, name: null, sentence: row.reason },
  next: describeNext(row, votes.filter((vote) => vote.decision === 'approve').length),
  id: row.id,
  approval_id: row.id,
  status: row.status,
  resolution: row.resolution,
  action: row.action,
  domain: 'core' as const,
  agent_id: row.agent_id,
  spender: spenderOf(row),
  team: row.team,
  tags: (row.tags ?? {}) as Record<string, string>,
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
  self_approved: row.self_approved,
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
  lapsed_at: row.lapsed_at?.toISOString() ?? null,
})
