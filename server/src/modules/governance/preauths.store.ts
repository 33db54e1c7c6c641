import type { Tx } from '../../platform/db.ts'
import type { PreauthRow } from './grants.store.ts'

export type PreauthsQuery = { limit: number; cursor?: string; status?: string; agent_id?: string }

export async function listPreauths(tx: Tx, tenantId: string, query: PreauthsQuery): Promise<PreauthRow[]> {
  let select = tx.selectFrom('preauths').selectAll().where('tenant_id', '=', tenantId)
  if (query.status !== undefined) select = select.where('status', '=', query.status)
  if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
  if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
  return select
    .orderBy('id', 'desc')
    .limit(query.limit + 1)
    .execute()
}

/** What should have been closed by now. The index holds only what is open, so this costs what is open. */
export const listOverdue = (tx: Tx, now: Date, most: number): Promise<PreauthRow[]> =>
  tx
    .selectFrom('preauths')
    .selectAll()
    .where('status', 'in', ['open', 'in_use'])
    .where('close_by', '<=', now)
    .orderBy('close_by')
    .limit(most)
    .execute()

/** A close that was refused named a transaction: the orphan detector will look at it. */
export const recordReportedTransaction = (tx: Tx, id: string, transaction: string) =>
  tx
    .updateTable('preauths')
    .set({ reported_transaction: transaction })
    .where('id', '=', id)
    .where('status', 'in', ['open', 'escalated'])
    .execute()
