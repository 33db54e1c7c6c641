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

/** Counts of all unfinished work, each over the view that the list behind it reads; see docs/decisions/0043-one-definition-for-each-count.md. */
export async function readPendingWork(tx: Tx, tenantId: string): Promise<PendingWork> {
  const { rows } = await sql<PendingWork>`
    select
      (select count(*)::int from run_history where tenant_id = ${tenantId} and outcome in ('pending', 'approved') and progress = 'executing') as executing,
      (select count(*)::int from run_history where tenant_id = ${tenantId} and outcome = 'escalated') as escalated_runs,
      (select count(*)::int from approvals where tenant_id = ${tenantId} and status = 'pending') as approvals_pending,
      (select count(*)::int from rh_runs where tenant_id = ${tenantId} and state = 'pending_approval') as brokerage_approvals_pending,
      (select count(*)::int from active_preauths where tenant_id = ${tenantId}) as preauths_open,
      (select count(*)::int from preauths where tenant_id = ${tenantId} and status = 'escalated') as preauths_escalated,
      (select min(created_at) from active_preauths where tenant_id = ${tenantId}) as oldest_preauth,
      (select count(*)::int from open_settlements where tenant_id = ${tenantId} and state = 'unknown') as settlements_unknown,
      (select count(*)::int from webhook_states where tenant_id = ${tenantId} and is_active) as webhooks_active,
      (select count(*)::int from webhook_states where tenant_id = ${tenantId} and is_failing) as webhooks_failing,
      deliveries.pending as deliveries_pending, deliveries.oldest as oldest_delivery
    from (
      select count(*)::int as pending, min(created_at) as oldest from waiting_deliveries where tenant_id = ${tenantId}
    ) deliveries
  `.execute(tx)
  return rows[0]!
}

/** How many of the newest runs, payments and trades are looked at for names. */
const NEWEST_ROWS = 2_000
/** Of the sums of runs, which go further back. */
const NEWEST_SUMS = 10_000

/** Whether anything of this tenant names the agent or spender, as far as its newest runs and the newest sums of others tell. */
export async function isAgentNamed(tx: Tx, tenantId: string, name: string): Promise<boolean> {
  const { rows } = await sql<{ named: boolean }>`
    select exists (select from run_hours where tenant_id = ${tenantId} and agent_id = ${name})
      or exists (select from api_keys where tenant_id = ${tenantId} and spender = ${name})
      or exists (select from mandates where tenant_id = ${tenantId} and agent_id = ${name})
      or exists (select from preauths where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from rh_runs where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from open_runs where tenant_id = ${tenantId} and ${name} in (agent_id, spender))
      or exists (select from (select spender from spend_hours where tenant_id = ${tenantId} order by hour desc limit ${NEWEST_SUMS}) newest
                 where spender = ${name})
      or exists (select from (select agent_id, spender from ended_runs where tenant_id = ${tenantId} order by id desc limit ${NEWEST_ROWS}) newest
                 where ${name} in (agent_id, spender)) as named
  `.execute(tx)
  return rows[0]!.named
}

export type RunCounts = { runs: bigint; completed: bigint; blocked: bigint; failed: bigint }

/** How many rows GET /api/runs has since a whole hour, by outcome. */
export async function readRunCounts(tx: Tx, tenantId: string, since: Date): Promise<RunCounts> {
  const { rows } = await sql<RunCounts>`
    select runs, completed, blocked, failed from tenant_run_counts(${tenantId}, ${since}, first_id('run', ${since}::timestamptz - interval '1 hour'))
  `.execute(tx)
  return rows[0]!
}

/** How many approvals, overrides and trades the identity that asked has decided itself since a time. */
export async function countSelfApproved(tx: Tx, tenantId: string, since: Date): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from self_approvals where tenant_id = ${tenantId} and decided_at >= ${since}
  `.execute(tx)
  return rows[0]!.count
}

export type SelfApproval = {
  kind: 'approval' | 'override' | 'trade'
  id: string
  decided_at: Date
  agent_id: string | null
  amount_micro: bigint | null
}

export async function listSelfApproved(tx: Tx, tenantId: string, since: Date, limit: number): Promise<SelfApproval[]> {
  const { rows } = await sql<SelfApproval>`
    select kind, id, decided_at, agent_id, amount_micro from self_approvals
    where tenant_id = ${tenantId} and decided_at >= ${since} order by decided_at desc, id desc limit ${limit}
  `.execute(tx)
  return rows
}

export type SeenName = { name: string; kind: 'agent' | 'spender'; last_seen_at: Date | null }

/** The agents and spenders that the newest activity, keys and mandates of a tenant name, those seen last first. */
export async function listSeenNames(tx: Tx, tenantId: string, limit: number): Promise<SeenName[]> {
  const { rows } = await sql<SeenName>`
    with newest as (
      select agent_id, spender, created_at from run_history where tenant_id = ${tenantId} order by id desc limit ${NEWEST_ROWS}
    ), trades as (
      select agent_id, spender, created_at from rh_runs where tenant_id = ${tenantId} order by id desc limit ${NEWEST_ROWS}
    ), named as (
      select agent_id as name, 'agent' as kind, created_at as at from newest
      union all select spender, 'spender', created_at from newest where spender not like 'key:%' and spender <> 'unknown'
      union all select agent_id, 'agent', created_at from trades
      union all select spender, 'spender', created_at from trades
      union all select agent_id, 'agent', null from mandates where tenant_id = ${tenantId}
      union all select spender, 'spender', null from api_keys where tenant_id = ${tenantId}
    )
    select name, min(kind) as kind, max(at) as last_seen_at from named where name is not null and name <> ''
    group by name order by max(at) desc nulls last, name limit ${limit}
  `.execute(tx)
  return rows
}
