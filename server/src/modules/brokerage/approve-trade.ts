import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Idempotency, IdempotentResponse } from '../../platform/idempotency.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { conflict, expired, invalid, notFound } from '../../platform/problem.ts'
import type { InstrumentType } from './broker.ts'
import { lockRun, markApproved } from './brokerage.store.ts'
import { orderSideOf, type Side } from './instruments.ts'
import type { Outcomes } from './outcomes.ts'
import type { TradeRun } from './trade-run.ts'
import { approvalEnds } from './windows.ts'

/** Everything but `run_id` is an echo of what the approver was shown; it can stop the approval and change nothing. */
export type ApproveBody = {
  run_id: string
  approved_by?: string
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
  outcomes: Outcomes
  idempotency: Idempotency
  /** Tells the worker that there is something to do. */
  wake(): void
}

/** Of a run that was cancelled by the passing of time, and of no other. */
export const EXPIRED_REASON = 'Nobody approved it in time.'

export const createApproveTrade =
  (d: ApproveDeps) =>
  async (caller: TenantCaller, body: ApproveBody, idempotencyKey?: string): Promise<IdempotentResponse> => {
    const { tenantId, keyId } = caller
    const asked = { scope: `tenant:${tenantId}`, route: 'POST /api/rh/approve', key: idempotencyKey, body }
    try {
      const answered = await d.idempotency.once(asked, async (tx) => {
        const run = await lockRun(tx, body.run_id, tenantId)
        const now = d.clock.now()
        if (!run) throw notFound('run')
        if (hasExpired(run, now)) throw new WindowOver()
        if (run.state !== 'pending_approval') throw conflict(`This run is already ${run.state}.`)
        const wrong = wrongEcho(run, body)
        if (wrong) throw invalid(`${wrong} differs from the terms of the run.`, { field: wrong })
        const approved: TradeRun = {
          ...run,
          state: 'approved',
          approvedAt: now,
          approvedBy: keyId,
          approvedByClaimed: body.approved_by ?? null,
          nextAttemptAt: now,
          updatedAt: now,
        }
        await markApproved(tx, approved)
        await d.outcomes.approved(tx, approved, keyId, now)
        return { status: 200, body: approvedAnswer(approved) }
      })
      d.wake()
      return answered
    } catch (error) {
      if (!(error instanceof WindowOver)) throw error
      // What was refused has been rolled back; that its time is over is written down all the same.
      await d.db.transaction().execute(async (tx) => {
        const run = await lockRun(tx, body.run_id, tenantId)
        if (run?.state === 'pending_approval') await cancelExpired(d.outcomes, tx, run, d.clock.now())
      })
      throw expired('The approval window of this run has expired.')
    }
  }

class WindowOver extends Error {}

const approvedAnswer = (run: TradeRun) => ({
  run_id: run.id,
  status: 'approved' as const,
  instrument_type: run.terms.type,
  queued: true,
  approved_at: run.approvedAt!.toISOString(),
  approved_by: run.approvedBy!,
  approved_by_claimed: run.approvedByClaimed,
  expires_at: run.expiresAt!.toISOString(),
  execute_by: run.executeBy.toISOString(),
  digest: run.approval!.digest,
})

export const cancelExpired = (outcomes: Outcomes, tx: Tx, run: TradeRun, now: Date) =>
  outcomes.finish(tx, run, { state: 'cancelled', reason: EXPIRED_REASON, fills: [], brokerOrderId: null }, 'clock', now)

/** Its window is over, whether the sweep has said so yet or not. */
function hasExpired(run: TradeRun, now: Date): boolean {
  if (run.state === 'cancelled') return run.reason === EXPIRED_REASON
  if (run.state !== 'pending_approval' || !run.expiresAt) return false
  return now >= approvalEnds({ expiresAt: run.expiresAt, executeBy: run.executeBy })
}

/** The first echoed term that is not the stored one. */
function wrongEcho(run: TradeRun, body: ApproveBody): string | undefined {
  const { terms, approval, expiresAt } = run
  const leverage = terms.leverageE2 === null ? null : Number(terms.leverageE2) / 100
  const echoes: [name: keyof ApproveBody, same: () => boolean][] = [
    ['instrument_type', () => body.instrument_type === terms.type],
    ['direction', () => orderSideOf(body.direction!) === terms.orderSide],
    ['notional_usdc', () => microFromUsdc(body.notional_usdc!) === terms.notionalMicro],
    ['leverage', () => body.leverage === leverage],
    ['liquidation_price', () => body.liquidation_price === approval?.liquidation_price],
    ['policy_verdict', () => body.policy_verdict === approval?.policy_verdict],
    ['expires_at', () => Date.parse(body.expires_at!) === expiresAt?.getTime()],
  ]
  return echoes.find(([name, same]) => body[name] !== undefined && !same())?.[0]
}
