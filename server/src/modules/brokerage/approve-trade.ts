import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
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
  /** Tells the worker that there is something to do. */
  wake(): void
}

/** Of a run that was cancelled by the passing of time, and of no other. */
export const EXPIRED_REASON = 'Nobody approved it in time.'

export const createApproveTrade = (d: ApproveDeps) => async (caller: TenantCaller, body: ApproveBody) => {
  const result = await d.db.transaction().execute(async (tx) => {
    const run = await lockRun(tx, body.run_id, caller.tenantId)
    const now = d.clock.now()
    if (!run) return notFound('run')
    if (hasExpired(run, now)) {
      await expireRun(tx, run, now)
      return expired('The approval window of this run has expired.')
    }
    if (run.state !== 'pending_approval') return conflict(`This run is already ${run.state}.`)
    const wrong = wrongEcho(run, body)
    if (wrong) return invalid(`${wrong} differs from the terms of the run.`, { field: wrong })
    const approved: TradeRun = {
      ...run,
      state: 'approved',
      approvedAt: now,
      approvedBy: caller.keyId,
      approvedByClaimed: body.approved_by ?? null,
      nextAttemptAt: now,
      updatedAt: now,
    }
    await markApproved(tx, approved)
    await d.outcomes.approved(tx, approved, caller.keyId, now)
    return approved
  })
  // A refusal is thrown only now: the expiry that was found on the way has been written down.
  if (result instanceof Error) throw result
  d.wake()
  return {
    run_id: result.id,
    status: 'approved' as const,
    instrument_type: result.terms.type,
    queued: true,
    approved_at: result.approvedAt!.toISOString(),
    approved_by: result.approvedBy!,
    approved_by_claimed: result.approvedByClaimed,
    expires_at: result.expiresAt!.toISOString(),
    execute_by: result.executeBy.toISOString(),
    digest: result.approval!.digest,
  }

  async function expireRun(tx: Tx, run: TradeRun, now: Date) {
    if (run.state === 'pending_approval') await cancelExpired(d.outcomes, tx, run, now)
  }
}

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
