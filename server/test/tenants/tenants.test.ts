import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { ask, type Node, onboard, openNode } from './test-app.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let other: Node

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
  node = await openNode(database)
  other = await openNode(database)
})
afterAll(async () => {
  await node?.close()
  await other?.close()
  await database?.close()
  await scratch?.drop()
})

test('an onboarded tenant can use its key at once, and the key is stored nowhere in the clear', async () => {
  const answer = await ask(node, 'POST /api/onboard', { org_name: 'Acme', email: 'a@acme.test', use_case: 'trading' })
  expect(answer.status).toBe(201)
  expect(Object.keys(answer.body)).toEqual(['tenant_id', 'api_key', 'key_prefix', 'plan', 'next_steps'])
  expect(answer.body.api_key.startsWith(answer.body.key_prefix)).toBe(true)
  expect(answer.headers['cache-control']).toBe('no-store')

  const me = await ask(node, 'GET /api/me', undefined, { key: answer.body.api_key })
  expect(me.body).toMatchObject({
    orgId: answer.body.tenant_id,
    tenant_id: answer.body.tenant_id,
    email: 'a@acme.test',
    plan: 'free',
    role: 'owner',
    auth: 'key',
  })
  const { rows } = await database.pool.query('select * from api_keys where tenant_id = $1', [answer.body.tenant_id])
  expect(JSON.stringify(rows)).not.toContain(answer.body.api_key)
  expect(rows[0].scopes).toEqual(['read', 'run', 'control', 'mandate'])
})

test('a missing, a mistyped and a guessed key are 401', async () => {
  const { api_key } = await onboard(node)
  const last = api_key.at(-1) === 'A' ? 'B' : 'A'
  for (const key of [undefined, '', 'nonsense', `${api_key.slice(0, -1)}${last}`, `csk_${'A'.repeat(49)}`]) {
    const answer = await ask(node, 'GET /api/me', undefined, { key })
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject({ error: 'error', code: 'unauthorized' })
  }
})

test('an onboarding repeated with its idempotency key is the same answer byte for byte, and one tenant', async () => {
  const body = { org_name: 'Once', email: 'once@acme.test' }
  const headers = { 'idempotency-key': 'onboard-once' }
  const first = await ask(node, 'POST /api/onboard', body, { headers })
  const second = await ask(node, 'POST /api/onboard', { ...body, idempotency_key: 'onboard-once' })
  expect(second.text).toBe(first.text)
  const another = await ask(node, 'POST /api/onboard', { ...body, org_name: 'Twice' }, { headers })
  expect(another.status).toBe(409)
  const { rows } = await database.pool.query(`select count(*) from tenants where email = 'once@acme.test'`)
  expect(rows[0].count).toBe(1n)
})

test('bad onboarding bodies are 400 and name what is wrong', async () => {
  const good = { org_name: 'Acme', email: 'a@acme.test' }
  const bad = [
    {},
    { org_name: 'Acme' },
    { ...good, email: 'nobody' },
    { ...good, plan: 'enterprise' },
    { ...good, org_name: ' ' },
  ]
  for (const body of bad) {
    const answer = await ask(node, 'POST /api/onboard', body)
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request'])
  }
})

