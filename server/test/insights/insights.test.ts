import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { periodOf } from '../../src/modules/governance/counters/windows.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { readAudits } from '../journal.ts'
import { type Node, onboard, openNode, sendRequest } from '../tenants/test-node.ts'
import { addRun, setBudget } from './rows.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let key: string
let tenantId: string

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
  node = await openNode(database)
})
beforeEach(async () => {
  const tenant = await onboard(node)
  key = tenant.api_key
  tenantId = tenant.tenant_id
})
afterAll(async () => {
  await node?.close()
  await database?.close()
  await scratch?.drop()
})

const readAnalytics = async (query = '') =>
  (await sendRequest(node, `GET /api/analytics${query}`, undefined, { key })).body
const readTower = async (apiKey = key) =>
  (await sendRequest(node, 'GET /api/control-tower', undefined, { key: apiKey })).body

test('analytics match the runs, before and after they are added to the totals', async () => {
  const hoursAgo = (hours: number) => new Date(node.clock.now().getTime() - hours * 3_600_000)
  for (const latencyMs of [50, 100, 200, 400]) await addRun(node, database, { tenantId, latencyMs, at: hoursAgo(3) })
  await addRun(node, database, { tenantId, agentId: 'coder-v1', priceMicro: 25_000n, latencyMs: 1_000 })
  await addRun(node, database, { tenantId, agentId: 'coder-v1', state: 'failed' })
  await addRun(node, database, { tenantId, state: 'blocked' })
  await addRun(node, database, { tenantId, state: 'executing' })
  await addRun(node, database, { tenantId, state: 'pending_approval' })
  const stranger = await onboard(node)
  await addRun(node, database, { tenantId: stranger.tenant_id })

  const before = await readAnalytics('?window=24h')
  expect(before.totals).toEqual({
    runs: 9,
    completed: 5,
    blocked: 1,
    failed: 1,
    spend_usdc: 0.077,
    cost_usd: 0.015,
    margin_usd: 0.062,
  })
  expect(before.by_agent).toMatchObject([
    { agent_id: 'coder-v1', runs: 2, completed: 1, failed: 1, spend_usdc: 0.025, success_rate: 0.5 },
    { agent_id: 'writer-v1', runs: 7, completed: 4, blocked: 1, spend_usdc: 0.052, success_rate: 1 },
  ])
  expect(before.series).toHaveLength(25)
  const busy = before.series.filter((hour: { runs: number }) => hour.runs > 0)
  expect(busy.map((hour: { at: string; completed: number }) => [hour.at, hour.completed])).toEqual([
    ['2026-11-16T12:00:00.000Z', 4],
    ['2026-11-16T15:00:00.000Z', 1],
  ])
  expect(before.latency_ms.p50).toBeGreaterThanOrEqual(180)
  expect(before.latency_ms.p50).toBeLessThanOrEqual(220)
  expect(before.latency_ms.p99).toBeGreaterThan(900)

  await node.tick()
  expect(await readAnalytics('?window=24h')).toEqual(before)
  const { rows } = await database.pool.query('select sum(runs)::int as runs from run_hours where tenant_id = $1', [
    tenantId,
  ])
  expect(rows[0].runs).toBe(7)
  await node.tick()
  expect(await readAnalytics('?window=24h')).toEqual(before)
})

test('the margin uses the reported cost of each run, not the estimate of the price list', async () => {
  await addRun(node, database, { tenantId, agentId: 'coder-v1', priceMicro: 25_000n, costUsd: 0.0123 })
  await addRun(node, database, { tenantId, agentId: 'coder-v1', priceMicro: 25_000n, costUsd: 0 })
  const before = await readAnalytics('?window=24h')
  expect(before.totals).toMatchObject({ spend_usdc: 0.05, cost_usd: 0.0123, margin_usd: 0.0377 })
  await node.tick()
  expect(await readAnalytics('?window=24h')).toEqual(before)
})

