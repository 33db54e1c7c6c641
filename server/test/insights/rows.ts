import type { Database } from '../../src/platform/db.ts'
import type { Node } from '../tenants/test-node.ts'

export type SeedRun = {
  tenantId: string | null
  agentId?: string
  state?: 'completed' | 'failed' | 'blocked' | 'executing' | 'pending_approval'
  priceMicro?: bigint
  latencyMs?: number
  costUsd?: number
  at?: Date
}

/** Inserts a run as the service would have written it; a finished one with its end in the journal. */
export async function addRun(node: Node, database: Database, run: SeedRun): Promise<string> {
  const { tenantId, agentId = 'writer-v1', state = 'completed', priceMicro = 13_000n, latencyMs = 100 } = run
  const at = run.at ?? node.clock.now()
  const id = node.ids.next('run')
  const isOpen = state === 'executing' || state === 'pending_approval'
  const outcome = isOpen ? 'pending' : state
  const result = {
    execution: {
      latency_ms: latencyMs,
      ...(run.costUsd !== undefined && { usage: { input_tokens: 1, output_tokens: 1, cost_usd: run.costUsd } }),
    },
  }
  const columns = `id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result, created_at, deadline_at`
  const values = `$1, 'run', $2, '0x0', $3, 's', $4, 'run', $5, $6, 'h', '{}', '{}', $7, $8::jsonb, $9::timestamptz, $9::timestamptz`
  await database.pool.query(
    isOpen
      ? `insert into open_runs (${columns}, accounts, amounts, updated_at)
         select ${values}, case when $5 = 'executing' then '{}'::text[] end, case when $5 = 'executing' then '{}'::bigint[] end, $9`
      : `insert into ended_runs (${columns}) values (${values})`,
    [id, tenantId, agentId, node.ids.next('loop'), state, outcome, priceMicro.toString(), result, at],
  )
  if (!isOpen) {
    await database.pool.query('select journal_ended(run, $2) from ended_runs run where run.id = $1', [id, at])
  }
  return id
}

export type SeedBudget = { tenantId: string; budgetId: string; limitMicro: bigint; period: string; usedMicro: bigint }

/** Inserts a budget and its counter as governance stores them. */
export async function setBudget(database: Database, { tenantId, budgetId, limitMicro, period, usedMicro }: SeedBudget) {
  const scope = `budget:${tenantId}:${budgetId}`
  await database.pool.query(
    `insert into limit_definitions (scope, tenant_id, limit_micro, enforced, subject) values ($1, $2, $3, true, '{}')
     on conflict (scope) do nothing`,
    [scope, tenantId, limitMicro.toString()],
  )
  await database.pool.query(
    `insert into budgets (tenant_id, budget_id, scope, scope_type, scope_id, "window", on_breach, alert_thresholds, version, created_at, updated_at)
     values ($1, $2, $3, 'tenant', $1, $4, 'block', '[]', 1, now(), now()) on conflict do nothing`,
    [tenantId, budgetId, scope, period.split(':')[0]],
  )
  await database.pool.query(
    `insert into limits (scope, period, limit_micro, spent_micro) values ($1, $2, $3, $4)
     on conflict (scope, period) do update set spent_micro = excluded.spent_micro`,
    [scope, period, limitMicro.toString(), usedMicro.toString()],
  )
}
