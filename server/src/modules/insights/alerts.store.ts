import { type Selectable, sql } from 'kysely'
import { callStep } from '../../platform/batch.ts'
import type { Tx } from '../../platform/db.ts'
import type { Alerts } from '../../platform/generated/db.ts'
import { type NewAlert, raiseAlertStep } from './insights.steps.ts'

export type AlertRow = Selectable<Alerts>
export type Severity = 'critical' | 'warning' | 'info'

export type AlertFilter = { severity?: string; cursor?: string; limit: number; unread?: boolean }

export async function listAlerts(tx: Tx, tenantId: string, filter: AlertFilter): Promise<AlertRow[]> {
  let query = tx
    .selectFrom('alerts')
    .selectAll()
    .where('tenant_id', '=', tenantId)
    .orderBy('id', 'desc')
    .limit(filter.limit + 1)
  if (filter.severity) query = query.where('severity', '=', filter.severity)
  if (filter.cursor) query = query.where('id', '<', filter.cursor)
  if (filter.unread) query = query.where('read_at', 'is', null)
  return query.execute()
}

export async function countUnread(tx: Tx, tenantId: string): Promise<number> {
  const { count } = await tx
    .selectFrom('alerts')
    .select((on) => on.fn.countAll<bigint>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('read_at', 'is', null)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function markRead(tx: Tx, tenantId: string, id: string, at: Date): Promise<AlertRow | undefined> {
  return tx
    .updateTable('alerts')
    .set({ read_at: sql`coalesce(read_at, ${at})` })
    .where('tenant_id', '=', tenantId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()
}

/** Returns true when the alert is new. For an existing cause it only raises the severity, if the new one is higher. */
export const raiseAlert = (tx: Tx, alert: NewAlert): Promise<boolean> => callStep(tx, raiseAlertStep, alert)

export async function readAlert(tx: Tx, id: string): Promise<AlertRow> {
  return tx.selectFrom('alerts').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
}

/** The causes that have an alert already, with its severity. */
export async function readExistingCauses(
  tx: Tx,
  causes: readonly { tenantId: string; cause: string }[],
): Promise<{ tenant_id: string; cause: string; severity: Severity }[]> {
  const { rows } = await sql<{ tenant_id: string; cause: string; severity: Severity }>`
    select alert.tenant_id, alert.cause, alert.severity
    from jsonb_to_recordset(${JSON.stringify(causes)}::jsonb) as finding("tenantId" text, cause text)
    join alerts alert on alert.tenant_id = finding."tenantId" and alert.cause = finding.cause
  `.execute(tx)
  return rows
}
