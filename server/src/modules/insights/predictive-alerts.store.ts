import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

/** Every query leaves out causes that have an alert already, so that the cost of a sweep depends on new causes and not on the whole history. */

export async function findOrphanedPreauths(tx: Tx, limit: number) {
  return tx
    .selectFrom('preauths as preauth')
    .select([
      'preauth.id',
      'preauth.tenant_id',
      'preauth.run_id',
      'preauth.agent_id',
      'preauth.spender',
      'preauth.team',
      'preauth.tags',
      'preauth.merchant_id',
      'preauth.amount_micro',
      'preauth.escalated_at',
    ])
    .where('preauth.status', '=', 'escalated')
    .where((where) =>
      where.not(
        where.exists(
          where
            .selectFrom('alerts as alert')
            .select('alert.id')
            .whereRef('alert.tenant_id', '=', 'preauth.tenant_id')
            .where('alert.cause', '=', sql<string>`'preauth_orphaned:' || preauth.id`),
        ),
      ),
    )
    .limit(limit)
    .execute()
}

/** Unknown settlements, which are those of open runs, without an alert, and those whose alert is a warning but that have become critical since. */
export async function findUnknownSettlements(tx: Tx, createdBefore: Date, criticalBefore: Date, limit: number) {
  const { rows } = await sql<{
    id: string
    tenant_id: string
    run_id: string
    amount_micro: bigint
    attempts: number
    created_at: Date
    agent_id: string
    spender: string | null
    team: string | null
    tags: unknown
  }>`
    select settlement.id, tenant_id, run.id as run_id, price_micro as amount_micro, attempts, created_at, agent_id, spender, team, tags
    from open_runs run cross join lateral (select run.terms->>'settlement_id' as id) settlement
    where payment_state = 'unknown' and tenant_id is not null and created_at <= ${createdBefore}
      and not exists (select 1 from alerts alert
        where alert.tenant_id = run.tenant_id and alert.cause = 'settlement_unknown:' || settlement.id
        and (alert.severity = 'critical' or run.created_at > ${criticalBefore}))
    order by updated_at limit ${limit}
  `.execute(tx)
  return rows
}

/** Subscriptions that have been failing for a while or were switched off, with one cause for each such period. */
export async function findFailingWebhooks(tx: Tx, failingBefore: Date, limit: number) {
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
    select id, tenant_id, url, failures, failing_since, disabled_at, disabled_reason, alert_cause.cause
    from webhook_subscriptions subscription
    cross join lateral (
      select case when subscription.disabled_at is null then 'webhook_failing:' else 'webhook_disabled:' end || subscription.id || ':'
        || to_char(coalesce(subscription.disabled_at, subscription.failing_since) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as cause
    ) alert_cause
    where deleted_at is null and ((disabled_reason is not null and not is_active) or (is_active and failing_since <= ${failingBefore}))
      and not exists (select 1 from alerts alert where alert.tenant_id = subscription.tenant_id and alert.cause = alert_cause.cause)
    order by updated_at desc limit ${limit}
  `.execute(tx)
  return rows
}

export type LaneOutcomes = { agent_id: string; completed: bigint; failed: bigint }

/** Completed and failed runs of each lane with failures, over all tenants. */
export async function readLaneOutcomes(tx: Tx, since: Date): Promise<LaneOutcomes[]> {
  const { rows } = await sql<LaneOutcomes>`
    select agent_id, sum(completed)::bigint as completed, sum(failed)::bigint as failed
    from run_hours where hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
    group by agent_id having sum(failed) > 0
  `.execute(tx)
  return rows
}

/** Tenants that used the lane since then and have no alert for this cause. */
export async function findLaneUsers(tx: Tx, agentId: string, since: Date, cause: string, limit: number) {
  const { rows } = await sql<{ tenant_id: string }>`
    select distinct hours.tenant_id from run_hours hours
    where hours.agent_id = ${agentId} and hours.hour >= date_trunc('hour', ${since}::timestamptz, 'UTC')
      and not exists (select 1 from alerts alert where alert.tenant_id = hours.tenant_id and alert.cause = ${cause})
    limit ${limit}
  `.execute(tx)
  return rows
}
