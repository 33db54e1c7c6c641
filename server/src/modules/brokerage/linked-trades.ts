import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { conflict, notFound } from '../../platform/problem.ts'
import type { LinkedApproval, LinkedTrades } from '../governance/approvals/approval-links.ts'
import type { LinkVoter } from '../governance/approvals/approvals.ts'
import type { NormalTrade } from './approval-payload.ts'
import { approvalDeadline } from './approval-window.ts'
import { APPROVAL_EXPIRED_REASON, type createApproveTrade } from './approve-trade.ts'
import { findRun, lockRun } from './brokerage.store.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { type createTradeContent, readNormal, viewApproval } from './trade-approval.ts'
import { agentNamesOf, spenderOf, type TradeRun } from './trade-run-record.ts'

export type LinkedTradesDeps = {
  db: Db
  clock: Clock
  outcomeRecorder: OutcomeRecorder
  approve: ReturnType<typeof createApproveTrade>
  content: ReturnType<typeof createTradeContent>
}

const REJECTED_REASON = 'An approver rejected it.'

/** Trades that wait for an approval, as messages and the links in them show and decide them. */
export const createLinkedTrades = (deps: LinkedTradesDeps): LinkedTrades => ({
  async findNotice(tx, tenantId, runId) {
    const run = await findRun(tx, tenantId, runId)
    if (!run?.approval) return undefined
    const { amount, merchant, agent, sentence, expiresAt } = toView(run, noTrades, null)
    return {
      approvalId: run.id,
      actionHash: run.approval.digest,
      isOpen: run.state === 'pending_approval',
      amount,
      merchant,
      payTo: null,
      host: null,
      agent,
      sentence,
      expiresAt,
    }
  },

  async find(tenantId, runId) {
    const run = await findRun(deps.db, tenantId, runId)
    if (!run?.approval) return undefined
    const normalOf = await readNormal(deps.db, tenantId, [spenderOf(run)], deps.clock.now())
    return toLinkedApproval(run, run.approval.digest, toView(run, normalOf, deps.content.read(run)))
  },

  async decide(caller, runId, { decision, reason }, voter) {
    if (decision === 'approve') return deps.approve(caller, { run_id: runId }, undefined, voter)
    return rejectTrade(deps, caller, runId, reason, voter)
  },
})

const rejectTrade = (
  deps: LinkedTradesDeps,
  caller: TenantCaller,
  runId: string,
  reason: string | undefined,
  voter: LinkVoter,
) =>
  deps.db.transaction().execute(async (tx) => {
    const run = await lockRun(tx, runId, caller.tenantId)
    if (!run) throw notFound('run')
    if (run.state !== 'pending_approval') throw conflict(`This run is already ${run.state}.`)
    const text = reason === undefined ? REJECTED_REASON : `${REJECTED_REASON} ${reason}`
    const outcome = { state: 'cancelled', reason: text, fills: [], brokerOrderId: null } as const
    await deps.outcomeRecorder.recordFinished(tx, run, outcome, voter.id, deps.clock.now(), voter.audit)
    await voter.use(tx)
  })

function toLinkedApproval(run: TradeRun, digest: string, view: LinkedApproval['view']): LinkedApproval {
  const isPending = run.state === 'pending_approval'
  const resolution = isPending
    ? null
    : run.approvedAt !== null
      ? 'approved'
      : run.reason === APPROVAL_EXPIRED_REASON
        ? 'expired'
        : 'rejected'
  return {
    status: isPending ? 'pending' : resolution === 'approved' ? 'approved' : 'rejected',
    resolution,
    actionHash: digest,
    resolvedAt: run.approvedAt ?? run.finishedAt,
    expiresAt: view.expiresAt,
    required: run.policy.approvalsRequired ?? 1,
    votes: run.votes.map(({ voter }) => ({ voter, decision: 'approve' })),
    view,
  }
}

function toView(
  run: TradeRun,
  normalOf: (spender: string) => NormalTrade,
  request: Record<string, unknown> | null,
): LinkedApproval['view'] {
  const { approval, terms, policy } = run
  const { rule, normal, next } = viewApproval(run, normalOf)!
  const {
    checks: _,
    digest: _digest,
    tenant_id: _tenant,
    run_id: _run,
    rule: _rule,
    normal: _normal,
    next: _next,
    ...shown
  } = approval!
  const reasons = policy.checks.flatMap(({ result, id, reason }) => (result === 'review' ? [reason ?? id] : []))
  return {
    title: 'Approve this trade?',
    amount: `${usdcFromMicro(terms.notionalMicro)} USDC`,
    merchant: `${run.broker}${run.mode === 'paper' ? ' (paper)' : ''}: ${approval!.side} ${approval!.quantity} ${terms.symbol}`,
    agent: agentNamesOf(run).join(', for ') || spenderOf(run),
    requestedBy: run.keyId,
    requestedAt: run.createdAt,
    expiresAt: approvalDeadline({ expiresAt: run.expiresAt!, executeBy: run.executeBy }),
    sentence: rule.sentence,
    reasons: reasons.length > 1 ? reasons : [],
    normal: describeNormal(normal),
    next: `${next} If you reject, or nobody decides in time, no order is sent.`,
    request: { ...request, terms: shown },
  }
}

/** A message says nothing about what is normal. */
const noTrades = (): NormalTrade => ({ count_30d: 0, median_usdc: null, max_usdc: null })

const describeNormal = ({ count_30d, median_usdc, max_usdc }: NormalTrade) =>
  count_30d === 0
    ? 'This spender has traded nothing in the last 30 days.'
    : `In the last 30 days this spender has traded ${count_30d} ${count_30d === 1 ? 'time' : 'times'}: ${median_usdc} USDC in the middle, ${max_usdc} USDC at most.`
