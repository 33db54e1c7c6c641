import { sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { PreauthRow } from '../grants/grants.store.ts'

export type PreauthsQuery = { limit: number; cursor?: string; status?: string; agent_id?: string }

export async function listPreauths(tx: Tx, tenantId: string, query: PreauthsQuery): Promise<PreauthRow[]> {
  let select = tx.selectFrom('preauths').selectAll().where('tenant_id', '=', tenantId)
  if (query.status === 'active')
    select = select.where('id', 'in', tx.selectFrom('active_preauths').select('id').where('tenant_id', '=', tenantId))
  else if (query.status !== undefined) select = select.where('status', '=', query.status)
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

/** Reported closes whose check is due. The next one is set first, so that another process does not ask at the same time. */
export async function claimReportedCloses(
  tx: Tx,
  { now, limit, firstMs, longestMs }: { now: Date; limit: number; firstMs: number; longestMs: number },
): Promise<PreauthRow[]> {
  const { rows } = await sql<PreauthRow>`
    update preauths set settlement_checks = settlement_checks + 1,
      settlement_check_at = ${now}::timestamptz + least(${firstMs} * 2 ^ least(settlement_checks + 1, 20), ${longestMs}) * interval '1 millisecond'
    where id in (
      select id from preauths where settlement_check_at <= ${now} order by settlement_check_at limit ${limit} for update skip locked)
    returning *
  `.execute(tx)
  return rows
}

/** Nobody looks for the payment of this close any more. */
export const endChecks = (tx: Tx, id: string) =>
  tx.updateTable('preauths').set({ settlement_check_at: null }).where('id', '=', id).execute()

/** Whether another pre-authorisation is open that a transfer of this amount could pay. */
export async function hasOpenRival(tx: Tx, row: PreauthRow, payTo: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from preauths where tenant_id = ${row.tenant_id} and status in ('open', 'in_use', 'escalated') and id <> ${row.id}
      and amount_micro >= ${row.charged_micro} and coalesce(payer = ${row.payer}, true) and coalesce(lower(merchant->>'pay_to') = ${payTo}, true)
    limit 1
  `.execute(tx)
  return rows.length > 0
}

export async function findReceiptHash(tx: Tx, id: string): Promise<string> {
  const { hash } = await tx.selectFrom('receipts').select('hash').where('id', '=', id).executeTakeFirstOrThrow()
  return hash
}

/** `isCounted`: its price is spent, or held until it is. */
export type BookedRun = { id: string; tenantId: string | null; isCounted: boolean }

/** The run or top-up of any tenant that this transfer paid for; its tenant is null for a guest's. */
export async function findBookedRun(
  tx: Tx,
  network: string,
  { from, asset, nonce }: { from: string; asset: string; nonce: string },
): Promise<BookedRun | undefined> {
  const { rows } = await sql<BookedRun>`
    select booked.run_id as id,
           (select tenant_id from settlements settlement where settlement.run_id = booked.run_id limit 1) as "tenantId",
           exists (select from runs run where run.id = booked.run_id and run.kind in ('run', 'loop') and run.state <> 'failed') as "isCounted"
    from nonces booked
    where booked.payer = ${from.toLowerCase()} and booked.nonce = ${nonce} and booked.network = ${network}
      and lower(booked.asset) = ${asset.toLowerCase()}`.execute(tx)
  return rows[0]
}
