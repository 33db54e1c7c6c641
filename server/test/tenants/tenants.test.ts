import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { readEvents } from '../journal.ts'
import { type Node, onboard, openNode, sendRequest } from './test-node.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let otherNode: Node

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
  node = await openNode(database)
  otherNode = await openNode(database)
})
afterAll(async () => {
  await node?.close()
  await otherNode?.close()
  await database?.close()
  await testDatabase?.drop()
})

test('an onboarded tenant can use its key at once, and the key is not stored in plain text', async () => {
  const response = await sendRequest(node, 'POST /api/onboard', {
    org_name: 'Acme',
    email: 'a@acme.test',
    use_case: 'trading',
  })
  expect(response.status).toBe(201)
  expect(Object.keys(response.body)).toEqual(['tenant_id', 'api_key', 'key_prefix', 'plan', 'next_steps'])
  expect(response.body.api_key.startsWith(response.body.key_prefix)).toBe(true)
  expect(response.headers['cache-control']).toBe('no-store')

  const me = await sendRequest(node, 'GET /api/me', undefined, { key: response.body.api_key })
  expect(me.body).toMatchObject({
    orgId: response.body.tenant_id,
    tenant_id: response.body.tenant_id,
    email: 'a@acme.test',
    plan: 'free',
    role: 'owner',
    auth: 'key',
  })
  const { rows } = await database.pool.query('select * from api_keys where tenant_id = $1', [response.body.tenant_id])
  expect(JSON.stringify(rows)).not.toContain(response.body.api_key)
  expect(rows[0].scopes).toEqual(['read', 'run', 'control', 'mandate', 'keys'])
})

test('missing, mistyped and guessed keys are 401', async () => {
  const { api_key } = await onboard(node)
  const last = api_key.at(-1) === 'A' ? 'B' : 'A'
  for (const key of [undefined, '', 'nonsense', `${api_key.slice(0, -1)}${last}`, `csk_${'A'.repeat(49)}`]) {
    const response = await sendRequest(node, 'GET /api/me', undefined, { key })
    expect(response.status).toBe(401)
    expect(response.body).toMatchObject({ error: 'error', code: 'unauthorized' })
  }
})

test('repeating an onboarding with its idempotency key returns the same bytes and creates one tenant', async () => {
  const body = { org_name: 'Once', email: 'once@acme.test' }
  const headers = { 'idempotency-key': 'onboard-once' }
  const first = await sendRequest(node, 'POST /api/onboard', body, { headers })
  const second = await sendRequest(node, 'POST /api/onboard', { ...body, idempotency_key: 'onboard-once' })
  expect(second.text).toBe(first.text)
  const conflictingResponse = await sendRequest(node, 'POST /api/onboard', { ...body, org_name: 'Twice' }, { headers })
  expect(conflictingResponse.status).toBe(409)
  const { rows } = await database.pool.query(`select count(*) from tenants where email = 'once@acme.test'`)
  expect(rows[0].count).toBe(1n)
})

test('invalid onboarding bodies are 400', async () => {
  const valid = { org_name: 'Acme', email: 'a@acme.test' }
  const invalidBodies = [
    {},
    { org_name: 'Acme' },
    { ...valid, email: 'nobody' },
    { ...valid, plan: 'enterprise' },
    { ...valid, org_name: ' ' },
  ]
  for (const body of invalidBodies) {
    const response = await sendRequest(node, 'POST /api/onboard', body)
    expect([response.status, response.body.error]).toEqual([400, 'invalid_request'])
  }
})

test('a revoked key is refused at once on every node, also where it was cached', async () => {
  const { tenant_id, api_key } = await onboard(node)
  for (const eachNode of [node, otherNode])
    expect((await sendRequest(eachNode, 'GET /api/me', undefined, { key: api_key })).status).toBe(200)
  const { body } = await sendRequest(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  const revokeResponse = await sendRequest(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, {
    admin: true,
  })
  expect(revokeResponse.body.revoked_at).toBe(node.clock.now().toISOString())
  expect((await sendRequest(node, 'GET /api/me', undefined, { key: api_key })).status).toBe(401)
  await expect
    .poll(async () => (await sendRequest(otherNode, 'GET /api/me', undefined, { key: api_key })).status)
    .toBe(401)
  const second = await sendRequest(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  expect(second.text).toBe(revokeResponse.text)
})

test('a rotated key and its successor both work during the overlap, then only the successor', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { body } = await sendRequest(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  const [oldKey] = body.keys
  const rotateResponse = await sendRequest(node, `POST /api/admin/keys/${oldKey.key_id}/rotate`, undefined, {
    admin: true,
  })
  expect(rotateResponse.status).toBe(201)
  expect(rotateResponse.body).toMatchObject({ scopes: oldKey.scopes, name: oldKey.name, tenant_id })
  const until = new Date(node.clock.now().getTime() + 24 * 3_600_000)
  expect(rotateResponse.body.replaces).toMatchObject({ key_id: oldKey.key_id, expires_at: until.toISOString() })
  const statusOf = async (key: string) => (await sendRequest(node, 'GET /api/me', undefined, { key })).status
  const before = node.clock.now()
  node.clock.set(new Date(until.getTime() - 1))
  expect([await statusOf(api_key), await statusOf(rotateResponse.body.api_key)]).toEqual([200, 200])
  node.clock.set(until)
  expect([await statusOf(api_key), await statusOf(rotateResponse.body.api_key)]).toEqual([401, 200])
  const secondRotation = await sendRequest(node, `POST /api/admin/keys/${oldKey.key_id}/rotate`, {}, { admin: true })
  expect(secondRotation.status).toBe(409)
  node.clock.set(before)
})

test('a suspended tenant is 403 on every node until it is active again', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const me = () => sendRequest(otherNode, 'GET /api/me', undefined, { key: api_key })
  expect((await me()).status).toBe(200)
  await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, { status: 'suspended' }, { admin: true })
  await expect.poll(async () => (await me()).status).toBe(403)
  await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, { status: 'active', plan: 'team' }, { admin: true })
  await expect.poll(async () => (await me()).body.plan).toBe('team')
})