test('a window excludes older runs, and a tenant without runs has zeros', async () => {
  await addRun(node, database, { tenantId, at: new Date(node.clock.now().getTime() - 40 * 86_400_000) })
  await node.tick()
  expect((await readAnalytics('?window=30d')).totals.runs).toBe(0)
  expect((await readAnalytics('?window=90d')).totals.runs).toBe(1)
  const empty = await readAnalytics()
  expect(empty).toMatchObject({ window: { name: '7d', bucket: 'day' }, by_agent: [], latency_ms: { p50: null } })
  expect((await sendRequest(node, 'GET /api/analytics?window=1y', undefined, { key })).status).toBe(400)
  expect((await sendRequest(node, 'GET /api/analytics')).status).toBe(401)
})

test('a run whose approval was rejected is counted as blocked, once', async () => {
  const waiting = await addRun(node, database, { tenantId, state: 'pending_approval' })
  const failed = await addRun(node, database, { tenantId, state: 'failed' })
  await node.tick()
  expect((await readAnalytics('?window=24h')).totals).toMatchObject({ runs: 2, blocked: 0, failed: 1 })
  // The approval of the failed run expires too, which must not count the run a second time.
  for (const runId of [waiting, failed])
    await database.pool.query(
      `select end_refused(jsonb_populate_record(null::approvals, jsonb_build_object('run_id', $1::text)), $2)`,
      [runId, node.clock.now()],
    )
  const expectedTotals = { runs: 2, blocked: 1, failed: 1 }
  expect((await readAnalytics('?window=24h')).totals).toMatchObject(expectedTotals)
  await node.tick()
  expect((await readAnalytics('?window=24h')).totals).toMatchObject(expectedTotals)
})

test('usage of the plan counts paid runs of this month', async () => {
  await addRun(node, database, { tenantId })
  await addRun(node, database, { tenantId, state: 'blocked' })
  await addRun(node, database, { tenantId, at: new Date('2026-10-31T23:59:00Z') })
  const readUsage = async () => (await sendRequest(node, 'GET /api/me/plan', undefined, { key })).body.usage
  expect(await readUsage()).toMatchObject({ runs: 1, spend_usdc: 0.013 })
  await node.tick()
  expect(await readUsage()).toMatchObject({ runs: 1, spend_usdc: 0.013 })
})

test('the control tower shows pending work and budgets at risk of this tenant only', async () => {
  await addRun(node, database, { tenantId })
  await addRun(node, database, { tenantId, state: 'executing' })
  const period = periodOf('day', node.clock.now())
  await setBudget(database, { tenantId, budgetId: 'nearly', limitMicro: 100_000n, period, usedMicro: 90_000n })
  await setBudget(database, { tenantId, budgetId: 'fine', limitMicro: 100_000n, period, usedMicro: 10_000n })
  await database.pool.query(
    `insert into preauths (id, tenant_id, run_id, status, agent_id, merchant_id, merchant, amount_micro, asset, network, action_hash, policy_results, ttl_seconds, asked_by, created_at)
     values ($1, $2, $3, 'open', 'writer-v1', 'm', '{}', 10000, 'a', 'n', 'h', '[]', 60, 'k', $4)`,
    [node.ids.next('pa'), tenantId, node.ids.next('run'), new Date(node.clock.now().getTime() - 90_000)],
  )
  await sendRequest(node, 'POST /api/predictive/alerts', { severity: 'info', type: 't', message: 'm' }, { key })
  await sendRequest(node, `PATCH /api/admin/tenants/${tenantId}`, { plan: 'builder' }, { admin: true })
  const view = await readTower()
  expect(view).toMatchObject({
    as_of: node.clock.now().toISOString(),
    spend: { today_usdc: 0.013, month_usdc: 0.013 },
    // The pre-authorised payment is a row of GET /api/runs, and counts as one.
    runs: { today: 3, completed_today: 1, executing: 1, escalated: 0 },
    approvals_pending: 0,
    brokerage_approvals_pending: 0,
    preauth: { open: 1, escalated: 0, oldest_age_s: 90 },
    frozen_agents: [],
    log_checkpoint: 'a checkpoint',
  })
  expect(view.budgets_at_risk.map((budget: { budget_id: string }) => budget.budget_id)).toEqual(['nearly'])
  expect(view.alerts).toHaveLength(1)
  const stranger = await onboard(node)
  expect(await readTower(stranger.api_key)).toMatchObject({
    spend: { today_usdc: 0 },
    runs: { today: 0, executing: 0 },
    preauth: { open: 0, oldest_age_s: null },
    budgets_at_risk: [],
    alerts: [],
  })
})

