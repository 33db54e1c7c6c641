import type { Tx } from '../../../platform/db.ts'
import type { ApprovalRow } from '../grants/grants.store.ts'

export type ApprovalsQuery = {
  limit: number
  cursor?: string
  status: 'pending' | 'approved' | 'rejected' | 'all'
  agent_id?: string
}

export async function listApprovals(tx: Tx, tenantId: string, query: ApprovalsQuery): Promise<ApprovalRow[]> {
  let select = tx.selectFrom('approvals').selectAll().where('tenant_id', '=', tenantId)
  if (query.status !== 'all') select = select.where('status', '=', query.status)
  if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
  if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
  return select
    .orderBy('id', 'desc')
    .limit(query.limit + 1)
    .execute()
}

export const listExpired = (tx: Tx, now: Date, limit: number): Promise<ApprovalRow[]> =>
  tx
    .selectFrom('approvals')
    .selectAll()
    .where('status', '<>', 'rejected')
    .where('consumed_by', 'is', null)
    .where('lapsed_at', 'is', null)
    .where('expires_at', '<=', now)
    .orderBy('expires_at')
    .limit(limit)
    .execute()

/** The run or pre-authorisation of an approval, as listed by `/api/runs`. */
export const findRunHistoryEntry = (tx: Tx, tenantId: string, runId: string) =>
  tx.selectFrom('run_history').selectAll().where('tenant_id', '=', tenantId).where('id', '=', runId).executeTakeFirst()
