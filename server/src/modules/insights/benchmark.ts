import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { insertBenchmark, readNewest, readResults } from './benchmark.store.ts'
import { type BenchmarkResult, laneFigures } from './benchmark-figures.ts'

export type Benchmark = ReturnType<typeof createBenchmark>

/** The committed suite's results: kept by `main.ts benchmark`, told by `/api/benchmark`. */
export function createBenchmark(deps: { db: Db; clock: Clock; ids: Ids }) {
  const { db, clock, ids } = deps

  return {
    async keep(suiteVersion: string, results: readonly BenchmarkResult[]): Promise<void> {
      const benchmark = { id: ids.next('bmk'), suite_version: suiteVersion, as_of: clock.now() }
      const rows = results.map(({ agentId, taskId, latencyMs, priceMicro, ...rest }) => ({
        agent_id: agentId,
        task_id: taskId,
        latency_ms: latencyMs,
        price_micro: priceMicro,
        ...rest,
      }))
      await db.transaction().execute((tx) => insertBenchmark(tx, benchmark, rows))
    },

    /** The newest results; before the first there are none, and it says so. */
    async read() {
      const newest = await readNewest(db)
      if (!newest) return { as_of: null, suite_version: null, lanes: [] }
      const results = (await readResults(db, newest.id)).map(
        ({ agent_id, task_id, latency_ms, price_micro, ...rest }): BenchmarkResult => ({
          agentId: agent_id,
          taskId: task_id,
          latencyMs: latency_ms,
          priceMicro: price_micro,
          ...rest,
        }),
      )
      const lanes = Map.groupBy(results, (result) => result.agentId)
      return {
        as_of: newest.as_of.toISOString(),
        suite_version: newest.suite_version,
        lanes: [...lanes].map(([agentId, ofLane]) => laneFigures(agentId, ofLane)),
      }
    },
  }
}