test('a frozen agent is frozen in every process at once, until it is unfrozen', async () => {
  const otherNode = await openNode(database)
  const isFrozenOnBoth = async (agentId: string) =>
    Promise.all([node, otherNode].map(({ frozen }) => frozen.isFrozen(tenantId, agentId)))
  expect(await isFrozenOnBoth('writer-v1')).toEqual([false, false])
  const readVersion = async () => {
    const { rows } = await database.pool.query('select version from governance_versions where tenant_id = $1', [
      tenantId,
    ])
    return Number(rows[0]?.version ?? 0)
  }
  const before = await readVersion()
  const body = { action: 'freeze', agent_id: 'writer-v1', reason: 'It buys too much.' }
  const freezeResponse = await sendRequest(node, 'POST /api/control-tower', body, { key })
  expect(freezeResponse.status).toBe(200)
  expect(freezeResponse.body.frozen_agents).toMatchObject([{ agent_id: 'writer-v1', reason: 'It buys too much.' }])
  expect(await node.frozen.isFrozen(tenantId, 'writer-v1')).toBe(true)
  await expect.poll(() => isFrozenOnBoth('writer-v1')).toEqual([true, true])
  expect(await isFrozenOnBoth('coder-v1')).toEqual([false, false])
  expect(await node.frozen.findFrozen(tenantId, ['coder-v1', 'writer-v1'])).toEqual({
    agentId: 'writer-v1',
    reason: 'It buys too much.',
  })
  expect(await node.frozen.findFrozen(tenantId, ['coder-v1'])).toBeUndefined()
  expect(await node.frozen.findFrozen(tenantId, [])).toEqual({ agentId: null })
  expect(await readVersion()).toBe(before + 1)
  const stranger = await onboard(node)
  expect(await node.frozen.isFrozen(stranger.tenant_id, 'writer-v1')).toBe(false)

  const secondFreezeResponse = await sendRequest(
    node,
    'POST /api/control-tower',
    { ...body, reason: 'Another reason.' },
    { key },
  )
  expect(secondFreezeResponse.body.frozen_agents).toMatchObject([{ reason: 'It buys too much.' }])
  const unfreezeResponse = await sendRequest(
    node,
    'POST /api/control-tower',
    { action: 'unfreeze', agent_id: 'writer-v1' },
    { key },
  )
  expect(unfreezeResponse.body.frozen_agents).toEqual([])
  await expect.poll(() => isFrozenOnBoth('writer-v1')).toEqual([false, false])
  const audits = (await readAudits(database.db, tenantId)).filter(({ type }) => type.startsWith('agent.'))
  expect(audits.map(({ type }) => type)).toEqual(['agent.frozen', 'agent.frozen', 'agent.unfrozen'])
  await otherNode.close()
})

test('freezing needs the control scope, a valid action, an agent and a reason', async () => {
  const invalidBodies = [
    {},
    { action: 'freeze' },
    { action: 'melt', agent_id: 'a' },
    { action: 'freeze', agent_id: 'a' },
  ]
  for (const body of invalidBodies)
    expect((await sendRequest(node, 'POST /api/control-tower', body, { key })).status).toBe(400)
  const viewer = await sendRequest(
    node,
    `POST /api/admin/tenants/${tenantId}/keys`,
    { scopes: ['read'] },
    { admin: true },
  )
  const body = { action: 'freeze', agent_id: 'a', reason: 'r' }
  expect((await sendRequest(node, 'POST /api/control-tower', body, { key: viewer.body.api_key })).status).toBe(403)
  expect((await sendRequest(node, 'POST /api/control-tower', body)).status).toBe(401)
})
