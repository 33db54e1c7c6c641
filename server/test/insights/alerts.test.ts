import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { periodOf } from '../../src/modules/governance/counters/windows.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { readEvents } from '../journal.ts'
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
  const createResponse = await sendRequest(
    node,
    'POST /api/admin/tenants',
    { org_name: 'Watched', email: 'a@acme.test', plan: 'builder' },
    { admin: true },
  )
  key = createResponse.body.api_key
  tenantId = createResponse.body.tenant_id
})
afterAll(async () => {
  await node?.close()
  await database?.close()
  await scratch?.drop()
})

const alert = { severity: 'warning', type: 'custom', message: 'Look here.' }
const listAlerts = async (query = '') =>
  (await sendRequest(node, `GET /api/predictive/alerts${query}`, undefined, { key })).body.alerts as {
    id: string
    severity: string
    type: string
    message: string
    read: boolean
    data: Record<string, never>
  }[]

test('a tenant creates alerts, lists them by severity and marks them read', async () => {
  const createResponse = await sendRequest(node, 'POST /api/predictive/alerts', { ...alert, data: { n: 1 } }, { key })
  expect(createResponse.status).toBe(201)
  expect(createResponse.body).toMatchObject({ ...alert, read: false, data: { n: 1 } })
  await sendRequest(node, 'POST /api/predictive/alerts', { ...alert, severity: 'critical' }, { key })
  expect((await listAlerts()).map((listed) => listed.severity)).toEqual(['critical', 'warning'])
  expect((await listAlerts('?severity=warning')).map((listed) => listed.id)).toEqual([createResponse.body.id])
  const read = await sendRequest(node, 'PATCH /api/predictive/alerts', { id: createResponse.body.id }, { key })
  expect([read.status, read.body.read]).toEqual([200, true])
  expect((await sendRequest(node, 'PATCH /api/predictive/alerts', { id: createResponse.body.id }, { key })).text).toBe(
    read.text,
  )
})

test('listing alerts needs the plan feature; creating and marking them does not', async () => {
  const freeTenant = await onboard(node)
  const createResponse = await sendRequest(node, 'POST /api/predictive/alerts', alert, { key: freeTenant.api_key })
  expect(createResponse.status).toBe(201)
  const response = await sendRequest(node, 'GET /api/predictive/alerts', undefined, { key: freeTenant.api_key })
  expect([response.status, response.body.code]).toEqual([403, 'forbidden'])
  const towerAlerts = async (apiKey: string) =>
    (await sendRequest(node, 'GET /api/control-tower', undefined, { key: apiKey })).body.alerts
  expect(await towerAlerts(freeTenant.api_key)).toEqual([])
  const paid = await sendRequest(node, 'POST /api/predictive/alerts', alert, { key })
  expect(await towerAlerts(key)).toMatchObject([{ id: paid.body.id }])
  const markResponse = await sendRequest(
    node,
    'PATCH /api/predictive/alerts',
    { id: createResponse.body.id },
    { key: freeTenant.api_key },
  )
  expect(markResponse.status).toBe(200)
  expect((await sendRequest(node, 'GET /api/predictive/alerts')).status).toBe(401)
})

test('invalid alerts, invalid queries and ids of other tenants are refused', async () => {
  for (const body of [{}, { ...alert, severity: 'loud' }, { severity: 'info', type: 't' }, { ...alert, cause: 'x' }])
    expect((await sendRequest(node, 'POST /api/predictive/alerts', body, { key })).status).toBe(400)
  for (const query of ['?severity=loud', '?limit=0', '?limit=201'])
    expect((await sendRequest(node, `GET /api/predictive/alerts${query}`, undefined, { key })).status).toBe(400)
  const createResponse = await sendRequest(node, 'POST /api/predictive/alerts', alert, { key })
  const stranger = await onboard(node)
  const headers = { 'x-request-id': 'same' }
  const foreign = await sendRequest(
    node,
    'PATCH /api/predictive/alerts',
    { id: createResponse.body.id },
    { key: stranger.api_key, headers },
  )
  const unknown = await sendRequest(
    node,
    'PATCH /api/predictive/alerts',
    { id: 'alr_none' },
    { key: stranger.api_key, headers },
  )
  expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
  expect((await listAlerts())[0]!.read).toBe(false)
})

test('a budget that will run out before its window ends raises one alert with a forecast, which escalates in place', async () => {
  const budget = { tenantId, budgetId: 'daily', limitMicro: 1_000_000n, period: periodOf('day', node.clock.now()) }
  for (let usedMicro = 0n; usedMicro <= 100_000n; usedMicro += 10_000n) {
    await setBudget(database, { ...budget, usedMicro: usedMicro })
    await node.predictions.sweep()
    node.clock.advance(60_000)
  }
  // Ten cents in ten minutes: the remaining ninety last an hour and a half, and the day has nine hours left.
  const [first, ...others] = await listAlerts()
  expect(others).toEqual([])
  expect(first).toMatchObject({ type: 'budget_exhaustion', severity: 'warning', read: false })
  const { forecast } = first!.data as unknown as { forecast: Record<string, string> }
  expect(new Date(forecast.earliest!) <= new Date(forecast.exhausted_at!)).toBe(true)
  expect(new Date(forecast.latest!) >= new Date(forecast.exhausted_at!)).toBe(true)
  await sendRequest(node, 'PATCH /api/predictive/alerts', { id: first!.id }, { key })
  expect(await node.predictions.sweep()).toBe(0)
  expect((await listAlerts())[0]!.read).toBe(true)

  for (let usedMicro = 200_000n; usedMicro <= 900_000n; usedMicro += 100_000n) {
    await setBudget(database, { ...budget, usedMicro: usedMicro })
    await node.predictions.sweep()
    node.clock.advance(60_000)
  }
  const [escalated, ...othersAfter] = await listAlerts()
  expect(othersAfter).toEqual([])
  expect(escalated).toMatchObject({ id: first!.id, severity: 'critical', read: false })
  const events = await readEvents(database.db, tenantId)
  expect(events.filter(({ type }) => type === 'alert.created')).toHaveLength(1)
})

