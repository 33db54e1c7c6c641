/**
 * Wallet-paid runs, 64 in flight: against commit 0808496, a bare Fastify route, a plain row lock, 1,000 tenants, and two
 * workers. The sides take turns in every round.
 */
import { type BenchService, startBenchService } from '../support/bench-service.ts'
import { startChild } from '../support/child.ts'
import { countProcesses } from '../support/cpu.ts'
import { type LoadRequest, runLoad, startLoadGenerator } from '../support/load.ts'
import { checkOut } from '../support/old-checkout.ts'
import { formatFigure, median } from '../support/report.ts'
import type { RowLockResult } from '../support/row-lock.ts'
import { measureBareCost, measureRunCost, type RunCost } from '../support/run-cost.ts'
import { prepareTenants, prepareWalletRuns } from '../support/wallet-load.ts'
import { measureWrites, type Writes } from '../support/writes.ts'
import { type Figure, type Measurement, medianCost, medianRatio, totalMs, type WriteFigures } from './figure.ts'

export const OLD_COMMIT = '0808496'
const IN_FLIGHT = 64
/** V8 compiles the functions of a run until some 10,000 runs, so that many warm up each process, however long they take. */
const WARM_UP_RUNS = 12_000
const WORKERS = 2
const TENANTS = Number(process.env.BENCH_TENANTS ?? 1_000)

type Length = { seconds: number } | { count: number }
type Side = 'now' | 'old' | 'tenants' | 'workers' | 'fastify'

