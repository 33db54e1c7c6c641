import { sql } from 'kysely'
import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { wilsonInterval } from '../../platform/wilson.ts'
import { readLanes } from './analytics.store.ts'

/** One lane's results on the benchmark suite. */
export type LaneBenchmark = {
  agent_id: string
  n: number
  /** Share of tasks that completed, passed all checks and were verified. */
  success_rate: number
  /** Mean score and its 95 % confidence interval, all within 0..1. The interval always has a width, even for a perfect score. */
  score: { mean: number; ci95: [low: number, high: number] }
  /** The median. */
  latency_ms: number
  /** What was charged for each verified success; null when there was none. */
  price_per_verified_success_usdc: number | null
}

export type BenchmarkRun = {
  suite_version: string
  mode: 'live' | 'offline'
  lanes: readonly LaneBenchmark[]
  /** What was measured; results without one are those of no lanes in particular. */
  fingerprint?: string
  /** What the tokens cost. */
  cost_usd?: number
}

export type BenchmarkDeps = {
  db: Db
  clock: Clock
  ids: Ids
  /** What this service would measure now: the suite, its lanes and their models. */
  fingerprint?: () => string
  /** Which of these processes have died. */
  findDeadInstances?(ids: readonly string[]): Promise<string[]>
}

export type Benchmark = ReturnType<typeof createBenchmark>

const MAX_STORED_RESULTS = 20
const OWN_RUNS_MS = 30 * 24 * 60 * 60 * 1000

/** How the lanes do: on the committed suite, whose results are stored, and in the runs of the tenant that asks. */
export function createBenchmark({ db, clock, ids, fingerprint, findDeadInstances = async () => [] }: BenchmarkDeps) {
  /** Nobody takes the turn before `until`. */
  const endTurn = (measured: string, holder: string, until: Date) =>
    db
      .updateTable('benchmark_turns')
      .set({ holder: null, until })
      .where('fingerprint', '=', measured)
      .where('holder', '=', holder)
      .execute()

  /** The newest results of the lanes as they are now, or else the newest. */
  const readSuite = async () => {
    const newest = await db
      .selectFrom('benchmarks')
      .selectAll()
      .orderBy(sql`fingerprint is not distinct from ${fingerprint?.() ?? null}`, 'desc')
      .orderBy('id', 'desc')
      .limit(1)
      .executeTakeFirst()
    if (!newest) return { as_of: null, suite_version: null, mode: null, lanes: [] }
    const { as_of, suite_version, mode, cost_usd } = newest
    const lanes = (newest.lanes as LaneBenchmark[]).map((lane) => ({
      ...lane,
      success_ci95: interval(lane.success_rate, lane.n),
    }))
    return { as_of: as_of.toISOString(), suite_version, mode, ...(cost_usd !== null && { cost_usd }), lanes }
  }

  /** Runs that were refused before any work do not count: they say nothing about a lane. */
  const readOwnRuns = async (tenantId: string) => {
    const until = clock.now()
    const since = new Date(until.getTime() - OWN_RUNS_MS)
    const sums = await readLanes(db, { tenantId, since, until, costs: {} })
    const lanes = sums.flatMap(({ agent_id, completed, failed, spend_micro }) => {
      const n = Number(completed + failed)
      if (n === 0) return []
      const success_rate = Number(completed) / n
      return {
        agent_id,
        n,
        success_rate: round(success_rate, 4),
        success_ci95: interval(success_rate, n),
        price_per_success_usdc: completed > 0n ? round(Number(spend_micro) / 1e6 / Number(completed), 6) : null,
      }
    })
    return { since: since.toISOString(), until: until.toISOString(), lanes }
  }

  return {
    save: ({ suite_version, mode, lanes, fingerprint: measured, cost_usd }: BenchmarkRun) =>
      db.transaction().execute(async (tx) => {
        const row = {
          id: ids.next('bmk'),
          suite_version,
          mode,
          as_of: clock.now(),
          lanes: JSON.stringify(lanes),
          fingerprint: measured ?? null,
          cost_usd: cost_usd ?? null,
        }
        await tx.insertInto('benchmarks').values(row).execute()
        await sql`delete from benchmarks where id in (select id from benchmarks order by id desc offset ${MAX_STORED_RESULTS})`.execute(
          tx,
        )
        await sql`delete from benchmark_turns where fingerprint = ${row.fingerprint} or until < ${clock.now()}::timestamptz - interval '30 days'`.execute(
          tx,
        )
      }),

    /** Every field of the suite is null or empty before its first run. */
    read: async ({ tenantId }: TenantCaller) => ({ ...(await readSuite()), own_runs: await readOwnRuns(tenantId) }),

    isMeasured: async (measured: string): Promise<boolean> =>
      (await db.selectFrom('benchmarks').select('id').where('fingerprint', '=', measured).executeTakeFirst()) !==
      undefined,

    /** A dead process holds no turn any more. */
    async takeTurn(measured: string, holder: string, until: Date, maxAttempts: number): Promise<boolean> {
      const turn = await db
        .selectFrom('benchmark_turns')
        .select('holder')
        .where('fingerprint', '=', measured)
        .executeTakeFirst()
      const dead = turn?.holder ? await findDeadInstances([turn.holder]) : []
      for (const instance of dead) await endTurn(measured, instance, clock.now())
      const { rows } = await sql<{ acquired: boolean }>`
        select take_benchmark_turn(${measured}, ${holder}, ${clock.now()}, ${until}, ${maxAttempts}) as acquired`.execute(
        db,
      )
      return rows[0]!.acquired
    },

    /** False when another process has taken the turn, because this one was late. */
    async renewTurn(measured: string, holder: string, until: Date): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable('benchmark_turns')
        .set({ until })
        .where('fingerprint', '=', measured)
        .where('holder', '=', holder)
        .executeTakeFirst()
      return numUpdatedRows > 0n
    },

    endTurn,
  }
}

function interval(rate: number, n: number): [low: number, high: number] {
  const { low, high } = wilsonInterval(rate, n)
  return [round(low, 4), round(high, 4)]
}

const round = (value: number, decimals: number) => Number(value.toFixed(decimals))
