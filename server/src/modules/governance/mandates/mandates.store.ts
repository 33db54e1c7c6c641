import { sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { MandateRow } from '../grants/grants.store.ts'

export async function insertMandate(tx: Tx, row: Omit<MandateRow, 'status' | 'revoked_at'>): Promise<MandateRow> {
  return tx
    .insertInto('mandates')
    .values({ ...row, constraints: JSON.stringify(row.constraints), status: 'active' })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function listMandates(
  tx: Tx,
  tenantId: string,
  query: { limit: number; cursor?: string; status?: string },
): Promise<MandateRow[]> {
  let select = tx.selectFrom('mandates').selectAll().where('tenant_id', '=', tenantId)
  if (query.status !== undefined) select = select.where('status', '=', query.status)
  if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
  return select.orderBy('id', 'desc').limit(query.limit).execute()
}

/** Undefined when the mandate is already revoked. */
export const revokeMandate = (tx: Tx, tenantId: string, id: string, at: Date): Promise<MandateRow | undefined> =>
  tx
    .updateTable('mandates')
    .set({ status: 'revoked', revoked_at: at })
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .where('status', '=', 'active')
    .returningAll()
    .executeTakeFirst()

/**
 * Whether the agents of a mandate that was revoked have none any more: it was in force, no other one for them is, and no policy
 * refuses payments without one.
 */
export async function leavesUnlimited(tx: Tx, revoked: MandateRow, at: Date): Promise<boolean> {
  if (revoked.starts_at > at || revoked.expires_at <= at) return false
  const { rows } = await sql`
    select 1 from mandates where tenant_id = ${revoked.tenant_id} and status = 'active' and starts_at <= ${at} and expires_at > ${at}
      and (agent_id is null or agent_id = ${revoked.agent_id})
    union all
    select 1 from policies where tenant_id = ${revoked.tenant_id} and status = 'active' and mode = 'enforce' and identity_type = 'tenant'
      and constraints->>'require_mandate' = 'true'
    limit 1`.execute(tx)
  return rows.length === 0
}

/** What was counted under a mandate for payments that nobody but the tenant has seen, or that the chain does not show. */
export async function readReportedMicro(tx: Tx, tenantId: string, mandateId: string): Promise<bigint> {
  const { rows } = await sql<{ micro: bigint }>`
    select coalesce(sum(charged_micro), 0)::bigint as micro from preauths
    where mandate_id = ${mandateId} and tenant_id = ${tenantId} and settlement_status in ('reported', 'not_found')
  `.execute(tx)
  return rows[0]!.micro
}
