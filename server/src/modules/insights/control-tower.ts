import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { Outbox } from '../../platform/outbox.ts'
import { invalid } from '../../platform/problem.ts'
import type { Alerts } from './alerts.ts'
import { isAtRisk, readOutlooks, toOutlookRecord } from './budget-watch.ts'
import {
  countSelfApproved,
  isAgentNamed,
  listSeenNames,
  listSelfApproved,
  readPendingWork,
  readRunCounts,
} from './control-tower.store.ts'
import { deleteFrozen, type FrozenAgents, writeFrozen } from './frozen-agents.ts'
import { readSpentMicro } from './spend.store.ts'

export type ControlTowerDeps = {
  db: Db
  clock: Clock
  audit: Outbox['audit']
  alerts: Pick<Alerts, 'readUnread'>
  frozen: FrozenAgents
  laneNames(): string[]
  /** What the cheapest run costs: a budget with less left pays for none. */
  cheapestRunMicro(): bigint
  /** The newest checkpoint of the public log, or null while the log is empty. */
  logCheckpoint(): Promise<string | null>
}

export type ControlTower = ReturnType<typeof createControlTower>

const DAY_MS = 24 * 3_600_000
const MAX_ALERTS = 20
const MAX_FROZEN = 1_000
const MAX_NAMES = 200

export function createControlTower(deps: ControlTowerDeps) {
  const readTenantOutlooks = (tenantId: string, now: Date) =>
    readOutlooks(deps.db, now, { tenantId, cheapestRunMicro: deps.cheapestRunMicro() })

  const read = async (caller: TenantCaller) => {
    const { tenantId } = caller
    const now = deps.clock.now()
    const dayStart = new Date(Math.floor(now.getTime() / DAY_MS) * DAY_MS)
    const monthStart = startOfMonth(now)
    const readSpentSince = (since: Date) => readSpentMicro(deps.db, tenantId, since, new Date(now.getTime() + 1))
    const [today, month, spentToday, spentInMonth, pendingWork, outlooks, alerts, frozen, checkpoint, selfApproved] =
      await Promise.all([
        readRunCounts(deps.db, tenantId, dayStart),
        readRunCounts(deps.db, tenantId, monthStart),
        readSpentSince(dayStart),
        readSpentSince(monthStart),
        readPendingWork(deps.db, tenantId),
        readTenantOutlooks(tenantId, now),
        deps.alerts.readUnread(caller, MAX_ALERTS),
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
      budgets_at_risk: outlooks.filter(isAtRisk).map(toOutlookRecord),
      alerts: alerts.alerts,
      alerts_unread: alerts.count,
      frozen_agents: frozen.map((agent) => ({ ...agent, frozen_at: agent.frozen_at.toISOString() })),
      log_checkpoint: checkpoint,
    }
  }

  /** A freeze of a name that nothing uses is probably misspelt. */
  const isKnown = async (tenantId: string, agentId: string) =>
    deps.laneNames().includes(agentId) || isAgentNamed(deps.db, tenantId, agentId)

  return {
    view: read,

    async listOutlooks({ tenantId }: TenantCaller, query: { at_risk?: boolean }) {
      const outlooks = await readTenantOutlooks(tenantId, deps.clock.now())
      const budgets = query.at_risk === undefined ? outlooks : outlooks.filter((one) => isAtRisk(one) === query.at_risk)
      return { budgets: budgets.map(toOutlookRecord) }
    },

    async listSelfApproved({ tenantId }: TenantCaller, query: { since?: string; limit?: number }) {
      const since = query.since === undefined ? startOfMonth(deps.clock.now()) : new Date(query.since)
      const limit = query.limit ?? 100
      const rows = await listSelfApproved(deps.db, tenantId, since, limit + 1)
      return {
        decisions: rows.slice(0, limit).map(({ amount_micro, decided_at, ...row }) => ({
          ...row,
          amount_usdc: amount_micro === null ? null : usdcFromMicro(amount_micro),
          decided_at: decided_at.toISOString(),
        })),
        has_more: rows.length > limit,
      }
    },

    /** Names for a pick list. A lane that nobody has used yet can be frozen before anybody does. */
    async listNames({ tenantId }: TenantCaller) {
      const [seenNames, frozen] = await Promise.all([
        listSeenNames(deps.db, tenantId, MAX_NAMES),
        deps.frozen.list(tenantId),
      ])
      const lanes = deps.laneNames()
      const frozenNames = new Set(frozen.map(({ agent_id }) => agent_id))
      const toRecord = (name: string, kind: 'agent' | 'spender' | 'lane', lastSeen: Date | null) => ({
        name,
        kind,
        last_seen_at: lastSeen?.toISOString() ?? null,
        frozen: frozenNames.has(name),
      })
      return {
        names: [
          ...seenNames.map((seen) =>
            toRecord(seen.name, lanes.includes(seen.name) ? 'lane' : seen.kind, seen.last_seen_at),
          ),
          ...lanes
            .filter((lane) => !seenNames.some(({ name }) => name === lane))
            .map((lane) => toRecord(lane, 'lane', null)),
        ].slice(0, MAX_NAMES),
      }
    },

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

const startOfMonth = (at: Date) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1))
