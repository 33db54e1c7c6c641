import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { invalid } from '../../platform/problem.ts'
import type { Alerts } from './alerts.ts'
import { readTotals } from './analytics.store.ts'
import { readOutlooks, toOutlookRecord } from './budget-watch.ts'
import { countSelfApproved, isAgentNamed, readPendingWork } from './control-tower.store.ts'
import { deleteFrozen, type FrozenAgents, writeFrozen } from './frozen-agents.ts'
import { readSpentMicro } from './spend.store.ts'

export type ControlTowerDeps = {
  db: Db
  clock: Clock
  audit: Outbox['audit']
  alerts: Pick<Alerts, 'listUnread'>
  frozen: FrozenAgents
  isLane(agentId: string): boolean
  /** The newest checkpoint of the public log, or null while the log is empty. */
  logCheckpoint(): Promise<string | null>
}

export type ControlTower = ReturnType<typeof createControlTower>

const DAY_MS = 24 * 3_600_000
const MAX_ALERTS = 20
const MAX_FROZEN = 1_000
// A budget used to this share is shown, whatever the pace.
const AT_RISK_PERCENT = 80n

export function createControlTower(deps: ControlTowerDeps) {
  const read = async (caller: TenantCaller) => {
    const { tenantId } = caller
    const now = deps.clock.now()
    const readTotalsSince = (since: Date) =>
      readTotals(deps.db, { tenantId, since, until: new Date(now.getTime() + 1), costs: {} })
    const dayStart = new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS)
    const monthStart = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1))
    const readSpentSince = (since: Date) => readSpentMicro(deps.db, tenantId, since, new Date(now.getTime() + 1))
    const [today, month, spentToday, spentInMonth, pendingWork, outlooks, alerts, frozen, checkpoint, selfApproved] =
      await Promise.all([
        readTotalsSince(dayStart),
        readTotalsSince(monthStart),
        readSpentSince(dayStart),
        readSpentSince(monthStart),
        readPendingWork(deps.db, tenantId),
        readOutlooks(deps.db, now, tenantId),
        deps.alerts.listUnread(caller, MAX_ALERTS),
        deps.frozen.list(tenantId),
        deps.logCheckpoint(),
        countSelfApproved(deps.db, tenantId, monthStart),
      ])
    const ageInSeconds = (since: Date | null) =>
      since ? Math.max(0, Math.round((now.getTime() - since.getTime()) / 1000)) : null
    return {
      as_of: now.toISOString(),
      spend: { today_usdc: usdcFromMicro(spentToday), month_usdc: usdcFromMicro(spentInMonth) },
      runs: {
        today: Number(today.runs),
        month: Number(month.runs),
        completed_today: Number(today.completed),
        blocked_today: Number(today.blocked),
        failed_today: Number(today.failed),
        executing: pendingWork.executing,
        escalated: pendingWork.escalated_runs,
      },
      approvals_pending: pendingWork.approvals_pending,
      brokerage_approvals_pending: pendingWork.brokerage_approvals_pending,
      self_approved: selfApproved > 0,
      self_approved_count: selfApproved,
      preauth: {
        open: pendingWork.preauths_open,
        escalated: pendingWork.preauths_escalated,
        oldest_age_s: ageInSeconds(pendingWork.oldest_preauth),
      },
      settlements_unknown: pendingWork.settlements_unknown,
      webhooks: {
        active: pendingWork.webhooks_active,
        failing: pendingWork.webhooks_failing,
        pending_deliveries: pendingWork.deliveries_pending,
        oldest_pending_age_s: ageInSeconds(pendingWork.oldest_delivery),
      },
      budgets_at_risk: outlooks
        .filter(({ budget, usedMicro, resetsAt, forecast }) => {
          const nearlyExhausted = usedMicro * 100n >= budget.limit_micro * AT_RISK_PERCENT
          return nearlyExhausted || (forecast !== undefined && (resetsAt === null || forecast.exhaustedAt < resetsAt))
        })
        .map(toOutlookRecord),
      alerts,
      frozen_agents: frozen.map((agent) => ({ ...agent, frozen_at: agent.frozen_at.toISOString() })),
      log_checkpoint: checkpoint,
    }
  }

  /** A freeze of a name that nothing uses is probably misspelt. */
  const isKnown = async (tenantId: string, agentId: string) =>
    deps.isLane(agentId) || isAgentNamed(deps.db, tenantId, agentId)

  return {
    view: read,

    /** Freezes or unfreezes an agent in every process at once, and returns the control tower as it is after that. */
    async applyAction(
      caller: TenantCaller,
      body: { action: 'freeze' | 'unfreeze'; agent_id: string; reason?: string },
    ) {
      const { tenantId, keyId } = caller
      const { action, agent_id, reason } = body
      if (action === 'freeze' && !reason) throw invalid('A freeze needs a reason.')
      if (action === 'freeze' && (await deps.frozen.list(tenantId)).length >= MAX_FROZEN)
        throw invalid(`At most ${MAX_FROZEN} agents can be frozen.`)
      const at = deps.clock.now()
      await deps.frozen.change(tenantId, async (tx) => {
        if (action === 'freeze')
          await writeFrozen(tx, { tenant_id: tenantId, agent_id, reason: reason!, frozen_by: keyId, frozen_at: at })
        else await deleteFrozen(tx, tenantId, agent_id)
        const type = action === 'freeze' ? 'agent.frozen' : 'agent.unfrozen'
        await deps.audit(tx, { tenantId, type, actor: keyId, subject: agent_id, at, data: { reason: reason ?? null } })
      })
      const view = await read(caller)
      // Looked up after the freeze, which must not wait for it.
      return action === 'freeze' ? { ...view, known: await isKnown(tenantId, agent_id) } : view
    },
  }
}
