import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export type Sums = {
  runs: bigint
  completed: bigint
  blocked: bigint
  failed: bigint
  spend_micro: bigint
  cost_micro: bigint
}

export type Asked = { tenantId: string; since: Date; until: Date; costs: Record<string, number> }
export type LatencyBucket = { bucket: number; runs: bigint }

const sums = sql`
  sum(runs)::bigint as runs, sum(completed)::bigint as completed, sum(blocked)::bigint as blocked, sum(failed)::bigint as failed,
  sum(spend_micro)::bigint as spend_micro, sum(cost_micro)::bigint as cost_micro`

const hoursOf = ({ tenantId, since, until, costs }: Asked) =>
  sql`tenant_run_hours(${tenantId}, ${since}, ${until}, ${JSON.stringify(costs)}::jsonb)`

export async function readLanes(tx: Tx, asked: Asked): Promise<(Sums & { agent_id: string })[]> {
  const { rows } = await sql<Sums & { agent_id: string }>`
    select agent_id, ${sums} from ${hoursOf(asked)} group by agent_id order by agent_id
  `.execute(tx)
  return rows
}

/** Hours and days in which nothing happened are shown as such, so that a chart has no holes. */
export async function readSeries(tx: Tx, asked: Asked, bucket: 'hour' | 'day'): Promise<(Sums & { at: Date })[]> {
  const { rows } = await sql<Sums & { at: Date }>`
    select b.at, coalesce(s.runs, 0) as runs, coalesce(s.completed, 0) as completed, coalesce(s.blocked, 0) as blocked,
           coalesce(s.failed, 0) as failed, coalesce(s.spend_micro, 0) as spend_micro, coalesce(s.cost_micro, 0) as cost_micro
    from generate_series(${asked.since}::timestamptz, ${asked.until}::timestamptz, ('1 ' || ${bucket}::text)::interval) as b(at)
    left join (
      select date_trunc(${bucket}::text, hour, 'UTC') as at, ${sums} from ${hoursOf(asked)} group by 1
    ) s on s.at = b.at
    order by b.at
  `.execute(tx)
  return rows
}

export async function readLatencies(tx: Tx, { tenantId, since, until }: Asked): Promise<LatencyBucket[]> {
  const { rows } = await sql<LatencyBucket>`
    select bucket, runs from tenant_latencies(${tenantId}, ${since}, ${until}) order by bucket
  `.execute(tx)
  return rows
}

export async function readTotals(tx: Tx, asked: Asked): Promise<Sums> {
  const { rows } = await sql<Sums>`
    select coalesce(sum(runs), 0)::bigint as runs, coalesce(sum(completed), 0)::bigint as completed,
           coalesce(sum(blocked), 0)::bigint as blocked, coalesce(sum(failed), 0)::bigint as failed,
           coalesce(sum(spend_micro), 0)::bigint as spend_micro, coalesce(sum(cost_micro), 0)::bigint as cost_micro
    from ${hoursOf(asked)}
  `.execute(tx)
  return rows[0]!
}