test('a budget that lasts until its window ends raises no alert', async () => {
  const budget = { tenantId, budgetId: 'roomy', limitMicro: 1_000_000_000n, period: periodOf('day', node.clock.now()) }
  for (let usedMicro = 0n; usedMicro <= 50_000n; usedMicro += 10_000n) {
    await setBudget(database, { ...budget, usedMicro: usedMicro })
    await node.predictions.sweep()
    node.clock.advance(60_000)
  }
  expect(await listAlerts()).toEqual([])
})

test('orphaned pre-authorisations, unknown settlements and failing webhooks raise one alert each, whatever the number of sweeps and processes', async () => {
  const now = node.clock.now()
  const run = await addRun(node, database, { tenantId, state: 'executing' })
  await database.pool.query(
    `update open_runs set payment = '{}', payment_state = 'unknown', created_at = $2, updated_at = $2,
       terms = jsonb_build_object('settlement_id', $3::text) where id = $1`,
    [run, new Date(now.getTime() - 61_000), node.ids.next('stl')],
  )
  await database.pool.query(
    `insert into preauths (id, tenant_id, run_id, status, agent_id, merchant_id, merchant, amount_micro, asset, network, action_hash, policy_results, ttl_seconds, asked_by, created_at, escalated_at)
     values ($1, $2, $3, 'escalated', 'writer-v1', 'm', '{}', 10000, 'a', 'n', 'h', '[]', 60, 'k', $4, $4)`,
    [node.ids.next('pa'), tenantId, node.ids.next('run'), now],
  )
  const subscription = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: 'https://example.com/hook', events: ['*'] },
    { key },
  )
  const goneSubscription = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: 'https://example.com/gone', events: ['*'] },
    { key },
  )
  await database.pool.query('update webhook_subscriptions set failing_since = $2, failures = 3 where id = $1', [
    subscription.body.id,
    new Date(now.getTime() - 5 * 60_000),
  ])
  await database.pool.query(
    `update webhook_subscriptions set is_active = false, disabled_reason = 'gone', disabled_at = $2, failing_since = $2 where id = $1`,
    [goneSubscription.body.id, now],
  )
  const second = await openNode(database)
  await Promise.all([node.predictions.sweep(), second.predictions.sweep(), node.predictions.sweep()])
  await node.predictions.sweep()
  await second.close()
  const alerts = (await listAlerts()).map(({ type, severity }) => `${type} ${severity}`).sort()
  expect(alerts).toEqual([
    'preauth_orphaned critical',
    'settlement_unknown warning',
    'webhook_disabled critical',
    'webhook_failing warning',
  ])
})

test('old alerts do not keep new ones from being raised', async () => {
  const now = node.clock.now()
  await database.pool.query(
    `insert into webhook_subscriptions (id, tenant_id, url, events, secret, is_active, disabled_reason, disabled_at, created_at, updated_at)
     select 'whk_old_' || n, $1, 'https://example.com', '{*}', '', false, 'gone', $2, $2, $2 from generate_series(1, 500) n`,
    [tenantId, now],
  )
  await database.pool.query(
    `insert into webhook_subscriptions (id, tenant_id, url, events, secret, failing_since, failures, created_at, updated_at)
     values ('whk_new', $1, 'https://example.com', '{*}', '', $2, 3, $2, $2)`,
    [tenantId, new Date(now.getTime() - 10 * 60_000)],
  )
  expect(await node.predictions.sweep()).toBe(500)
  expect(await node.predictions.sweep()).toBe(1)
  expect((await listAlerts('?severity=warning')).map(({ type }) => type)).toEqual(['webhook_failing'])
})

test('a degraded lane raises an alert only for tenants that use it', async () => {
  const bystander = await onboard(node)
  for (let n = 0; n < 12; n += 1)
    await addRun(node, database, { tenantId, agentId: 'coder-v1', state: n < 6 ? 'failed' : 'completed' })
  await addRun(node, database, { tenantId: bystander.tenant_id, agentId: 'writer-v1' })
  await node.tick()
  await node.predictions.sweep()
  await node.predictions.sweep()
  expect((await listAlerts()).map(({ type, message }) => [type, message])).toEqual([
    ['lane_degraded', "Lane 'coder-v1' is failing: 6 of its last 12 runs did not complete."],
  ])
  const { rows } = await database.pool.query('select count(*)::int from alerts where tenant_id = $1', [
    bystander.tenant_id,
  ])
  expect(rows[0].count).toBe(0)
})
