import { sql } from 'kysely'
import type { Tx } from '../../../platform/db.ts'
import type { ApprovalRow } from '../grants/grants.store.ts'

export type ApprovalsQuery = {
  limit: number
  cursor?: string
  status: 'pending' | 'approved' | 'rejected' | 'all'
  agent_id?: string
  spender?: string
}

export async function listApprovals(tx: Tx, tenantId: string, query: ApprovalsQuery): Promise<ApprovalRow[]> {
  let select = tx.selectFrom('approvals').selectAll().where('tenant_id', '=', tenantId)
  if (query.status !== 'all') select = select.where('status', '=', query.status)
  if (query.agent_id !== undefined) select = select.where('agent_id', '=', query.agent_id)
  if (query.spender !== undefined) select = select.where('spender', '=', query.spender)
  if (query.cursor !== undefined) select = select.where('id', '<', query.cursor)
  return select.orderBy('id', 'desc').limit(query.limit).execute()
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

/** How many of a tenant's newest payments are looked at; a tenant with more of them in 30 days sees the newest. */
const MAX_PAYMENTS = 50_000

/** All that a spender has paid, where `target` is null, or what it paid on one lane or to one merchant. */
export type NormalSpend = {
  spender: string
  target: string | null
  count: number
  median_micro: bigint
  max_micro: bigint
}

/**
 * What each of these spenders has paid since a time: completed runs and loops by their lane, and closed
 * pre-authorisations by their merchant.
 */
export async function readNormalSpend(
  tx: Tx,
  tenantId: string,
  spenders: readonly string[],
  targets: readonly string[],
  since: Date,
): Promise<NormalSpend[]> {
  const { rows } = await sql<NormalSpend>`
    select spender, target, count(*)::int as count, percentile_disc(0.5) within group (order by amount_micro) as median_micro, max(amount_micro) as max_micro
    from (
      (select coalesce(spender, 'key:' || coalesce(key_id, terms#>>'{ruling,asked_by}')) as spender, agent_id as target, price_micro as amount_micro
       from ended_runs where tenant_id = ${tenantId} and id >= first_id('run', ${since}) and state = 'completed' and kind <> 'topup'
       order by id desc limit ${MAX_PAYMENTS})
      union all
      (select coalesce(spender, agent_id), merchant_id, charged_micro
       from preauths where tenant_id = ${tenantId} and id >= first_id('pa', ${since}) and close_outcome = 'settled' and not taken_by_run
       order by id desc limit ${MAX_PAYMENTS})
    ) paid
    where spender = any(${spenders})
    group by grouping sets ((spender), (spender, target)) having grouping(target) = 1 or target = any(${targets})`.execute(
    tx,
  )
  return rows
}

export async function claimApprovedRuns(
  tx: Tx,
  at: Date,
  leaseSeconds: number,
  maxRows: number,
): Promise<ApprovalRow[]> {
  const { rows } =
    await sql<ApprovalRow>`select * from claim_approved_runs(${at}, make_interval(secs => ${leaseSeconds}), ${maxRows})`.execute(
      tx,
    )
  return rows
}

export async function delayApprovedRun(tx: Tx, id: string, reason: string, until: Date): Promise<void> {
  await tx
    .updateTable('approvals')
    .set({ start_at: until, lapse_reason: reason })
    .where('id', '=', id)
    .where('start_at', 'is not', null)
    .where('consumed_by', 'is', null)
    .execute()
}

/** Deletes the content of approvals that ended before a time. */
export async function deleteOldContent(tx: Tx, endedBefore: Date, maxRows: number): Promise<number> {
  const { rows } = await sql`
    update approvals set content = null where id in (
      select id from approvals
      where content is not null and coalesce(consumed_at, lapsed_at, resolved_at) <= ${endedBefore}
        and (status = 'rejected' or consumed_at is not null or lapsed_at is not null)
      order by coalesce(consumed_at, lapsed_at, resolved_at) limit ${maxRows})
    returning id`.execute(tx)
  return rows.length
}

/** The run or pre-authorisation of an approval, as listed by `/api/runs`. */
export const findRunHistoryEntry = (tx: Tx, tenantId: string, runId: string) =>
  tx.selectFrom('run_history').selectAll().where('tenant_id', '=', tenantId).where('id', '=', runId).executeTakeFirst()