test('a key has exactly the scopes it was created with', async () => {
  const { tenant_id } = await onboard(node)
  const createResponse = await sendRequest(
    node,
    `POST /api/admin/tenants/${tenant_id}/keys`,
    { name: 'viewer', scopes: ['read'] },
    { admin: true },
  )
  expect(createResponse.status).toBe(201)
  expect(createResponse.body).toMatchObject({ scopes: ['read'], name: 'viewer' })
  expect(await node.tenants.authenticate.key(createResponse.body.api_key)).toMatchObject({
    tenantId: tenant_id,
    scopes: ['read'],
  })
  const me = await sendRequest(node, 'GET /api/me', undefined, { key: createResponse.body.api_key })
  expect(me.body.role).toBe('viewer')
  const unknown = await sendRequest(
    node,
    `POST /api/admin/tenants/${tenant_id}/keys`,
    { scopes: ['root'] },
    { admin: true },
  )
  expect(unknown.status).toBe(400)
})

test('the plan limits the number of live keys, also for concurrent requests', async () => {
  const { tenant_id } = await onboard(node)
  const createKey = () => sendRequest(node, `POST /api/admin/tenants/${tenant_id}/keys`, {}, { admin: true })
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await createKey()).status))
  expect(statuses.sort()).toEqual([...Array(19).fill(201), 403])
})

test('admin routes require the admin key, and unknown ids are 404', async () => {
  expect((await sendRequest(node, 'GET /api/admin/tenants')).status).toBe(401)
  const wrongKey = await sendRequest(node, 'GET /api/admin/tenants', undefined, { headers: { 'x-admin-key': 'no' } })
  expect(wrongKey.status).toBe(401)
  const routes = ['GET /api/admin/tenants/ten_x', 'GET /api/admin/tenants/ten_x/keys', 'DELETE /api/admin/keys/key_x']
  for (const route of routes) expect((await sendRequest(node, route, undefined, { admin: true })).status).toBe(404)
  expect((await sendRequest(node, 'PATCH /api/admin/tenants/ten_x', { plan: 'team' }, { admin: true })).status).toBe(
    404,
  )
  expect((await sendRequest(node, 'POST /api/admin/keys/key_x/rotate', {}, { admin: true })).status).toBe(404)
})

test('tenants are listed newest first, page by page, without gaps or duplicates', async () => {
  for (const name of ['p1', 'p2', 'p3']) {
    await sendRequest(
      node,
      'POST /api/admin/tenants',
      { org_name: name, email: 'p@acme.test', plan: 'enterprise' },
      { admin: true },
    )
  }
  const names: string[] = []
  let cursor = ''
  do {
    const route = `GET /api/admin/tenants?plan=enterprise&limit=2${cursor && `&cursor=${cursor}`}`
    const { body } = await sendRequest(node, route, undefined, { admin: true })
    names.push(...body.tenants.map((tenant: { org_name: string }) => tenant.org_name))
    cursor = body.next_cursor ?? ''
    expect(body.has_more).toBe(cursor !== '')
  } while (cursor)
  expect(names).toEqual(['p3', 'p2', 'p1'])
  expect((await sendRequest(node, 'GET /api/admin/tenants?limit=101', undefined, { admin: true })).status).toBe(400)
})

test("the plan shows features, limits and this month's usage", async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { body } = await sendRequest(node, 'GET /api/me/plan', undefined, { key: api_key })
  expect(body).toMatchObject({
    plan: 'free',
    features: { predictive_alerts: false, control_tower: true },
    limits: { requests_per_minute: 600 },
    usage: { runs: 0, spend_usdc: 0, webhook_subscriptions: 0, api_keys: 1, since: '2026-11-01T00:00:00.000Z' },
    renews_at: '2026-12-01T00:00:00.000Z',
  })
  await sendRequest(node, `PATCH /api/admin/tenants/${tenant_id}`, { plan: 'builder' }, { admin: true })
  expect(
    (await sendRequest(node, 'GET /api/me/plan', undefined, { key: api_key })).body.features.predictive_alerts,
  ).toBe(true)
})

test('creating and revoking a key emit events', async () => {
  const { tenant_id } = await onboard(node)
  const { body } = await sendRequest(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  await sendRequest(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  const rows = await readEvents(database.db, tenant_id)
  expect(rows.map((row) => row.type)).toEqual(['key.created', 'key.revoked'])
  expect(rows[1]!.data.key_id).toBe(body.keys[0].key_id)
})
