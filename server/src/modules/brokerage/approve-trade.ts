import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { conflict, expired, forbidden, invalid, notFound } from '../../platform/problem.ts'
import type { LinkVoter } from '../governance/approvals/approvals.ts'
import type { GovernedTrade, TradeGovernance } from '../governance/assess/assess-trade.ts'
import type { Freeze } from '../governance/assess/evaluate-rules.ts'
import { ASKER_INACTIVE, readDecider, requireMayDecide } from '../governance/grants/self-decision.ts'
import { approvalDeadline } from './approval-window.ts'
import type { InstrumentType } from './broker.ts'
import { findRun, lockRun, markApproved, saveVotes } from './brokerage.store.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { holdForTrade } from './trade-holds.ts'
import { orderSideOf, type Side } from './trade-request.ts'
import type { TradeRun, TradeVote } from './trade-run-record.ts'
import { payeesOf } from './trade-terms.ts'

/**
 * Beside `run_id`, `approved_by` and `reason`, the fields repeat what the approver was shown. One that differs from the run stops
 * the approval; none of them changes the run.
 */
export type ApproveBody = {
  run_id: string
  approved_by?: string
  reason?: string
  instrument_type?: InstrumentType
  direction?: Side
  notional_usdc?: number
  leverage?: number
  liquidation_price?: number
  policy_verdict?: 'requires_human' | 'borderline' | 'override'
  expires_at?: string
}

export type ApproveDeps = {
  db: Db
  clock: Clock
  outcomeRecorder: OutcomeRecorder
  idempotency: Idempotency
  governance: TradeGovernance
  /** Wakes the worker. */
  wake(): void
}

/** The stored reason of runs whose approval window expired, and of no others. Stored rows are compared with it. */
export const APPROVAL_EXPIRED_REASON = 'Nobody approved it in time.'

/**
 * POST /api/rh/approve. A run that needs several approvals keeps waiting until it has them all. Throws 410 when the approval window has expired and 409 when the run is already approved,
 * cancelled, executed or rejected, and 403 when whoever asked decides without being the tenant's single key.
 */
export const createApproveTrade =
  (deps: ApproveDeps) =>
  async (
    caller: TenantCaller,
    body: ApproveBody,
    idempotencyKey?: string,
    link?: LinkVoter,
  ): Promise<IdempotentResponse> => {
    const { tenantId } = caller
    const approver = link?.id ?? caller.keyId
    const idempotentRequest = { scope: `tenant:${tenantId}`, route: 'POST /api/rh/approve', key: idempotencyKey, body }
    const attemptApproval = async () => {
      const waitingRun = await findRun(deps.db, tenantId, body.run_id)
      const freeze = waitingRun && (await deps.governance.findFreeze(waitingRun))
      const askerIsActive = waitingRun && (await deps.governance.isAskerActive(tenantId, waitingRun.keyId))
      return deps.idempotency.once(idempotentRequest, async (tx) => {
        const run = await lockRun(tx, body.run_id, tenantId)
        const now = deps.clock.now()
        if (!run) throw notFound('run')
        if (hasExpired(run, now)) throw new ApprovalWindowExpired()
        if (run.state !== 'pending_approval') throw conflict(`This run is already ${run.state}.`)
        const decider = await readDecider(tx, caller, now)
        const selfApproved = requireMayDecide(decider, run.keyId)
        if (!askerIsActive) throw conflict(`This can no longer be approved. ${ASKER_INACTIVE}`)
        const samePersonKeys = [...decider.identity]
        const samePerson = [
          approver,
          ...samePersonKeys,
          ...(link ? await link.sameVoters(tx) : await deps.governance.recipientsAddedBy(tx, tenantId, samePersonKeys)),
        ]
        if (run.votes.some(({ voter }) => samePerson.includes(voter)))
          throw conflict('This key, or another of the same identity, has already voted; somebody else has to decide.')
        const mismatchedField = findMismatchedEcho(run, body)
        if (mismatchedField)
          throw invalid(`${mismatchedField} differs from the terms of the run.`, { field: mismatchedField })
        const why = body.reason === undefined ? {} : { reason: body.reason }
        const vote: TradeVote = { voter: approver, at: now.toISOString(), selfApproved, ...why }
        const auditData = { ...link?.audit, ...why }
        const votes = [...run.votes, vote]
        // The rules apply as they are now, and to whoever asked, not to the approver.
        const assessment = await deps.governance.assess(
          tx,
          toGovernedTrade(run, freeze, now),
          run.policy.limitPolicyIds ?? [],
          { id: run.id, votes: votes.length },
        )
        if (assessment.outcome === 'refused') {
          const message = `This can no longer be approved. ${assessment.message}`
          throw conflict(message, { extra: { policy_results: assessment.results } })
        }
        const separateApprover =
          run.policy.separateApprover || (assessment.outcome === 'pass' && assessment.separateApprover)
        if (selfApproved && separateApprover) throw forbidden('A policy requires that another key approves this.')
        const approvalsRequired = Math.max(
          run.policy.approvalsRequired ?? 1,
          assessment.outcome === 'review' ? assessment.approvalsRequired : 1,
        )
        const votedRun: TradeRun = {
          ...run,
          policy: { ...run.policy, ...(approvalsRequired > 1 && { approvalsRequired }) },
          votes,
          selfApproved: votes.some((given) => given.selfApproved),
          updatedAt: now,
        }
        await saveVotes(tx, votedRun)
        if (assessment.outcome === 'review' || votes.length < approvalsRequired) {
          await deps.outcomeRecorder.recordVote(tx, votedRun, vote, auditData)
          await link?.use(tx)
          return { status: 200, body: toVoteResponse(votedRun, vote, body.approved_by ?? null) }
        }
        const approvedRun: TradeRun = {
          ...(await holdForTrade(tx, votedRun, assessment, now)),
          state: 'approved',
          approvedAt: now,
          approvedBy: approver,
          approvedByClaimed: body.approved_by ?? null,
          nextAttemptAt: now,
          updatedAt: now,
        }
        await markApproved(tx, approvedRun)
        await deps.outcomeRecorder.recordApproved(tx, approvedRun, approver, now, auditData)
        await link?.use(tx)
        return { status: 200, body: toVoteResponse(approvedRun, vote, approvedRun.approvedByClaimed) }
      })
    }
    try {
      const response = await deps.governance.retryWhileChanging(tenantId, attemptApproval)
      deps.wake()
      return response
    } catch (error) {
      if (!(error instanceof ApprovalWindowExpired)) throw error
      // The transaction above was rolled back, so the run is cancelled in one of its own.
      await deps.db.transaction().execute(async (tx) => {
        const run = await lockRun(tx, body.run_id, tenantId)
        if (run?.state === 'pending_approval') await cancelExpiredRun(deps.outcomeRecorder, tx, run, deps.clock.now())
      })
      throw expired('The approval window of this run has expired.')
    }
  }

