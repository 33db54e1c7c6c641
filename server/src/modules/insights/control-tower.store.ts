import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export type Waiting = {
  executing: number
  escalated_runs: number
  approvals_pending: number
  preauths_open: number
  preauths_escalated: number
  oldest_preauth: Date | null
  settlements_unknown: number
  webhooks_active: number
  webhooks_failing: number
  deliveries_pending: number
  oldest_delivery: Date | null
}

/** Everything that waits for something, each through an index that holds only what waits. */
export async function readWaiting(tx: Tx, tenantId: string): Promise<Waiting> {
  const { rows } = await sql<Waiting>`
    select
      (select count(*)::int from runs where tenant_id = ${tenantId} and outcome = 'pending' and state in ('executing', 'settling')) as executing,
      (select count(*)::int from runs where tenant_id = ${tenantId} and outcome = 'escalated') as escalated_runs,
      (select count(*)::int from approvals where tenant_id = ${tenantId} and status = 'pending') as approvals_pending,
      (select count(*)::int from preauths where tenant_id = ${tenantId} and status in ('open', 'in_use')) as preauths_open,
      (select count(*)::int from preauths where tenant_id = ${tenantId} and status = 'escalated') as preauths_escalated,
      (select min(created_at) from preauths where tenant_id = ${tenantId} and status in ('open', 'in_use')) as oldest_preauth,
      (select count(*)::int from settlements where tenant_id = ${tenantId} and state = 'unknown') as settlements_unknown,
      (select count(*)::int from webhook_subscriptions where tenant_id = ${tenantId} and deleted_at is null and is_active) as webhooks_active,
      (select count(*)::int from webhook_subscriptions where tenant_id = ${tenantId} and deleted_at is null
        and (failing_since is not null or disabled_reason is not null)) as webhooks_failing,
      d.pending as deliveries_pending, d.oldest as oldest_delivery
    from (
      select count(*)::int as pending, min(d.created_at) as oldest
      from webhook_subscriptions s join webhook_deliveries d on d.subscription_id = s.id and d.state = 'pending'
      where s.tenant_id = ${tenantId} and s.deleted_at is null and s.is_active
    ) d
  `.execute(tx)
  return rows[0]!
}
