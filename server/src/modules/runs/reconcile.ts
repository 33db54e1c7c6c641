import { type AbandonFrom, abandonRun, finishRun } from './finish-run.ts'
import { type Failure, type Run, type RunResponse, type RunTerms, stepOwner, type UnitResult } from './paid-unit.ts'
import { performRun } from './perform-run.ts'
import { toOpenSettlement, toPaidUnit } from './read-stored-run.ts'
import type { RunDeps } from './run-deps.ts'
import {
  claimDueSettlements,
  deleteExpiredKeys,
  deleteOldUnanswered,
  findInstancesOfOpenRuns,
  findOpenRun,
  findOrphanedRuns,
  type OpenRunRow,
  releaseOrphanedSettlements,
  takeOverRun,
} from './runs.store.ts'

const BATCH_SIZE = 50
const MAX_RELEASED = 1_000
const KEYS_BATCH_SIZE = 5_000
const MAX_TAKEOVERS = 1
/** For how long an answer that its caller did not get waits for the same request: as long as an idempotency key lives. */
const UNANSWERED_LIFE_MS = 24 * 60 * 60 * 1000

/**
 * Finishes runs that stayed open after a crash or without a response of the facilitator. A run whose result was not
 * stored is abandoned without a charge; otherwise the chain is checked, and the run ends as in the request.
 */
export function createReconciler(deps: RunDeps) {
  const finishOpenRun = async (row: OpenRunRow): Promise<RunResponse> => {
    const unit = toPaidUnit(row)
    if (row.state === 'executing') return abandonRun(deps, unit, INTERRUPTED, toAbandonFrom(row))
    const outcome = await deps.payments.reconcile(toOpenSettlement(row))
    return finishRun(deps, unit, row.result as UnitResult, outcome)
  }

  /** One run that cannot be finished yet must not stop the others. */
  const finishOrLog = async (row: OpenRunRow) => {
    try {
      await finishOpenRun(row)
    } catch (error) {
      deps.log.warn({ err: error, run_id: row.id }, 'a run could not be finished yet')
    }
  }

  /** An asynchronous run is begun again here, once; any other ends, because its caller has seen its connection close. */
  const takeOverOrFinish = async (row: OpenRunRow) => {
    const { owner } = stepOwner(toPaidUnit(row))
    if (!mayTakeOver(row, deps.clock.now()) || !deps.background.hasRoom(owner)) return finishOrLog(row)
    const openRun = await takeOverRun(deps.db, row, { instance: deps.instance, admission: deps.ids.uuid() })
    if (!openRun) return
    const run = toPaidUnit(openRun) as Run
    const settlement = openRun.payment === null ? undefined : toOpenSettlement(openRun)
    deps.background.start(run.id, owner, (signal) => performRun(deps, run, settlement, { cancelled: signal }))
  }

  return {
    /** Settlements that are due for a check. Several processes may sweep at once: each row is claimed by one. */
    async sweepSettlements(): Promise<number> {
      const rows = await claimDueSettlements(deps.db, deps.instance, deps.clock.now(), BATCH_SIZE)
      await Promise.all(rows.map(finishOrLog))
      return rows.length
    },

    /**
     * Ends runs whose process has died before it stored a result, and runs past their deadline; asynchronous ones are
     * taken over while there is time. A run with a result is left to `sweepSettlements`, which is told that it is due.
     */
    async sweepOrphans(): Promise<number> {
      const dead = await deps.findDeadInstances(await findInstancesOfOpenRuns(deps.db))
      if (dead.length > 0)
        await releaseOrphanedSettlements(deps.db, deps.instance, dead, deps.clock.now(), MAX_RELEASED)
      const rows = await findOrphanedRuns(deps.db, dead, deps.clock.now(), BATCH_SIZE)
      await Promise.all(rows.map(takeOverOrFinish))
      return rows.length
    },

    sweepKeys: (): Promise<number> => deleteExpiredKeys(deps.db, deps.clock.now(), KEYS_BATCH_SIZE),

    sweepUnanswered: (): Promise<number> =>
      deleteOldUnanswered(deps.db, new Date(deps.clock.now().getTime() - UNANSWERED_LIFE_MS), KEYS_BATCH_SIZE),

    /** Checks one settlement now, for `POST /api/settle`. */
    async settleNow(runId: string): Promise<void> {
      const row = await findOpenRun(deps.db, runId)
      if (row?.state === 'settling') await finishOpenRun(row)
    },
  }
}

const INTERRUPTED: Failure = {
  stage: 'execute',
  reason: 'interrupted',
  message: 'The run was interrupted before it was done. Nothing was charged.',
  retryable: true,
}

/** If its process was alive after all, it may have stored the result since: then the run is left to it. */
const toAbandonFrom = ({ admission }: OpenRunRow): AbandonFrom => ({
  state: 'executing',
  ...(admission !== null && { admission }),
})

/** A task that ends its process must not end one after the other. The task of an approved run is not stored with it. */
function mayTakeOver(row: OpenRunRow, now: Date): boolean {
  const { async } = row.terms as RunTerms
  const { task } = row.request as { task?: string }
  return async !== undefined && async.takeovers < MAX_TAKEOVERS && task !== undefined && row.deadline_at > now
}

export type Reconciler = ReturnType<typeof createReconciler>
