import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import { conflict, notFound } from '../../platform/problem.ts'
import { findRun, lockRun, requestStop } from './brokerage.store.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { isFinal, isUuid, type TradeRun } from './trade-run-record.ts'

export type CancelDeps = {
  db: Db
  clock: Clock
  outcomeRecorder: OutcomeRecorder
  /** Wakes the worker. */
  wake(): void
}

/** POST /api/rh/runs/:id/cancel: cancels a pending run, or stops one that has not been executed. */
export const createCancelTrade = (deps: CancelDeps) => async (caller: TenantCaller, runId: string, reason: string) => {
  if (!isUuid(runId)) throw notFound('run')
  await deps.db.transaction().execute(async (tx) => {
    const run = await lockRun(tx, runId, caller.tenantId)
    if (!run) throw notFound('run')
    if (isFinal(run.state)) throw conflict(`This run is already ${run.state}.`)
    await stopRun(deps, tx, run, reason, caller.keyId)
  })
  deps.wake()
  const run = await findRun(deps.db, caller.tenantId, runId)
  if (!run) throw notFound('run')
  return { run_id: run.id, status: run.state, stopping: run.state === 'executing' }
}

/** Cancels a run whose order no broker has. A broker may have the order of an executing run, so the worker stops that one. */
export async function stopRun(
  deps: Pick<CancelDeps, 'clock' | 'outcomeRecorder'>,
  tx: Tx,
  run: TradeRun,
  reason: string,
  actor: string,
): Promise<void> {
  const now = deps.clock.now()
  if (run.state === 'executing') return requestStop(tx, run.id, reason, now)
  const outcome = { state: 'cancelled', reason, fills: [], brokerOrderId: null } as const
  await deps.outcomeRecorder.recordFinished(tx, run, outcome, actor, now)
}
