import { sql } from 'kysely'
import { canonicalJson, sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Jobs } from '../../platform/jobs.ts'
import type { Notifications } from '../../platform/notifications.ts'
import { wilsonInterval } from '../../platform/wilson.ts'

/** What one lane was measured at. Whole numbers, so that a snapshot has one spelling and one hash. */
export type LaneMeasurement = {
  agent_id: string
  /** The median of the last thirty days; null without a completed run. */
  median_ms: number | null
  runs: number
  /** The lower bound, with 95 % confidence, of the share of receipts for verified work, in ten-thousandths. */
  success_low: number
  receipts: number
}

export type MeasurementSnapshot = { version: string; lanes: readonly LaneMeasurement[] }

export type RoutingMeasurements = Awaited<ReturnType<typeof createRoutingMeasurements>>

const HOUR_MS = 3_600_000
/** How often a process looks whether the hour's snapshot is still to be taken. */
const CHECK_MS = 60_000
const KEPT_SNAPSHOTS = 24 * 7
const CHANNEL = 'routing'

/** Freezes the lanes' measurements once an hour, and gives every process the newest snapshot. */
export async function createRoutingMeasurements(deps: {
  db: Db
  clock: Clock
  notifications: Pick<Notifications, 'listen'>
}) {
  let snapshot = await readNewest(deps.db)
  const reload = async () => {
    snapshot = await readNewest(deps.db)
  }
  deps.notifications.listen(CHANNEL, () => void reload().catch(() => {}))

  /** Takes the snapshot of this hour unless one process has. Two processes may try at once; the first row stays. */
  const takeSnapshot = async (): Promise<void> => {
    const hour = new Date(Math.floor(deps.clock.now().getTime() / HOUR_MS) * HOUR_MS)
    const { rows } = await sql`select from routing_snapshots where hour = ${hour}`.execute(deps.db)
    if (rows.length > 0) return reload()
    const lanes = await measureLanes(deps.db)
    await sql`
      insert into routing_snapshots (hour, version, lanes)
      values (${hour}, ${computeSnapshotVersion(lanes)}, ${JSON.stringify(lanes)}::jsonb) on conflict do nothing
    `.execute(deps.db)
    await sql`
      delete from routing_snapshots where hour in (select hour from routing_snapshots order by hour desc offset ${KEPT_SNAPSHOTS})
    `.execute(deps.db)
    await sql`select pg_notify(${CHANNEL}, '')`.execute(deps.db)
    await reload()
  }

  return {
    current: (): MeasurementSnapshot | undefined => snapshot,
    takeSnapshot,
    start(jobs: Jobs) {
      jobs.every('routing-snapshot', CHECK_MS, takeSnapshot)
      jobs.wake('routing-snapshot')
    },
  }
}

export const computeSnapshotVersion = (lanes: readonly LaneMeasurement[]): string =>
  sha256(canonicalJson(lanes)).slice('sha256:'.length, 'sha256:'.length + 10)

async function readNewest(db: Db): Promise<MeasurementSnapshot | undefined> {
  const row = await db
    .selectFrom('routing_snapshots')
    .select(['version', 'lanes'])
    .orderBy('hour', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { version: row.version, lanes: row.lanes as LaneMeasurement[] }
}

type MeasuredRow = {
  agent_id: string
  p50_ms: number | null
  runs: bigint | null
  receipts: bigint | null
  succeeded: bigint | null
}

async function measureLanes(db: Db): Promise<LaneMeasurement[]> {
  const { rows } = await sql<MeasuredRow>`
    select agent_id, stats.p50_ms, stats.runs, trust.receipts, trust.succeeded
    from lane_stats() stats full join lane_trust trust using (agent_id) order by agent_id
  `.execute(db)
  return rows.map((row) => {
    const receipts = Number(row.receipts ?? 0)
    const rate = receipts === 0 ? 0 : Number(row.succeeded) / receipts
    return {
      agent_id: row.agent_id,
      median_ms: row.p50_ms === null ? null : Math.round(row.p50_ms),
      runs: Number(row.runs ?? 0),
      success_low: Math.round(wilsonInterval(rate, receipts).low * 10_000),
      receipts,
    }
  })
}
