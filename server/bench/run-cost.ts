/**
 * What one wallet-paid run costs: runs a second, CPU of Node and of PostgreSQL, rows, WAL and buffers. The service is a
 * process of its own with its embedded PostgreSQL; one tenant, one budget, one wallet; 64 runs in flight, and one alone.
 *
 * Run: npm run bench run-cost -- [--verbose] [--top]
 *   --verbose  rows by table and WAL records by type
 *   --top      the costliest statements and functions
 * BENCH_RUNS (1,600), BENCH_ALONE (200), BENCH_ROUNDS (3) and BENCH_IN_FLIGHT (64) set the size.
 */
import { startBenchService } from './support/bench-service.ts'
import { runLoad, startLoadGenerator } from './support/load.ts'
import { describeMachine, formatFigure, formatTable, median } from './support/report.ts'
import { measureRunCost, type RunCost } from './support/run-cost.ts'
import { prepareWalletRuns } from './support/wallet-load.ts'
import { measureWrites, type Writes } from './support/writes.ts'

const RUNS = Number(process.env.BENCH_RUNS ?? 1_600)
const ALONE = Number(process.env.BENCH_ALONE ?? 200)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const IN_FLIGHT = Number(process.env.BENCH_IN_FLIGHT ?? 64)
const TOP = 25

const verbose = process.argv.includes('--verbose')
const top = process.argv.includes('--top')

function printWrites(name: string, writes: Writes, count: number) {
  const perRun = (total: number) => formatFigure(total / count)
  if (verbose) {
    console.log(`\nRows by table, a run (${name})`)
    console.log(
      formatTable([
        ['table', 'inserted', 'updated', 'HOT', 'deleted', 'locked', 'toasted'],
        ...writes.tables.map((t) => [
          t.table,
          ...[t.inserted, t.updated, t.hot, t.deleted, t.locked, t.toasted].map(perRun),
        ]),
      ]),
    )
    console.log(`\nWAL records, a run (${name})`)
    console.log(
      formatTable([
        ['record', 'count', 'bytes'],
        ...writes.records.map((record) => [record.name, perRun(record.count), perRun(record.bytes)]),
      ]),
    )
  }
  if (top) {
    console.log(`\nStatements by time, a run (${name}); those inside functions are in the functions' figures too`)
    console.log(
      formatTable([
        ['ms', 'calls', 'buffers', 'statement'.padEnd(150)],
        ...writes.topStatements
          .slice(0, TOP)
          .map(({ ms, calls, buffers, text }) => [
            perRun(ms),
            perRun(calls),
            perRun(buffers),
            text.slice(0, 150).padEnd(150),
          ]),
      ]),
    )
    console.log(`\nFunctions by their own time, a run (${name}); statistics of idle sessions come up to 10 s late`)
    console.log(
      formatTable([
        ['function', 'calls', 'total ms', 'self ms'],
        ...writes.functions
          .slice(0, TOP)
          .map(({ name, calls, totalMs, selfMs }) => [name, ...[calls, totalMs, selfMs].map(perRun)]),
      ]),
    )
  }
}

const service = await startBenchService()
const generator = await startLoadGenerator()
try {
  const request = await prepareWalletRuns(service, 10_000)
  await runLoad(generator, { port: service.port, inFlight: IN_FLIGHT, requests: [request], count: 600 })
  const sizes = [
    { name: `${IN_FLIGHT} in flight`, inFlight: IN_FLIGHT, count: RUNS },
    { name: 'one alone', inFlight: 1, count: ALONE },
  ]
  const costs = sizes.map((): RunCost[] => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { inFlight, count }] of sizes.entries()) {
      costs[index]!.push(await measureRunCost(service, generator, { requests: [request], count, inFlight }))
    }
  }
  const writes: Writes[] = []
  for (const { inFlight, count } of sizes) {
    writes.push(
      await measureWrites(service.query, () =>
        runLoad(generator, { port: service.port, inFlight, requests: [request], count }),
      ),
    )
  }
  console.log(
    `${describeMachine()}\nMedians of ${ROUNDS} rounds; CPU and writes until the sequencer has drained; a run:\n`,
  )
  const row = (name: string, figure: (index: number) => string) => [name, ...sizes.map((_, index) => figure(index))]
  const cost = (name: string, value: (cost: RunCost) => number) =>
    row(name, (index) => formatFigure(median(costs[index]!.map(value))))
  const written = (name: string, value: (writes: Writes) => number) =>
    row(name, (index) => formatFigure(value(writes[index]!) / sizes[index]!.count))
  console.log(
    formatTable([
      ['', ...sizes.map(({ name, count }) => `${name} (${count} runs)`)],
      cost('runs a second', ({ perSecond }) => perSecond),
      cost('latency p50, ms', ({ p50Ms }) => p50Ms),
      cost('latency p99, ms', ({ p99Ms }) => p99Ms),
      cost('CPU of Node, ms', ({ nodeMs }) => nodeMs),
      cost('CPU of PostgreSQL, ms', ({ postgresMs }) => postgresMs),
      cost('  its background processes, ms', ({ postgresMs, roles }) => postgresMs - (roles.backends ?? 0)),
      cost('CPU of both, ms', ({ nodeMs, postgresMs }) => nodeMs + postgresMs),
      cost('CPU of the load generator, ms', ({ clientMs }) => clientMs),
      written('rows inserted', ({ inserted }) => inserted),
      written('rows updated', ({ updated }) => updated),
      written('  of these HOT', ({ hot }) => hot),
      written('rows deleted', ({ deleted }) => deleted),
      written('row locks', ({ locked }) => locked),
      written('rows of large values (TOAST)', ({ toasted }) => toasted),
      written('WAL records', ({ walRecords }) => walRecords),
      written('WAL bytes without full-page images', ({ walBytes }) => walBytes),
      written('full-page images', ({ fullPageImages }) => fullPageImages),
      written('bytes of full-page images', ({ fullPageBytes }) => fullPageBytes),
      written('buffers touched', ({ buffers }) => buffers),
      written('foreign-key checks', ({ foreignKeyChecks }) => foreignKeyChecks),
      written('statements sent', ({ statements }) => statements),
    ]),
  )
  for (const [index, { name, count }] of sizes.entries()) printWrites(name, writes[index]!, count)
} finally {
  generator.stop()
  await service.stop()
}
