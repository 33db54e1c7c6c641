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
  needFeature: Tenants['needFeature']
  hasFeature: Tenants['hasFeature']
}

/** What the service saw by itself. `cause` names it: the same cause is told once. */
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
  const fresh = () => ({ id: deps.ids.next('alr'), event_id: deps.ids.next('evt'), at: deps.clock.now().toISOString() })

  return {
    /** Reading is a feature of the plan; writing and marking are not. */
    async list(caller: TenantCaller, query: { severity?: string; cursor?: string; limit?: number }) {
      await deps.needFeature(caller, 'predictive_alerts')
      const limit = query.limit ?? 50
      const rows = await store.listAlerts(deps.db, caller.tenantId, { ...query, limit })
      const { rows: alerts, ...paging } = toPage(rows, limit)
      return { alerts: alerts.map(alertRecord), ...paging }
    },

    create(
      caller: TenantCaller,
      key: string | undefined,
      body: { severity: store.Severity; type: string; message: string; data?: Record<string, unknown> },
    ) {
      const asked = { scope: `tenant:${caller.tenantId}`, route: 'POST /api/predictive/alerts', key, body }
      return deps.idempotency.once(asked, async (tx) => {
        const { severity, type, message, data = {} } = body
        const alert = { ...fresh(), tenant_id: caller.tenantId, severity, type, message, data, cause: null }
        await store.raiseAlert(tx, alert)
        return { status: 201, body: alertRecord(await store.readAlert(tx, alert.id)) }
      })
    },

    /** Reading twice is the same as once. */
    async markRead(caller: TenantCaller, id: string) {
      const row = await store.markRead(deps.db, caller.tenantId, id, deps.clock.now())
      if (!row) throw notFound('alert')
      return alertRecord(row)
    },

    /** Tells what is new or worse than it was told; answers how many alerts there are more. */
    async raise(findings: readonly Finding[]): Promise<number> {
      const known = await store.readKnownCauses(
        deps.db,
        findings.map(({ tenantId, cause }) => ({ tenantId, cause })),
      )
      const told = new Map(known.map((row) => [`${row.tenant_id} ${row.cause}`, rank(row.severity)]))
      let raised = 0
      for (const { tenantId, ...finding } of findings) {
        if (rank(finding.severity) <= (told.get(`${tenantId} ${finding.cause}`) ?? -1)) continue
        if (await store.raiseAlert(deps.db, { ...fresh(), tenant_id: tenantId, ...finding })) raised += 1
      }
      return raised
    },

    /** For the control tower: what nobody has read yet, newest first; nothing where the plan does not let them be read. */
    async unread(caller: TenantCaller, most: number) {
      if (!(await deps.hasFeature(caller, 'predictive_alerts'))) return []
      const rows = await store.listAlerts(deps.db, caller.tenantId, { limit: most, unread: true })
      return rows.slice(0, most).map(alertRecord)
    },
  }
}

const rank = (severity: store.Severity) => ['info', 'warning', 'critical'].indexOf(severity)

export const alertRecord = (row: store.AlertRow) => ({
  id: row.id,
  severity: row.severity as store.Severity,
  type: row.type,
  message: row.message,
  read: row.read_at !== null,
  created_at: row.created_at.toISOString(),
  data: row.data as Record<string, unknown>,
})
