import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BenchService, startBenchService } from '../bench/support/bench-service.ts'
import { growTables } from './grow-tables.ts'

/**
 * What an idle service asks its database in a minute, one scrape of /metrics included: a few statements, each of which
 * touches a few pages, however many runs are behind it. Counters, so they do not depend on the speed of the machine.
 */
const STATEMENTS_A_MINUTE = 480
const BUFFERS_A_MINUTE = 2_000
/** A table of so many rows has more pages than that, so a sweep that reads one whole does not pass. */
const ROWS = 100_000

let service: BenchService

/** A row or more in every table that grows with runs. */
async function writeSomeRows() {
  const { headers } = await service.onboard()
  const payer = await service.payer(10)
  for (let run = 0; run < 10; run++) {
    const response = await payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `run-${run}`, ...headers },
      body: JSON.stringify({ task: `Say ${run}.`, agent_id: 'comedian-v1' }),
    })
    expect(response.status, await response.text()).toBe(200)
  }
  for (let note = 0; note < 10; note++)
    await service.post(
      '/api/memory',
      { content: `Note ${note}.`, session_id: 's' },
      { ...headers, 'idempotency-key': `note-${note}` },
    )
}

type Idle = { statements: number; buffers: number; most: { calls: number; buffers: number; query: string }[] }

async function measureIdleMinute(): Promise<Idle> {
  const { query } = service
  // The head of an audit chain gets its receipt up to a minute after its last event; that is not idle.
  const uncommittedHeads = () => query('select 1 from audit_heads where seq > committed_seq')
  for (let second = 0; second < 120 && (await uncommittedHeads()).length > 0; second++) await delay(1_000)
  await query(`alter system set pg_stat_statements.track = 'top'`)
  await query('select pg_reload_conf()')
  await delay(3_000)
  await query('select bench.pg_stat_statements_reset()')
  await delay(61_000)
  expect((await service.get('/metrics')).status).toBe(200)
  // Statements of the service alone: this test is the superuser.
  const most = await query<{ calls: number; buffers: number; query: string }>(
    `select sum(calls)::int as calls, sum(shared_blks_hit + shared_blks_read)::int as buffers, left(query, 100) as query
     from bench.pg_stat_statements join pg_roles on pg_roles.oid = userid where rolname <> 'postgres' group by 3 order by 2 desc`,
  )
  await query(`alter system set pg_stat_statements.track = 'none'`)
  await query('select pg_reload_conf()')
  const sum = (read: (row: (typeof most)[number]) => number) => most.reduce((total, row) => total + read(row), 0)
  return { statements: sum(({ calls }) => calls), buffers: sum(({ buffers }) => buffers), most: most.slice(0, 8) }
}

// It waits for minutes and leaves its core idle, so it is a part of `npm run test:soak`.
describe.runIf(process.env.IDLE_COST === 'on')('an idle service', () => {
  beforeAll(async () => {
    service = await startBenchService()
    await writeSomeRows()
  })
  afterAll(() => service?.stop())

  test('an idle minute costs a few statements and pages, however many rows are behind it', async () => {
    const counts = await growTables(service.query, ROWS)
    expect(Object.values(counts).filter((count) => count >= ROWS).length).toBeGreaterThan(5)
    const idle = await measureIdleMinute()
    console.log(`idle minute: ${JSON.stringify(idle, null, 1)}`)

    expect(idle.statements).toBeLessThanOrEqual(STATEMENTS_A_MINUTE)
    expect(idle.buffers).toBeLessThanOrEqual(BUFFERS_A_MINUTE)
  }, 600_000)
})