export async function measureWallet({ rounds, seconds }: { rounds: number; seconds: number }): Promise<Measurement> {
  const skipped: string[] = []
  const closers: (() => unknown)[] = []
  try {
    const generator = await startLoadGenerator()
    closers.push(generator.stop)
    const start = async (options: Parameters<typeof startBenchService>[0]) => {
      const service = await startBenchService(options)
      closers.push(() => service.stop())
      const request = await prepareWalletRuns(service, 100_000)
      return { service, request }
    }

    const now = await start({})
    const writes: WriteFigures[] = []
    const countWrites = async (name: string, { service, request }: typeof now, inFlight: number, count: number) => {
      const total = await measureWrites(service.query, () =>
        runLoad(generator, { port: service.port, inFlight, requests: [request], count }),
      )
      writes.push(perRun(name, total, count))
      return writes.at(-1)!
    }
    // Before there are other tenants: the bounds are those of one tenant in the database.
    await runLoad(generator, { port: now.service.port, inFlight: IN_FLIGHT, requests: [now.request], count: 1_280 })
    const many = await countWrites('now, 64 in flight', now, 64, 1_280)
    const some = await countWrites('now, 32 in flight', now, 32, 1_280)
    const one = await countWrites('now, one alone', now, 1, 200)

    const tenantRequests = await prepareTenants(now.service, TENANTS)
    const old = await startOld(skipped, closers, start)
    const workers = await startWorkers(skipped, start)
    const sample = await now.service.post('/api/run', JSON.parse(now.request.body!), now.request.headers)
    const bareFastify = await startChild<{ port: number }>('bare-fastify.ts', { body: sample.text })
    closers.push(bareFastify.stop)
    const rowLock = await startChild('row-lock.ts', { socketFolder: now.service.socketFolder, inFlight: IN_FLIGHT })
    closers.push(rowLock.stop)

    const load = (requests: LoadRequest[], length: Length, processes = 1) => ({
      requests,
      inFlight: IN_FLIGHT * processes,
      ...length,
    })
    const fastify = { pid: bareFastify.pid, port: bareFastify.ready.port }
    const sides: { side: Side; run: (length: Length) => Promise<RunCost> }[] = [
      { side: 'now', run: (length) => measureRunCost(now.service, generator, load([now.request], length)) },
      ...(old
        ? [
            {
              side: 'old' as const,
              run: (length: Length) => measureRunCost(old.service, generator, load([old.request], length)),
            },
          ]
        : []),
      { side: 'tenants', run: (length) => measureRunCost(now.service, generator, load(tenantRequests, length)) },
      ...(workers
        ? [
            {
              side: 'workers' as const,
              run: (length: Length) =>
                measureRunCost(workers.service, generator, load([workers.request], length, WORKERS)),
            },
          ]
        : []),
      { side: 'fastify', run: (length) => measureBareCost(fastify, generator, load([now.request], length)) },
    ]
    const results: Record<Side, RunCost[]> = { now: [], old: [], tenants: [], workers: [], fastify: [] }
    const rowLocks: RowLockResult[] = []
    for (const { side, run } of sides) await run({ count: WARM_UP_RUNS * (side === 'workers' ? WORKERS : 1) })
    for (let round = 0; round < rounds; round++) {
      for (const { side, run } of sides) results[side].push(await run({ seconds }))
      rowLocks.push(await rowLock.call<RowLockResult>({ seconds }))
    }

    // Between the entries of others the pages of an index split in the middle, which writes more.
    await countWrites(`now, 64 in flight, beside ${formatFigure(TENANTS)} tenants`, now, 64, 1_280)
    if (old) {
      await countWrites(`${OLD_COMMIT}, 64 in flight`, old, 64, 640)
      await countWrites(`${OLD_COMMIT}, 32 in flight`, old, 32, 640)
      await countWrites(`${OLD_COMMIT}, one alone`, old, 1, 100)
    }

    const throughput = (side: Side) => formatFigure(median(results[side].map(({ perSecond }) => perSecond)))
    const cpu = (side: Side) => formatFigure(median(results[side].map(totalMs)))
    const rowLockPerSecond = median(rowLocks.map(({ perSecond }) => perSecond))
    const nowPerSecond = median(results.now.map(({ perSecond }) => perSecond))
    const written = ({ inserted, updated, walRecords, walBytes, buffers }: WriteFigures) =>
      `${formatFigure(inserted)} / ${formatFigure(updated)} rows, ${formatFigure(walRecords)} records, ${formatFigure(walBytes)} bytes, ${formatFigure(buffers)} buffers`
    const counters = Math.max(
      ...[many, some].flatMap(({ inserted, updated, walRecords, walBytes, buffers }) => [
        inserted / 14,
        updated / 5,
        walRecords / 60,
        walBytes / 14_000,
        buffers / 200,
      ]),
    )
    const figures: Figure[] = [
      {
        id: 'counters',
        name: 'wallet-paid run, 32 and 64 in flight: the counter that uses most of its bound (14 / 5 rows, 60 records, 14 kB, 200 buffers)',
        value: counters,
        bar: { atMost: 1 },
        detail: `32: ${written(some)}; 64: ${written(many)}`,
      },
      {
        id: 'counters-alone',
        name: 'one alone: the counter that uses most of its bound (60 records, 350 buffers)',
        value: Math.max(one.walRecords / 60, one.buffers / 350),
        bar: { atMost: 1 },
        detail: written(one),
      },
      ...(old
        ? [
            {
              id: 'cpu',
              name: `CPU of a wallet-paid run, Node and PostgreSQL, against ${OLD_COMMIT}`,
              value: medianRatio(results.now, results.old, totalMs),
              bar: { atMost: 0.25 },
              detail: `${cpu('now')} ms against ${cpu('old')} ms; ${throughput('now')} against ${throughput('old')} runs a second`,
            },
          ]
        : []),
      {
        id: 'fastify',
        name: 'wallet-paid against a bare Fastify POST, a second',
        value: medianRatio(results.now, results.fastify, ({ perSecond }) => perSecond),
        bar: { atLeast: 0.12 },
        detail: `${throughput('now')} runs against ${throughput('fastify')} responses a second; ${cpu('now')} against ${cpu('fastify')} ms of CPU`,
      },
      {
        id: 'tenants',
        name: `one hot tenant against ${formatFigure(TENANTS)} tenants, a second`,
        value: medianRatio(results.now, results.tenants, ({ perSecond }) => perSecond),
        bar: { atLeast: 0.8 },
        detail: `${throughput('now')} against ${throughput('tenants')} runs a second; ${cpu('now')} against ${cpu('tenants')} ms of CPU`,
      },
      {
        id: 'row-lock',
        name: 'whole runs under one hot budget against a plain row lock, 64 in flight, a second',
        value: nowPerSecond / rowLockPerSecond,
        detail: `${throughput('now')} runs against ${formatFigure(rowLockPerSecond)} transactions a second`,
      },
      ...(workers
        ? [
            {
              id: 'workers',
              name: 'two workers, 64 in flight each: CPU of a run against one process with 64',
              value: medianRatio(results.workers, results.now, totalMs),
              bar: { atMost: 1.1 },
              detail: `${cpu('workers')} ms against ${cpu('now')} ms; ${throughput('workers')} against ${throughput('now')} runs a second`,
            },
          ]
        : []),
    ]
    const costs = [
      medianCost('wallet-paid run, one tenant', results.now),
      ...(old ? [medianCost(`the same at ${OLD_COMMIT}`, results.old)] : []),
      medianCost(`wallet-paid run, ${formatFigure(TENANTS)} tenants`, results.tenants),
      ...(workers ? [medianCost('wallet-paid run, two workers', results.workers)] : []),
      medianCost('bare Fastify POST', results.fastify),
    ]
    return { figures, costs, writes, skipped }
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}

async function startOld<Started>(
  skipped: string[],
  closers: (() => unknown)[],
  start: (options: { root: string }) => Promise<Started>,
): Promise<Started | undefined> {
  const checkout = checkOut(OLD_COMMIT)
  if ('reason' in checkout) {
    skipped.push(`comparison with ${OLD_COMMIT}: ${checkout.reason}`)
    return undefined
  }
  closers.push(checkout.remove)
  return start({ root: checkout.root })
}

async function startWorkers(
  skipped: string[],
  start: (options: { arguments: string[] }) => Promise<{ service: BenchService; request: LoadRequest }>,
) {
  try {
    const started = await start({ arguments: ['--workers', String(WORKERS)] })
    // A supervisor and two workers; a version that ignores the flag is one process.
    if (countProcesses(started.service.pid, started.service.postmasterPid) >= 3) return started
    skipped.push('two workers: this version has no --workers')
  } catch (error) {
    skipped.push(`two workers: ${(error as Error).message.slice(0, 300)}`)
  }
  return undefined
}

const perRun = (name: string, writes: Writes, count: number): WriteFigures => ({
  name,
  inserted: writes.inserted / count,
  updated: writes.updated / count,
  hot: writes.hot / count,
  deleted: writes.deleted / count,
  walRecords: writes.walRecords / count,
  walBytes: writes.walBytes / count,
  fullPageBytes: writes.fullPageBytes / count,
  buffers: writes.buffers / count,
  foreignKeyChecks: writes.foreignKeyChecks / count,
})
