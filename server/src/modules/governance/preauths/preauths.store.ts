import type { Tx } from '../../../platform/db.ts'
import type { PreauthRow } from '../grants/grants.store.ts'

export type PreauthsQuery = { limit: number; cursor?: string; status?: string; agent_id?: string }

export async function listPreauths(tx: Tx, tenantId: string, query: PreauthsQuery): Promise<PreauthRow[]> {
  let select = tx.selectFrom('preauths').selectAll().where('tenant_id', '=', tenantId)
  if (query.status !== undefined) select = select.where('status', '=', query.status)
  if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
  if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
  return select.orderBy('id', 'desc').limit(query.limit).execute()
}

/** Pre-authorisations past their `close_by`. The index covers open rows only, so the cost depends on those alone. */
export const listOverdue = (tx: Tx, now: Date, limit: number): Promise<PreauthRow[]> =>
  tx
    .selectFrom('preauths')
    .selectAll()
    .where('status', 'in', ['open', 'in_use'])
    .where('close_by', '<=', now)
    .orderBy('close_by')
    .limit(limit)
    .execute()

/** Keeps the transaction of a refused close, so that the sweep of orphaned pre-authorisations can check it. */
export const recordReportedTransaction = (tx: Tx, id: string, transaction: string) =>
  tx
    .updateTable('preauths')
    .set({ reported_transaction: transaction })
    .where('id', '=', id)
    .where('status', 'in', ['open', 'escalated'])
    .execute()
