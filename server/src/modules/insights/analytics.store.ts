import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export type RunSums = {
  runs: bigint
  completed: bigint
  blocked: bigint
  failed: bigint
  spend_micro: bigint
  cost_micro: bigint
}

export type AnalyticsFilter = { tenantId: string; since: Date; until: Date; costs: Record<string, number> }
export type LatencyBucket = { bucket: number; runs: bigint }

const sumColumns = sql`
  sum(runs)::bigint as runs, sum(completed)::bigint as completed, sum(blocked)::bigint as blocked, sum(failed)::bigint as failed,
  sum(spend_micro)::bigint as spend_micro, sum(cost_micro)::bigint as cost_micro`

const runHours = ({ tenantId, since, until, costs }: AnalyticsFilter) =>
  sql`tenant_run_hours(${tenantId}, ${since}, ${until}, ${JSON.stringify(costs)}::jsonb)`

export async function readLanes(tx: Tx, filter: AnalyticsFilter): Promise<(RunSums & { agent_id: string })[]> {
  const { rows } = await sql<RunSums & { agent_id: string }>`
    select agent_id, ${sumColumns} from ${runHours(filter)} group by agent_id order by agent_id
  `.execute(tx)
  return rows
}

/** Hours and days without runs are returned with zeros, so that a chart has no gaps. */
export async function readSeries(
  tx: Tx,
  filter: AnalyticsFilter,
  bucket: 'hour' | 'day',
): Promise<(RunSums & { at: Date })[]> {
  const { rows } = await sql<RunSums & { at: Date }>`
    select bucket.at, coalesce(sums.runs, 0) as runs, coalesce(sums.completed, 0) as completed, coalesce(sums.blocked, 0) as blocked,
           coalesce(sums.failed, 0) as failed, coalesce(sums.spend_micro, 0) as spend_micro, coalesce(sums.cost_micro, 0) as cost_micro
    from generate_series(${filter.since}::timestamptz, ${filter.until}::timestamptz, ('1 ' || ${bucket}::text)::interval) as bucket(at)
    left join (
      select date_trunc(${bucket}::text, hour, 'UTC') as at, ${sumColumns} from ${runHours(filter)} group by 1
    ) sums on sums.at = bucket.at
    order by bucket.at
  `.execute(tx)
  return rows
}

export async function readLatencies(tx: Tx, { tenantId, since, until }: AnalyticsFilter): Promise<LatencyBucket[]> {
  const { rows } = await sql<LatencyBucket>`
    select bucket, runs from tenant_latencies(${tenantId}, ${since}, ${until}) order by bucket
  `.execute(tx)
  return rows
}
