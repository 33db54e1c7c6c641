import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export type PendingWork = {
  executing: number
  escalated_runs: number
  approvals_pending: number
  brokerage_approvals_pending: number
  preauths_open: number
  preauths_escalated: number
  oldest_preauth: Date | null
  settlements_unknown: number
  webhooks_active: number
  webhooks_failing: number
  deliveries_pending: number
  oldest_delivery: Date | null
}

/** Counts of all unfinished work. Each is read through a partial index that holds only unfinished rows. */
export async function readPendingWork(tx: Tx, tenantId: string): Promise<PendingWork> {
  const { rows } = await sql<PendingWork>`
    select
      (select count(*)::int from open_runs where tenant_id = ${tenantId} and outcome = 'pending' and state in ('executing', 'settling')) as executing,
      (select count(*)::int from open_runs where tenant_id = ${tenantId} and outcome = 'escalated') as escalated_runs,
      (select count(*)::int from approvals where tenant_id = ${tenantId} and status = 'pending') as approvals_pending,
      (select count(*)::int from rh_runs where tenant_id = ${tenantId} and state = 'pending_approval') as brokerage_approvals_pending,
      (select count(*)::int from preauths where tenant_id = ${tenantId} and status in ('open', 'in_use')) as preauths_open,
      (select count(*)::int from preauths where tenant_id = ${tenantId} and status = 'escalated') as preauths_escalated,
      (select min(created_at) from preauths where tenant_id = ${tenantId} and status in ('open', 'in_use')) as oldest_preauth,
      (select count(*)::int from open_runs where tenant_id = ${tenantId} and payment_state = 'unknown') as settlements_unknown,
      (select count(*)::int from webhook_subscriptions where tenant_id = ${tenantId} and deleted_at is null and is_active) as webhooks_active,
      (select count(*)::int from webhook_subscriptions where tenant_id = ${tenantId} and deleted_at is null
        and (failing_since is not null or disabled_reason is not null)) as webhooks_failing,
      deliveries.pending as deliveries_pending, deliveries.oldest as oldest_delivery
    from (
      select count(*)::int as pending, min(delivery.created_at) as oldest
      from webhook_subscriptions subscription
      join webhook_deliveries delivery on delivery.subscription_id = subscription.id and delivery.state = 'pending'
      where subscription.tenant_id = ${tenantId} and subscription.deleted_at is null and subscription.is_active
    ) deliveries
  `.execute(tx)
  return rows[0]!
}

/** Whether anything of this tenant names the agent or spender. For a name that nothing uses it reads all of its rows. */
export async function isAgentNamed(tx: Tx, tenantId: string, name: string): Promise<boolean> {
  const { rows } = await sql<{ named: boolean }>`
    select exists (select from run_hours where tenant_id = ${tenantId} and agent_id = ${name})
      or exists (select from api_keys where tenant_id = ${tenantId} and spender = ${name})
      or exists (select from mandates where tenant_id = ${tenantId} and agent_id = ${name})
      or exists (select from preauths where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from rh_runs where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from open_runs where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from ended_runs where tenant_id = ${tenantId} and ${name} in (agent_id, spender)) as named
  `.execute(tx)
  return rows[0]!.named
}

/** How many approvals, overrides and trades the identity that asked has decided itself since a time. */
export async function countSelfApproved(tx: Tx, tenantId: string, since: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select (select count(*)::int from approvals where tenant_id = ${tenantId} and self_approved and resolved_at >= ${since})
      + (select count(*)::int from overrides where tenant_id = ${tenantId} and self_approved and created_at >= ${since})
      + (select count(*)::int from rh_runs where tenant_id = ${tenantId} and self_approved and approved_at >= ${since}) as count
  `.execute(tx)
  return rows[0]!.count
}