const toGovernedTrade = (run: TradeRun, freeze: Freeze | undefined, at: Date): GovernedTrade => ({
  party: run,
  type: run.terms.type,
  symbol: run.terms.symbol,
  payees: payeesOf(run.broker, run.instrument),
  amountMicro: run.terms.notionalMicro,
  leverage: run.terms.leverageE2 === null ? null : Number(run.terms.leverageE2) / 100,
  namedMandateId: run.namedMandateId,
  freeze,
  at,
})

class ApprovalWindowExpired extends Error {}

const toVoteResponse = (run: TradeRun, vote: TradeVote, approvedByClaimed: string | null) => ({
  run_id: run.id,
  status: run.state,
  instrument_type: run.terms.type,
  queued: run.state === 'approved',
  approved_at: vote.at,
  approved_by: vote.voter,
  approved_by_claimed: approvedByClaimed,
  self_approved: run.selfApproved,
  approvals_required: run.policy.approvalsRequired ?? 1,
  approvals: run.votes.map(toVoteRecord),
  expires_at: run.expiresAt!.toISOString(),
  execute_by: run.executeBy.toISOString(),
  digest: run.approval!.digest,
})

export const toVoteRecord = ({ voter, at, selfApproved, reason }: TradeVote) => ({
  key_id: voter,
  at,
  self_approved: selfApproved,
  ...(reason !== undefined && { reason }),
})

export const cancelExpiredRun = (outcomeRecorder: OutcomeRecorder, tx: Tx, run: TradeRun, now: Date) =>
  outcomeRecorder.recordFinished(
    tx,
    run,
    { state: 'cancelled', reason: APPROVAL_EXPIRED_REASON, fills: [], brokerOrderId: null },
    'clock',
    now,
  )

/** True once the window has passed, whether or not the sweep has cancelled the run yet. */
function hasExpired(run: TradeRun, now: Date): boolean {
  if (run.state === 'cancelled') return run.reason === APPROVAL_EXPIRED_REASON
  if (run.state !== 'pending_approval' || !run.expiresAt) return false
  return now >= approvalDeadline({ expiresAt: run.expiresAt, executeBy: run.executeBy })
}

/** The first echoed field that differs from the stored run. */
function findMismatchedEcho(run: TradeRun, body: ApproveBody): string | undefined {
  const { terms, approval, expiresAt } = run
  const leverage = terms.leverageE2 === null ? null : Number(terms.leverageE2) / 100
  const echoes: [name: keyof ApproveBody, matches: () => boolean][] = [
    ['instrument_type', () => body.instrument_type === terms.type],
    ['direction', () => orderSideOf(body.direction!) === terms.orderSide],
    ['notional_usdc', () => microFromUsdc(body.notional_usdc!) === terms.notionalMicro],
    ['leverage', () => body.leverage === leverage],
    ['liquidation_price', () => body.liquidation_price === approval?.liquidation_price],
    ['policy_verdict', () => body.policy_verdict === approval?.policy_verdict],
    ['expires_at', () => Date.parse(body.expires_at!) === expiresAt?.getTime()],
  ]
  return echoes.find(([name, matches]) => body[name] !== undefined && !matches())?.[0]
}
