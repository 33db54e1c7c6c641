import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { type LatencyBucket, type RunSums, readLanes, readLatencies, readSeries } from './analytics.store.ts'
import { endOfHour } from './hours.ts'
import type { LaneCosts } from './run-totals.ts'
import { countRunsWithoutSums, type NamedSpend, readSpendByName } from './spend.store.ts'
import { toSpendSums } from './spend.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

export const analyticsWindows = {
  '24h': { lengthMs: DAY_MS, bucket: 'hour' },
  '7d': { lengthMs: 7 * DAY_MS, bucket: 'day' },
  '30d': { lengthMs: 30 * DAY_MS, bucket: 'day' },
  '90d': { lengthMs: 90 * DAY_MS, bucket: 'day' },
} as const
export type AnalyticsWindow = keyof typeof analyticsWindows

/** Each bucket of the latency histogram is 1.1 times as wide as the one before; the SQL that fills it uses the same factor. */
const BUCKET_GROWTH = 1.1

/** The groups of each list, the largest first; GET /api/spend has all. */
export const MAX_ANALYTICS_GROUPS = 100
/** With more runs than this that would be added up one by one, the groups are left to GET /api/spend. */
export const MAX_SINGLE_RUNS = 100_000

export type Analytics = ReturnType<typeof createAnalytics>

export function createAnalytics(deps: { db: Db; clock: Clock; costs: LaneCosts }) {
  type Range = { tenantId: string; since: Date; until: Date }

  const readNamedSpend = async (range: Range, isByTag: boolean) => {
    const isReadable = (await countRunsWithoutSums(deps.db, range, isByTag)) <= MAX_SINGLE_RUNS
    const limit = MAX_ANALYTICS_GROUPS + 1
    return { isReadable, groups: isReadable ? await readSpendByName(deps.db, { ...range, limit, isByTag }) : [] }
  }

  /** Everything governed by who spent it, with the figures of GET /api/spend. */
  const readGroups = async (range: Range) => {
    const [byName, byTag] = await Promise.all([readNamedSpend(range, false), readNamedSpend(range, true)])
    const byDimension = Map.groupBy([...byName.groups, ...byTag.groups], ({ dimension }) => dimension)
    const listOf = (dimension: NamedSpend['dimension']) =>
      (byDimension.get(dimension) ?? []).slice(0, MAX_ANALYTICS_GROUPS)
    return {
      by_spender: listOf('spender').map(({ value, ...sums }) => ({ spender: value, ...toSpendSums(sums) })),
      by_team: listOf('team').map(({ value, ...sums }) => ({ team: value, ...toSpendSums(sums) })),
      by_key: listOf('key').map(({ value, ...sums }) => ({ key: value, ...toSpendSums(sums) })),
      by_tag: listOf('tag').map(({ tag, value, ...sums }) => ({ tag: tag!, value: value!, ...toSpendSums(sums) })),
      groups_complete:
        byName.isReadable &&
        byTag.isReadable &&
        [...byDimension.values()].every((list) => list.length <= MAX_ANALYTICS_GROUPS),
    }
  }

  return {
    async read(caller: TenantCaller, name: AnalyticsWindow) {
      const { lengthMs, bucket } = analyticsWindows[name]
      const until = deps.clock.now()
      // Windows begin at a whole hour or day, because totals are stored by the hour.
      const since = floorTo(new Date(until.getTime() - lengthMs), bucket === 'hour' ? HOUR_MS : DAY_MS)
      const filter = { tenantId: caller.tenantId, since, until: new Date(until.getTime() + 1), costs: deps.costs() }
      const [lanes, series, latencies, groups] = await Promise.all([
        readLanes(deps.db, filter),
        readSeries(deps.db, filter, bucket),
        readLatencies(deps.db, filter),
        readGroups({ tenantId: caller.tenantId, since, until: endOfHour(until) }),
      ])
      const totals = addSums(lanes)
      return {
        window: { name, since: since.toISOString(), until: until.toISOString(), bucket },
        totals: toSumsRecord(totals),
        by_agent: lanes.map(({ agent_id, ...sums }) => ({
          agent_id,
          ...toSumsRecord(sums),
          success_rate: successRate(sums),
        })),
        latency_ms: {
          p50: percentile(latencies, 0.5),
          p95: percentile(latencies, 0.95),
          p99: percentile(latencies, 0.99),
        },
        series: series.map(({ at, ...sums }) => ({ at: at.toISOString(), ...toSumsRecord(sums) })),
        ...groups,
      }
    },
  }
}

const floorTo = (at: Date, step: number) => new Date(Math.floor(at.getTime() / step) * step)

const ZERO_SUMS: RunSums = { runs: 0n, completed: 0n, blocked: 0n, failed: 0n, spend_micro: 0n, cost_micro: 0n }

export const addSums = (rows: readonly RunSums[]): RunSums =>
  rows.reduce(
    (sum, row) => ({
      runs: sum.runs + row.runs,
      completed: sum.completed + row.completed,
      blocked: sum.blocked + row.blocked,
      failed: sum.failed + row.failed,
      spend_micro: sum.spend_micro + row.spend_micro,
      cost_micro: sum.cost_micro + row.cost_micro,
    }),
    ZERO_SUMS,
  )

export const toSumsRecord = (sums: RunSums) => ({
  runs: Number(sums.runs),
  completed: Number(sums.completed),
  blocked: Number(sums.blocked),
  failed: Number(sums.failed),
  spend_usdc: usdcFromMicro(sums.spend_micro),
  cost_usd: usdcFromMicro(sums.cost_micro),
  margin_usd: usdcFromMicro(sums.spend_micro - sums.cost_micro),
})

const successRate = ({ completed, failed }: RunSums) =>
  completed + failed === 0n ? null : Math.round((Number(completed) / Number(completed + failed)) * 10_000) / 10_000

/** Runs are assumed to be spread evenly within a bucket, so the result is off by at most a tenth. */
export function percentile(buckets: readonly LatencyBucket[], share: number): number | null {
  const total = buckets.reduce((sum, { runs }) => sum + Number(runs), 0)
  let runsBefore = 0
  for (const { bucket, runs } of buckets) {
    const bucketFraction = (share * total - runsBefore) / Number(runs)
    if (bucketFraction <= 1) return Math.round(BUCKET_GROWTH ** (bucket + Math.max(0, bucketFraction)))
    runsBefore += Number(runs)
  }
  return null
}
