import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { Sample } from './forecast.ts'

export type WatchedBudget = {
  tenant_id: string
  budget_id: string
  scope: string
  scope_type: string
  scope_id: string
  window: 'day' | 'week' | 'month' | 'total'
  limit_micro: bigint
  period: string
  spent_micro: bigint
  reserved_micro: bigint
  history_period: string | null
  samples: Sample[]
  applies_to: string[]
}

type Row = Omit<WatchedBudget, 'samples'> & { samples: [number, string][] | null }

/**
 * Budgets with their samples: all of a tenant, or those of all tenants with spending in their current window. `periods` holds
 * the current period of each window.
 */
export async function readWatchedBudgets(
  tx: Tx,
  periods: Record<string, string>,
  limit: number,
  tenantId?: string,
): Promise<WatchedBudget[]> {
  const { rows } = await sql<Row>`
    select budget.tenant_id, budget.budget_id, budget.scope, budget.scope_type, budget.scope_id, budget."window", definition.limit_micro, budget.applies_to,
           ${JSON.stringify(periods)}::jsonb->>budget."window" as period, coalesce(counter.spent_micro, 0) as spent_micro, coalesce(counter.reserved_micro, 0) as reserved_micro,
           history.period as history_period, history.samples
    from budgets budget
    join limit_definitions definition on definition.scope = budget.scope
    left join limits counter on counter.scope = budget.scope and counter.period = ${JSON.stringify(periods)}::jsonb->>budget."window"
    left join spend_history history on history.scope = budget.scope
    where budget."window" <> 'run' and ${tenantId === undefined ? sql`counter.scope is not null` : sql`budget.tenant_id = ${tenantId}`}
    order by budget.tenant_id, budget.budget_id limit ${limit}
  `.execute(tx)
  return rows.map((row) => ({
    ...row,
    samples: (row.samples ?? []).map(([at, usedMicro]): Sample => [at, BigInt(usedMicro)]),
  }))
}

export async function saveHistories(
  tx: Tx,
  histories: readonly { scope: string; period: string; samples: readonly Sample[] }[],
  at: Date,
) {
  const rows = histories.map(({ scope, period, samples }) => ({
    scope,
    period,
    samples: samples.map(([sampledAt, usedMicro]) => [sampledAt, usedMicro.toString()]),
  }))
  await sql`
    insert into spend_history (scope, period, samples, updated_at)
    select scope, period, samples, ${at} from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as history(scope text, period text, samples jsonb)
    on conflict (scope) do update set period = excluded.period, samples = excluded.samples, updated_at = excluded.updated_at
  `.execute(tx)
}
