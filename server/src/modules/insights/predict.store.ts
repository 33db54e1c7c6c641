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

export async function findUnknownSettlements(tx: Tx, createdBefore: Date, most: number) {
  return tx
    .selectFrom('settlements')
    .select(['id', 'tenant_id', 'run_id', 'amount_micro', 'attempts', 'created_at'])
    .where('state', '=', 'unknown')
    .where('tenant_id', 'is not', null)
    .where('created_at', '<=', createdBefore)
    .orderBy('updated_at')
    .limit(most)
    .execute()
}

export async function findFailingWebhooks(tx: Tx, failingBefore: Date, most: number) {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    url: string
    failures: number
    failing_since: Date | null
    disabled_at: Date | null
    disabled_reason: string | null
  }>`
    select id, tenant_id, url, failures, failing_since, disabled_at, disabled_reason
    from webhook_subscriptions
    where deleted_at is null and ((disabled_reason is not null and not is_active) or (is_active and failing_since <= ${failingBefore}))
    order by updated_at desc limit ${most}
  `.execute(tx)
  return rows
}

/** How the lanes did lately over all tenants, for each tenant that used them. */
export async function findDegradedLanes(tx: Tx, since: Date, most: number) {
  const { rows } = await sql<{ tenant_id: string; agent_id: string; completed: bigint; failed: bigint }>`
    with lanes as (
      select agent_id, sum(completed)::bigint as completed, sum(failed)::bigint as failed
      from run_hours where hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
      group by agent_id having sum(failed) > 0
    )
    select distinct h.tenant_id, l.agent_id, l.completed, l.failed
    from lanes l
    join run_hours h on h.agent_id = l.agent_id and h.hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
    limit ${most}
  `.execute(tx)
  return rows
}
