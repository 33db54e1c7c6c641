import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Idempotency } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import { toPage } from '../../platform/paging.ts'
import { notFound } from '../../platform/problem.ts'
import type { Tenants } from '../tenants/tenants.ts'
import * as store from './alerts.store.ts'

export type AlertsDeps = {
  db: Db
  clock: Clock
  ids: Ids
  idempotency: Idempotency
  requireFeature: Tenants['requireFeature']
  hasFeature: Tenants['hasFeature']
}

/** A condition the service detected by itself. `cause` identifies it: one cause raises one alert. */
export type Finding = {
  tenantId: string
  severity: store.Severity
  type: string
  message: string
  data: Record<string, unknown>
  cause: string
}

export type Alerts = ReturnType<typeof createAlerts>

export function createAlerts(deps: AlertsDeps) {
  const newAlertIds = () => ({
    id: deps.ids.next('alr'),
    event_id: deps.ids.next('evt'),
    at: deps.clock.now().toISOString(),
  })

  return {
    /** Listing alerts needs a plan with the feature; creating and marking them does not. */
    async list(caller: TenantCaller, query: { severity?: string; unread?: boolean; cursor?: string; limit?: number }) {
      await deps.requireFeature(caller, 'predictive_alerts')
      const limit = query.limit ?? 50
      const rows = await store.listAlerts(deps.db, caller.tenantId, { ...query, limit })
      const { rows: alerts, ...paging } = toPage(rows, limit)
      return { alerts: alerts.map(toAlertRecord), ...paging }
    },

    create(
      caller: TenantCaller,
      key: string | undefined,
      body: { severity: store.Severity; type: string; message: string; data?: Record<string, unknown> },
    ) {
      const request = { scope: `tenant:${caller.tenantId}`, route: 'POST /api/predictive/alerts', key, body }
      return deps.idempotency.once(request, async (tx) => {
        const { severity, type, message, data = {} } = body
        const alert = { ...newAlertIds(), tenant_id: caller.tenantId, severity, type, message, data, cause: null }
        await store.raiseAlert(tx, alert)
        return { status: 201, body: toAlertRecord(await store.readAlert(tx, alert.id)) }
      })
    },

    /** Idempotent: marking an alert read again keeps the first time. */
    async markRead(caller: TenantCaller, id: string) {
      const row = await store.markRead(deps.db, caller.tenantId, id, deps.clock.now())
      if (!row) throw notFound('alert')
      return toAlertRecord(row)
    },

    /** Raises an alert for each finding that is new or more severe than before; returns the number of new alerts. */
    async raise(findings: readonly Finding[]): Promise<number> {
      const existingAlerts = await store.readExistingCauses(
        deps.db,
        findings.map(({ tenantId, cause }) => ({ tenantId, cause })),
      )
      const severityByCause = new Map(
        existingAlerts.map((row) => [`${row.tenant_id} ${row.cause}`, severityRank(row.severity)]),
      )
      let raisedCount = 0
      for (const { tenantId, ...finding } of findings) {
        if (severityRank(finding.severity) <= (severityByCause.get(`${tenantId} ${finding.cause}`) ?? -1)) continue
        if (await store.raiseAlert(deps.db, { ...newAlertIds(), tenant_id: tenantId, ...finding })) raisedCount += 1
      }
      return raisedCount
    },

    /** For the control tower: the newest unread alerts and how many there are. None when the plan does not include alerts. */
    async readUnread(caller: TenantCaller, limit: number) {
      if (!(await deps.hasFeature(caller, 'predictive_alerts'))) return { alerts: [], count: 0 }
      const [rows, count] = await Promise.all([
        store.listAlerts(deps.db, caller.tenantId, { limit, unread: true }),
        store.countUnread(deps.db, caller.tenantId),
      ])
      return { alerts: rows.slice(0, limit).map(toAlertRecord), count }
    },
  }
}

const severityRank = (severity: store.Severity) => ['info', 'warning', 'critical'].indexOf(severity)

export const toAlertRecord = (row: store.AlertRow) => ({
  id: row.id,
  severity: row.severity as store.Severity,
  type: row.type,
  message: row.message,
  read: row.read_at !== null,
  created_at: row.created_at.toISOString(),
  data: row.data as Record<string, unknown>,
})