test('a revoked key is refused at once on every node, also where it was cached', async () => {
  const { tenant_id, api_key } = await onboard(node)
  for (const where of [node, other])
    expect((await ask(where, 'GET /api/me', undefined, { key: api_key })).status).toBe(200)
  const { body } = await ask(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  const revoked = await ask(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  expect(revoked.body.revoked_at).toBe(node.clock.now().toISOString())
  expect((await ask(node, 'GET /api/me', undefined, { key: api_key })).status).toBe(401)
  await expect.poll(async () => (await ask(other, 'GET /api/me', undefined, { key: api_key })).status).toBe(401)
  const again = await ask(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  expect(again.text).toBe(revoked.text)
})

test('a rotated key and its successor both work during the overlap, then only the successor', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { body } = await ask(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  const [old] = body.keys
  const rotated = await ask(node, `POST /api/admin/keys/${old.key_id}/rotate`, undefined, { admin: true })
  expect(rotated.status).toBe(201)
  expect(rotated.body).toMatchObject({ scopes: old.scopes, name: old.name, tenant_id })
  const until = new Date(node.clock.now().getTime() + 24 * 3_600_000)
  expect(rotated.body.replaces).toMatchObject({ key_id: old.key_id, expires_at: until.toISOString() })
  const statusOf = async (key: string) => (await ask(node, 'GET /api/me', undefined, { key })).status
  const before = node.clock.now()
  node.clock.set(new Date(until.getTime() - 1))
  expect([await statusOf(api_key), await statusOf(rotated.body.api_key)]).toEqual([200, 200])
  node.clock.set(until)
  expect([await statusOf(api_key), await statusOf(rotated.body.api_key)]).toEqual([401, 200])
  const twice = await ask(node, `POST /api/admin/keys/${old.key_id}/rotate`, {}, { admin: true })
  expect(twice.status).toBe(409)
  node.clock.set(before)
})

test('a suspended tenant is 403 everywhere until it is active again', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const me = () => ask(other, 'GET /api/me', undefined, { key: api_key })
  expect((await me()).status).toBe(200)
  await ask(node, `PATCH /api/admin/tenants/${tenant_id}`, { status: 'suspended' }, { admin: true })
  await expect.poll(async () => (await me()).status).toBe(403)
  await ask(node, `PATCH /api/admin/tenants/${tenant_id}`, { status: 'active', plan: 'team' }, { admin: true })
  await expect.poll(async () => (await me()).body.plan).toBe('team')
})

test('a key has the scopes it was given and no others', async () => {
  const { tenant_id } = await onboard(node)
  const made = await ask(
    node,
    `POST /api/admin/tenants/${tenant_id}/keys`,
    { name: 'viewer', scopes: ['read'] },
    { admin: true },
  )
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({ scopes: ['read'], name: 'viewer' })
  expect(await node.tenants.authenticate.key(made.body.api_key)).toMatchObject({
    tenantId: tenant_id,
    scopes: ['read'],
  })
  const me = await ask(node, 'GET /api/me', undefined, { key: made.body.api_key })
  expect(me.body.role).toBe('viewer')
  const unknown = await ask(node, `POST /api/admin/tenants/${tenant_id}/keys`, { scopes: ['root'] }, { admin: true })
  expect(unknown.status).toBe(400)
})

test('a plan limits how many live keys there are', async () => {
  const { tenant_id } = await onboard(node)
  const make = () => ask(node, `POST /api/admin/tenants/${tenant_id}/keys`, {}, { admin: true })
  const statuses = await Promise.all(Array.from({ length: 20 }, async () => (await make()).status))
  expect(statuses.sort()).toEqual([...Array(19).fill(201), 403])
})

test('admin routes want the admin key, and unknown ids are 404', async () => {
  expect((await ask(node, 'GET /api/admin/tenants')).status).toBe(401)
  const wrong = await ask(node, 'GET /api/admin/tenants', undefined, { headers: { 'x-admin-key': 'no' } })
  expect(wrong.status).toBe(401)
  const lines = ['GET /api/admin/tenants/ten_x', 'GET /api/admin/tenants/ten_x/keys', 'DELETE /api/admin/keys/key_x']
  for (const line of lines) expect((await ask(node, line, undefined, { admin: true })).status).toBe(404)
  expect((await ask(node, 'PATCH /api/admin/tenants/ten_x', { plan: 'team' }, { admin: true })).status).toBe(404)
  expect((await ask(node, 'POST /api/admin/keys/key_x/rotate', {}, { admin: true })).status).toBe(404)
})

test('tenants are listed newest first, page by page, without a gap or a repetition', async () => {
  for (const name of ['p1', 'p2', 'p3']) {
    await ask(
      node,
      'POST /api/admin/tenants',
      { org_name: name, email: 'p@acme.test', plan: 'enterprise' },
      { admin: true },
    )
  }
  const seen: string[] = []
  let cursor = ''
  do {
    const line = `GET /api/admin/tenants?plan=enterprise&limit=2${cursor && `&cursor=${cursor}`}`
    const { body } = await ask(node, line, undefined, { admin: true })
    seen.push(...body.tenants.map((tenant: { org_name: string }) => tenant.org_name))
    cursor = body.next_cursor ?? ''
    expect(body.has_more).toBe(cursor !== '')
  } while (cursor)
  expect(seen).toEqual(['p3', 'p2', 'p1'])
  expect((await ask(node, 'GET /api/admin/tenants?limit=101', undefined, { admin: true })).status).toBe(400)
})

test('the plan shows features, limits and what was used this month', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { body } = await ask(node, 'GET /api/me/plan', undefined, { key: api_key })
  expect(body).toMatchObject({
    plan: 'free',
    features: { predictive_alerts: false, control_tower: true },
    limits: { requests_per_minute: 600 },
    usage: { runs: 0, spend_usdc: 0, webhook_subscriptions: 0, api_keys: 1, since: '2026-11-01T00:00:00.000Z' },
    renews_at: '2026-12-01T00:00:00.000Z',
  })
  await ask(node, `PATCH /api/admin/tenants/${tenant_id}`, { plan: 'builder' }, { admin: true })
  expect((await ask(node, 'GET /api/me/plan', undefined, { key: api_key })).body.features.predictive_alerts).toBe(true)
})

test('key changes are events of their tenant', async () => {
  const { tenant_id } = await onboard(node)
  const { body } = await ask(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  await ask(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  const { rows } = await database.pool.query('select type, data from events where tenant_id = $1 order by id', [
    tenant_id,
  ])
  expect(rows.map((row) => row.type)).toEqual(['key.created', 'key.revoked'])
  expect(rows[1].data.key_id).toBe(body.keys[0].key_id)
})
