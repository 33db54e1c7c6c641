import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { type LatencyBucket, readLanes, readLatencies, readSeries, type Sums } from './analytics.store.ts'
import type { LaneCosts } from './run-facts.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export const analyticsWindows = {
  '24h': { length: DAY_MS, bucket: 'hour' },
  '7d': { length: 7 * DAY_MS, bucket: 'day' },
  '30d': { length: 30 * DAY_MS, bucket: 'day' },
  '90d': { length: 90 * DAY_MS, bucket: 'day' },
} as const
export type AnalyticsWindow = keyof typeof analyticsWindows

/** Each bucket of the histogram is a tenth wider than the one before; the SQL that fills it says the same. */
const GROWTH = 1.1

export type Analytics = ReturnType<typeof createAnalytics>

export function createAnalytics(deps: { db: Db; clock: Clock; costs: LaneCosts }) {
  return {
    async read(caller: TenantCaller, name: AnalyticsWindow) {
      const { length, bucket } = analyticsWindows[name]
      const until = deps.clock.now()
      // Windows begin with a whole hour or day, since that is what is summed.
      const since = floorTo(new Date(until.getTime() - length), bucket === 'hour' ? HOUR_MS : DAY_MS)
      const asked = { tenantId: caller.tenantId, since, until: new Date(until.getTime() + 1), costs: deps.costs() }
      const [lanes, series, latencies] = await Promise.all([
        readLanes(deps.db, asked),
        readSeries(deps.db, asked, bucket),
        readLatencies(deps.db, asked),
      ])
      return {
        window: { name, since: since.toISOString(), until: until.toISOString(), bucket },
        totals: sumsRecord(addUp(lanes)),
        by_agent: lanes.map(({ agent_id, ...sums }) => ({
          agent_id,
          ...sumsRecord(sums),
          success_rate: rateOf(sums),
        })),
        latency_ms: {
          p50: percentile(latencies, 0.5),
          p95: percentile(latencies, 0.95),
          p99: percentile(latencies, 0.99),
        },
        series: series.map(({ at, ...sums }) => ({ at: at.toISOString(), ...sumsRecord(sums) })),
      }
    },
  }
}

const floorTo = (at: Date, step: number) => new Date(Math.floor(at.getTime() / step) * step)

const nothing: Sums = { runs: 0n, completed: 0n, blocked: 0n, failed: 0n, spend_micro: 0n, cost_micro: 0n }

export const addUp = (rows: readonly Sums[]): Sums =>
  rows.reduce(
    (sum, row) => ({
      runs: sum.runs + row.runs,
      completed: sum.completed + row.completed,
      blocked: sum.blocked + row.blocked,
      failed: sum.failed + row.failed,
      spend_micro: sum.spend_micro + row.spend_micro,
      cost_micro: sum.cost_micro + row.cost_micro,
    }),
    nothing,
  )

export const sumsRecord = (sums: Sums) => ({
  runs: Number(sums.runs),
  completed: Number(sums.completed),
  blocked: Number(sums.blocked),
  failed: Number(sums.failed),
  spend_usdc: usdcFromMicro(sums.spend_micro),
  cost_usd: usdcFromMicro(sums.cost_micro),
  margin_usd: usdcFromMicro(sums.spend_micro - sums.cost_micro),
})

const rateOf = ({ completed, failed }: Sums) =>
  completed + failed === 0n ? null : Math.round((Number(completed) / Number(completed + failed)) * 10_000) / 10_000

/** Within a bucket the runs are taken as evenly spread, so the answer is off by a tenth at most. */
export function percentile(buckets: readonly LatencyBucket[], share: number): number | null {
  const total = buckets.reduce((sum, { runs }) => sum + Number(runs), 0)
  let before = 0
  for (const { bucket, runs } of buckets) {
    const within = (share * total - before) / Number(runs)
    if (within <= 1) return Math.round(GROWTH ** (bucket + Math.max(0, within)))
    before += Number(runs)
  }
  return null
}
