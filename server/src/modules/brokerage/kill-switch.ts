import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { AuditEvent } from '../../platform/outbox.ts'
import {
  type KillSwitch,
  lockNames,
  lockTenant,
  lockUnfinishedRuns,
  readKillSwitch,
  writeKillSwitch,
} from './brokerage.store.ts'
import { stopRun } from './cancel-trade.ts'
import type { OutcomeRecorder } from './record-outcome.ts'
import { holdLocks } from './trade-holds.ts'

export type KillSwitchDeps = {
  db: Db
  clock: Clock
  outcomeRecorder: OutcomeRecorder
  audit(tx: Tx, event: AuditEvent): Promise<void>
  /** Wakes the worker. */
  wake(): void
}

export const createKillSwitch = (deps: KillSwitchDeps) => ({
  async read(caller: TenantCaller) {
    return toKillSwitchResponse(await readKillSwitch(deps.db, caller.tenantId), 0)
  },

  /** Engaging stops every run that has not been executed. Releasing allows new runs and does not resume stopped ones. */
  async set(caller: TenantCaller, engaged: boolean, reason: string | null) {
    const response = await deps.db.transaction().execute(async (tx) => {
      await lockTenant(tx, caller.tenantId)
      const now = deps.clock.now()
      const killSwitch = engaged
        ? { engagedAt: now, engagedBy: caller.keyId, reason }
        : { engagedAt: null, engagedBy: null, reason: null }
      await writeKillSwitch(tx, caller.tenantId, killSwitch)
      const stoppedRuns = engaged ? await lockUnfinishedRuns(tx, caller.tenantId) : []
      // All at once, in the order in which every transaction takes them.
      await lockNames(tx, holdLocks(stoppedRuns))
      for (const run of stoppedRuns)
        await stopRun(deps, tx, run, 'Trading is switched off for this tenant.', caller.keyId)
      await deps.audit(tx, {
        tenantId: caller.tenantId,
        type: engaged ? 'rh_kill_switch.engaged' : 'rh_kill_switch.released',
        actor: caller.keyId,
        subject: caller.tenantId,
        at: now,
        data: { reason, runs_stopped: stoppedRuns.length },
      })
      return toKillSwitchResponse(killSwitch, stoppedRuns.length)
    })
    deps.wake()
    return response
  },
})

const toKillSwitchResponse = (killSwitch: KillSwitch, runsStopped: number) => ({
  engaged: killSwitch.engagedAt !== null,
  engaged_at: killSwitch.engagedAt?.toISOString() ?? null,
  engaged_by: killSwitch.engagedBy,
  reason: killSwitch.reason,
  runs_stopped: runsStopped,
})
