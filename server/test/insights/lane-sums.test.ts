import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { readLaneStats, readLaneTrust } from '../../src/modules/catalog/catalog.store.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { createReceiptsFixture } from '../receipts/helpers.ts'
import { type Node, onboard, openNode } from '../tenants/test-node.ts'
import { addRun } from './rows.ts'

const DAY_MS = 86_400_000

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let tenantId: string

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
})
beforeEach(async () => {
  await database.pool.query('truncate open_runs, ended_runs, journal, lane_hours, lane_window, lane_receipts cascade')
  node = await openNode(database)
  tenantId = (await onboard(node)).tenant_id
})
afterEach(() => node.close())
afterAll(async () => {
  await database?.close()
  await testDatabase?.drop()
})

/** What the statistics of a lane are by definition, from all of its runs. */
async function countRuns(agentId: string) {
  const { rows } = await database.pool.query(
    `select count(*)::int as runs,
            (count(*) filter (where state = 'completed'))::float8 / nullif(count(*) filter (where state in ('completed', 'failed')), 0) as success_rate,
            percentile_disc(0.5) within group (order by (result#>>'{execution,latency_ms}')::float8) as p50_ms,
            percentile_disc(0.95) within group (order by (result#>>'{execution,latency_ms}')::float8) as p95_ms
     from runs where agent_id = $1 and state in ('executing', 'completed', 'failed') and created_at >= $2`,
    [agentId, new Date(node.clock.now().getTime() - 30 * DAY_MS)],
  )
  return rows[0] as { runs: number; success_rate: number; p50_ms: number; p95_ms: number }
}

test("a lane's statistics are those of its runs, guests' included, before and after they are summed", async () => {
  for (let n = 0; n < 40; n += 1)
    await addRun(node, database, {
      tenantId: n % 4 === 0 ? null : tenantId,
      state: n % 10 === 3 ? 'failed' : n % 10 === 4 ? 'blocked' : n % 10 === 5 ? 'executing' : 'completed',
      latencyMs: 20 + n * n * 3,
      at: new Date(node.clock.now().getTime() - n * 6 * 3_600_000),
    })
  await addRun(node, database, { tenantId, agentId: 'coder-v1', state: 'blocked' })
  const exact = await countRuns('writer-v1')
  const check = async () => {
    const stats = await readLaneStats(database.db)
    expect(stats.map(({ agent_id }) => agent_id)).toEqual(['writer-v1'])
    expect(stats[0]).toMatchObject({ runs: exact.runs, success_rate: exact.success_rate })
    // Running runs have no latency yet; the others are in buckets that are off by a twentieth at most.
    expect(Math.abs(stats[0]!.p50_ms! / exact.p50_ms - 1)).toBeLessThan(0.06)
    expect(Math.abs(stats[0]!.p95_ms! / exact.p95_ms - 1)).toBeLessThan(0.06)
  }
  await check()
  await node.tick()
  expect((await database.pool.query('select 1 from journal')).rowCount).toBe(0)
  await check()
  await addRun(node, database, { tenantId })
  expect((await readLaneStats(database.db))[0]!.runs).toBe(exact.runs + 1)
  await node.tick()
  expect((await readLaneStats(database.db))[0]!.runs).toBe(exact.runs + 1)
})

test('runs leave the statistics of their lane after thirty days', async () => {
  await addRun(node, database, { tenantId, at: new Date(node.clock.now().getTime() - 29 * DAY_MS) })
  await addRun(node, database, { tenantId, state: 'failed' })
  await node.tick()
  expect(await readLaneStats(database.db)).toMatchObject([{ runs: 2, success_rate: 0.5 }])
  node.clock.advance(2 * DAY_MS)
  await node.tick()
  expect(await readLaneStats(database.db)).toMatchObject([{ runs: 1, success_rate: 0 }])
  node.clock.advance(30 * DAY_MS)
  await node.tick()
  expect(await readLaneStats(database.db)).toEqual([])
  expect((await database.pool.query('select 1 from lane_hours')).rowCount).toBe(0)
})

test("a lane's trust counts each receipt once, whether it is in the log or still waits", async () => {
  const fixture = createReceiptsFixture(database)
  await fixture.issue([fixture.draft(), fixture.draft({ kind: 'failure' }), fixture.draft({ kind: 'refund' })])
  const expected = [{ agent_id: 'analyst-v1', receipts: 2, succeeded: 1, last_seen_at: fixture.clock.now() }]
  expect(await readLaneTrust(database.db)).toEqual(expected)
  await fixture.sequencer.runOnce()
  expect(await readLaneTrust(database.db)).toEqual(expected)
  await fixture.issue([fixture.draft()])
  expect(await readLaneTrust(database.db)).toMatchObject([{ receipts: 3, succeeded: 2 }])
})

test('work that was taken although it failed verification counts as no success, in the log and before it', async () => {
  const fixture = createReceiptsFixture(database)
  await fixture.issue([
    fixture.draft(),
    fixture.draft({ verification: { verified: false, accepted_unverified: true } }),
    // The words of a caller are escaped in the receipt and change nothing.
    fixture.draft({ route: { recommended_agent_id: 'analyst-v1', reason: '"accepted_unverified":true' } }),
  ])
  expect(await readLaneTrust(database.db)).toMatchObject([{ receipts: 3, succeeded: 2 }])
  await fixture.sequencer.runOnce()
  expect(await readLaneTrust(database.db)).toMatchObject([{ receipts: 3, succeeded: 2 }])
})
