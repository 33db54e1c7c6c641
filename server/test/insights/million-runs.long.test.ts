import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { type Node, onboard, openNode, sendRequest } from '../tenants/test-node.ts'

const RUNS = 1_000_000
const BATCH = 50_000

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let key: string

/** One tenant's month of a million runs, with the totals as the sequencer would have written them. */
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
  node = await openNode(database)
  const tenant = await onboard(node)
  key = tenant.api_key
  const now = node.clock.now()
  for (let first = 0; first < RUNS; first += BATCH) {
    await database.pool.query(
      `with inserted as (
         insert into ended_runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result, created_at, deadline_at)
         select 'run_' || lpad(n::text, 12, '0'), 'run', $1, (array['writer-v1', 'coder-v1', 'analyst-v1'])[1 + n % 3], 's', 'loop_' || n, 'run',
                case when n % 50 = 0 then 'failed' when n % 20 = 0 then 'blocked' else 'completed' end,
                case when n % 50 = 0 then 'failed' when n % 20 = 0 then 'blocked' else 'completed' end,
                'h', '{}', '{}', 13000, jsonb_build_object('execution', jsonb_build_object('latency_ms', 20 + n % 2000)),
                $2::timestamptz - (($4 - n) * interval '2.5 seconds'), $2
         from generate_series($3::int, $3::int + $5 - 1) as n returning id)
       select count(*) from inserted`,
      [tenant.tenant_id, now, first, RUNS, BATCH],
    )
    await database.pool.query(
      `select fold_runs((select jsonb_agg(jsonb_build_object('tenant_id', tenant_id, 'kind', kind, 'agent_id', agent_id, 'state', state,
                'created_at', created_at, 'price_micro', price_micro, 'latency_ms', result#>'{execution,latency_ms}'))
              from runs where id >= 'run_' || lpad($1::text, 12, '0') and id < 'run_' || lpad($2::text, 12, '0')), '{}')`,
      [String(first), String(first + BATCH)],
    )
  }
  await database.pool.query('analyze')
}, 600_000)
afterAll(async () => {
  await node?.close()
  await database?.close()
  await scratch?.drop()
})

/** The median of 20 requests, to be independent of other load on the machine. */
async function measureMs(request: string): Promise<number> {
  const times: number[] = []
  for (let n = 0; n < 20; n += 1) {
    const startedAt = performance.now()
    const response = await sendRequest(node, request, undefined, { key })
    times.push(performance.now() - startedAt)
    expect(response.status).toBe(200)
  }
  const median = times.sort((a, b) => a - b)[10]!
  console.log(`${request}: ${Math.round(median)} ms at the median`)
  return median
}

test('a million runs are summed exactly', async () => {
  const { body } = await sendRequest(node, 'GET /api/analytics?window=30d', undefined, { key })
  const failed = RUNS / 50
  const blocked = RUNS / 20 - RUNS / 100
  expect(body.totals).toMatchObject({ runs: RUNS, failed, blocked, completed: RUNS - failed - blocked })
  expect(body.totals.spend_usdc).toBe(((RUNS - failed - blocked) * 13_000) / 1_000_000)
  expect(body.latency_ms.p50).toBeGreaterThan(900)
  expect(body.latency_ms.p50).toBeLessThan(1_150)
})

test('every request over a million runs takes less than 200 ms', async () => {
  for (const request of [
    'GET /api/analytics?window=30d',
    'GET /api/analytics?window=24h',
    'GET /api/control-tower',
    'GET /api/me/plan',
  ])
    expect(await measureMs(request)).toBeLessThan(200)
})
