import { readBenchmarkSuite } from '../adapters/lanes/benchmark.ts'
import { startEmbeddedPostgres } from '../adapters/postgres/embedded.ts'
import { measureLanes } from '../app/benchmark.ts'
import { openLane } from '../app/lanes.ts'
import { readLaneChanges } from '../modules/catalog/catalog.store.ts'
import { buildPriceList } from '../modules/catalog/price-list.ts'
import { type BenchmarkRun, createBenchmark } from '../modules/insights/benchmark.ts'
import { verifyOutput } from '../modules/verification/verification.ts'
import { systemClock } from '../platform/clock.ts'
import type { Config } from '../platform/config.ts'
import { openDatabase } from '../platform/db.ts'
import { createIds } from '../platform/ids.ts'
import { createLog } from '../platform/log.ts'
import { migrate } from '../platform/migrate.ts'

/** Runs the benchmark suite on every lane and stores the results for `/api/benchmark`. May run beside a service. */
export async function benchmark(config: Config) {
  const log = createLog('error')
  const postgres = config.DATABASE_URL
    ? undefined
    : await startEmbeddedPostgres({ dataDir: config.COUNTERSIGN_DATA_DIR, log })
  const database = openDatabase(config.DATABASE_URL ?? postgres!.connection, {
    max: 2,
    log,
    direct: config.DATABASE_DIRECT_URL,
  })
  try {
    await migrate(database)
    const { lanes, fallback } = buildPriceList(await readLaneChanges(database.db))
    const catalog = { all: () => lanes, find: (id: string) => [...lanes, fallback].find((lane) => lane.agentId === id) }
    const lane = await openLane(config, catalog, systemClock)
    const deps = { lane, clock: systemClock, verify: verifyOutput }
    const run = await measureLanes(deps, [...lanes, fallback], readBenchmarkSuite())
    await createBenchmark({ db: database.db, clock: systemClock, ids: createIds(systemClock) }).save(run)
    console.log(formatResults(run))
  } finally {
    await database.close()
    await postgres?.stop()
  }
}

function formatResults({ suite_version, mode, lanes }: BenchmarkRun): string {
  const lines = lanes.map(({ agent_id, n, success_rate, score, latency_ms, price_per_verified_success_usdc }) =>
    [
      agent_id.padEnd(15),
      String(n).padStart(4),
      `${(success_rate * 100).toFixed(1)} %`.padStart(9),
      `${score.mean.toFixed(3)} [${score.ci95.map((bound) => bound.toFixed(3)).join(', ')}]`.padStart(23),
      `${latency_ms} ms`.padStart(9),
      String(price_per_verified_success_usdc ?? '-').padStart(11),
    ].join(' '),
  )
  const header = `Suite ${suite_version}, ${mode} lanes\n\nlane               n   success      score [95 % interval]   latency USDC/success`
  return [header, ...lines, '', 'Stored. See GET /api/benchmark.'].join('\n')
}
