import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

/** Each leaves out what was told already, so that a look costs what is new, not what ever happened. */

export async function findOrphans(tx: Tx, most: number) {
  return tx
    .selectFrom('preauths as p')
    .select(['p.id', 'p.tenant_id', 'p.run_id', 'p.agent_id', 'p.merchant_id', 'p.amount_micro', 'p.escalated_at'])
    .where('p.status', '=', 'escalated')
    .where((on) =>
      on.not(
        on.exists(
          on
            .selectFrom('alerts as a')
            .select('a.id')
            .whereRef('a.tenant_id', '=', 'p.tenant_id')
            .where('a.cause', '=', sql<string>`'preauth_orphaned:' || p.id`),
        ),
      ),
    )
    .limit(most)
    .execute()
}

/** Those not told yet, and those told as a warning that have become critical since. */
export async function findUnknownSettlements(tx: Tx, createdBefore: Date, criticalBefore: Date, most: number) {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    run_id: string
    amount_micro: bigint
    attempts: number
    created_at: Date
  }>`
    select id, tenant_id, run_id, amount_micro, attempts, created_at
    from settlements s
    where state = 'unknown' and tenant_id is not null and created_at <= ${createdBefore}
      and not exists (select 1 from alerts a where a.tenant_id = s.tenant_id and a.cause = 'settlement_unknown:' || s.id
        and (a.severity = 'critical' or s.created_at > ${criticalBefore}))
    order by updated_at limit ${most}
  `.execute(tx)
  return rows
}

/** A subscription is told of when it has failed for a while, and again when it is switched off; each spell once. */
export async function findFailingWebhooks(tx: Tx, failingBefore: Date, most: number) {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    url: string
    failures: number
    failing_since: Date | null
    disabled_at: Date | null
    disabled_reason: string | null
    cause: string
  }>`
    select id, tenant_id, url, failures, failing_since, disabled_at, disabled_reason, told.cause
    from webhook_subscriptions s
    cross join lateral (
      select case when s.disabled_at is null then 'webhook_failing:' else 'webhook_disabled:' end || s.id || ':'
        || to_char(coalesce(s.disabled_at, s.failing_since) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as cause
    ) told
    where deleted_at is null and ((disabled_reason is not null and not is_active) or (is_active and failing_since <= ${failingBefore}))
      and not exists (select 1 from alerts a where a.tenant_id = s.tenant_id and a.cause = told.cause)
    order by updated_at desc limit ${most}
  `.execute(tx)
  return rows
}

export type LaneRecord = { agent_id: string; completed: bigint; failed: bigint }

/** How the lanes did lately over all tenants: as many rows as there are lanes. */
export async function readLaneRecords(tx: Tx, since: Date): Promise<LaneRecord[]> {
  const { rows } = await sql<LaneRecord>`
    select agent_id, sum(completed)::bigint as completed, sum(failed)::bigint as failed
    from run_hours where hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
    group by agent_id having sum(failed) > 0
  `.execute(tx)
  return rows
}

/** The tenants that used a lane lately and have not been told of this cause. */
export async function findUsersOf(tx: Tx, agentId: string, since: Date, cause: string, most: number) {
  const { rows } = await sql<{ tenant_id: string }>`
    select distinct h.tenant_id from run_hours h
    where h.agent_id = ${agentId} and h.hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
      and not exists (select 1 from alerts a where a.tenant_id = h.tenant_id and a.cause = ${cause})
    limit ${most}
  `.execute(tx)
  return rows
}
