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
}

type Row = Omit<WatchedBudget, 'samples'> & { samples: [number, string][] | null }

/** The budgets whose present window has seen spending, with how they came there. `periods` names each window's present one. */
export async function readWatchedBudgets(
  tx: Tx,
  periods: Record<string, string>,
  most: number,
  tenantId?: string,
): Promise<WatchedBudget[]> {
  const { rows } = await sql<Row>`
    select b.tenant_id, b.budget_id, b.scope, b.scope_type, b.scope_id, b."window", d.limit_micro,
           l.period, l.spent_micro, l.reserved_micro, h.period as history_period, h.samples
    from budgets b
    join limit_definitions d on d.scope = b.scope
    join limits l on l.scope = b.scope and l.period = ${JSON.stringify(periods)}::jsonb->>b."window"
    left join spend_history h on h.scope = b.scope
    where ${tenantId === undefined ? sql`true` : sql`b.tenant_id = ${tenantId}`}
    order by b.tenant_id, b.budget_id limit ${most}
  `.execute(tx)
  return rows.map((row) => ({
    ...row,
    samples: (row.samples ?? []).map(([at, taken]): Sample => [at, BigInt(taken)]),
  }))
}

export async function keepHistories(
  tx: Tx,
  histories: readonly { scope: string; period: string; samples: readonly Sample[] }[],
  at: Date,
) {
  const rows = histories.map(({ scope, period, samples }) => ({
    scope,
    period,
    samples: samples.map(([when, taken]) => [when, taken.toString()]),
  }))
  await sql`
    insert into spend_history (scope, period, samples, updated_at)
    select scope, period, samples, ${at} from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as r(scope text, period text, samples jsonb)
    on conflict (scope) do update set period = excluded.period, samples = excluded.samples, updated_at = excluded.updated_at
  `.execute(tx)
}
