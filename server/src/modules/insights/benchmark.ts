import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'

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

export type BenchmarkRun = { suite_version: string; mode: 'live' | 'offline'; lanes: readonly LaneBenchmark[] }

export type Benchmark = ReturnType<typeof createBenchmark>

const MAX_STORED_RESULTS = 20

/** Results of the committed suite: saved by `main.ts benchmark`, served by `/api/benchmark`. */
export function createBenchmark({ db, clock, ids }: { db: Db; clock: Clock; ids: Ids }) {
  return {
    save: ({ suite_version, mode, lanes }: BenchmarkRun) =>
      db.transaction().execute(async (tx) => {
        const row = { id: ids.next('bmk'), suite_version, mode, as_of: clock.now(), lanes: JSON.stringify(lanes) }
        await tx.insertInto('benchmarks').values(row).execute()
        await sql`delete from benchmarks where id in (select id from benchmarks order by id desc offset ${MAX_STORED_RESULTS})`.execute(
          tx,
        )
      }),

    /** The newest results; every field is null or empty before the first benchmark. */
    async read() {
      const newest = await db.selectFrom('benchmarks').selectAll().orderBy('id', 'desc').limit(1).executeTakeFirst()
      if (!newest) return { as_of: null, suite_version: null, mode: null, lanes: [] }
      const { as_of, suite_version, mode, lanes } = newest
      return { as_of: as_of.toISOString(), suite_version, mode, lanes: lanes as LaneBenchmark[] }
    },
  }
}
