import { afterAll, beforeAll, expect, test } from 'vitest'
import { type BenchService, startBenchService } from '../bench/support/bench-service.ts'
import { type LoadGenerator, type LoadRequest, runLoad, startLoadGenerator } from '../bench/support/load.ts'
import { prepareWalletRuns } from '../bench/support/wallet-load.ts'
import { measureWrites } from '../bench/support/writes.ts'

type Budget = Partial<
  Record<'inserted' | 'updated' | 'deleted' | 'walRecords' | 'walBytes' | 'buffers' | 'foreignKeyChecks', number>
>

/**
 * What PostgreSQL may do for one wallet-paid run, the sequencer's part included: counters, so they do not depend on the
 * speed of the machine. WAL is counted without full-page images. Lower a bound when a change makes runs cheaper; raise
 * one only with a reason in the commit.
 */
const BUDGETS: { name: string; inFlight: number; runs: number; budget: Budget }[] = [
  {
    name: '32 in flight',
    inFlight: 32,
    runs: 640,
    budget: {
      inserted: 8,
      updated: 2,
      deleted: 2,
      walRecords: 40,
      walBytes: 11.5 * 1024,
      buffers: 120,
      foreignKeyChecks: 1,
    },
  },
  {
    name: 'one alone',
    inFlight: 1,
    runs: 60,
    budget: { walRecords: 45, buffers: 180 },
  },
]

let service: BenchService
let generator: LoadGenerator
let request: LoadRequest

beforeAll(async () => {
  // The WAL and the statistics belong to a whole server, so this test has its own.
  service = await startBenchService()
  generator = await startLoadGenerator()
  request = await prepareWalletRuns(service, 100)
  // Connections, plans and caches of both processes.
  await runLoad(generator, { port: service.port, inFlight: 32, requests: [request], count: 200 })
}, 120_000)

afterAll(async () => {
  generator?.stop()
  await service?.stop()
})

test.each(BUDGETS)(
  'a wallet-paid run, $name, stays within its budget of rows, WAL and buffers',
  async ({ name, inFlight, runs, budget }) => {
    // Removes the dead rows of the load before, as the sequencer does every few seconds, later on a busy machine.
    await service.query('vacuum open_runs, journal')
    const writes = await measureWrites(service.query, () =>
      runLoad(generator, { port: service.port, inFlight, requests: [request], count: runs }),
    )
    const figures = Object.keys(budget) as (keyof Budget)[]
    const perRun = Object.fromEntries(
      figures.map((figure) => [figure, Math.round((writes[figure] / runs) * 100) / 100]),
    )
    const tables = writes.tables
      .filter(({ inserted, updated }) => inserted + updated > runs / 4)
      .map(({ table, inserted, updated }) => `${table} ${(inserted / runs).toFixed(1)}/${(updated / runs).toFixed(1)}`)
    console.log(`wallet-paid run, ${name}:`, JSON.stringify(perRun), `inserted/updated: ${tables.join(', ')}`)
    const exceeded = figures.filter((figure) => perRun[figure]! > budget[figure]!)
    expect(exceeded.map((figure) => `${figure}: ${perRun[figure]} > ${budget[figure]}`)).toEqual([])
  },
  120_000,
)

test('a step finds its run by the index, also when its plan was made while no run was open', async () => {
  await service.query('vacuum open_runs')
  await service.query('begin')
  const items = ['run_a', 'run_b'].map((run_id) => ({ run_id, admission: 'adm_x' }))
  const refusals: string[] = []
  for (const step of ['keep_runs', 'complete_runs', 'abandon_runs']) {
    const [row] = await service.query<{ results: { message: string }[] }>(
      `select run_steps($1, '{t,t}', $2, '{}', '{}', false, false) as results`,
      [[step, step], JSON.stringify(items)],
    )
    refusals.push(...row!.results.map(({ message }) => message))
  }
  const rows = await service.query(
    `select seq_scan::int, idx_scan > 0 as used_index from pg_stat_xact_user_tables where relname = 'open_runs'`,
  )
  await service.query('rollback')
  expect(refusals).toEqual(['run_taken_over', 'run_taken_over', ...Array(4).fill('run_not_open')])
  expect(rows).toEqual([{ seq_scan: 0, used_index: true }])
})
