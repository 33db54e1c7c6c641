import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { createTestDatabase, migrateUntil } from '../database.ts'
import { readAudits } from '../journal.ts'
import { type Node, onboard, openNode, sendRequest } from './test-node.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
  node = await openNode(database)
})
afterAll(async () => {
  await node?.close()
  await database?.close()
  await testDatabase?.drop()
})

const send = (key: string, route: string, body?: unknown, headers?: Record<string, string>) =>
  sendRequest(node, route, body, { key, headers })
const make = async (key: string, body: Record<string, unknown> = {}) =>
  (await send(key, 'POST /api/keys', { name: 'k', scopes: ['read'], ...body })).body
const makeByOperator = async (tenantId: string, body: Record<string, unknown>) =>
  (await sendRequest(node, `POST /api/admin/tenants/${tenantId}/keys`, body, { admin: true })).body
const statusOf = async (key: string) => (await send(key, 'GET /api/me')).status

async function createMandate(tenantId: string, id: string) {
  await database.pool.query(
    `insert into mandates (id, tenant_id, name, constraints, content_hash, status, starts_at, expires_at, created_by, created_at)
     values ($1, $2, 'm', '[]', 'h', 'active', now(), now() + interval '1 day', 'k', now())`,
    [id, tenantId],
  )
  return id
}

test('nobody gives a scope that he lacks', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const admin = await send(api_key, 'POST /api/keys', { name: 'a', scopes: ['read', 'admin'] })
  expect([admin.status, admin.body.code]).toEqual([403, 'forbidden'])
  const lesser = await make(api_key, { scopes: ['read', 'keys'] })
  for (const scope of ['run', 'control', 'mandate', 'admin'])
    expect((await send(lesser.api_key, 'POST /api/keys', { name: 'a', scopes: [scope] })).status).toBe(403)
  expect((await make(lesser.api_key, { scopes: ['keys', 'read'] })).scopes).toEqual(['read', 'keys'])
  const full = await makeByOperator(tenant_id, { scopes: ['keys', 'admin'] })
  expect((await make(full.api_key, { scopes: ['admin'] })).scopes).toEqual(['admin'])
})

test('a key without the scope keys can neither make nor see, rotate or revoke keys', async () => {
  const { api_key } = await onboard(node)
  const own = await make(api_key, { scopes: ['read', 'run', 'control', 'mandate'] })
  const routes = ['POST /api/keys', 'GET /api/keys', `GET /api/keys/${own.key_id}`]
  for (const route of [...routes, `POST /api/keys/${own.key_id}/rotate`, `DELETE /api/keys/${own.key_id}`]) {
    const body =
      route === 'POST /api/keys' ? { name: 'a', scopes: ['read'] } : route.startsWith('POST') ? {} : undefined
    expect((await send(own.api_key, route, body)).status, route).toBe(403)
  }
})

test('the last use of a key is shown, itself or through a session, and a busy key is written once a minute', async () => {
  const { api_key } = await onboard(node)
  const made = await make(api_key)
  expect(made.last_used_at).toBeNull()
  const read = async () => (await send(api_key, `GET /api/keys/${made.key_id}`)).body.last_used_at
  expect(await read()).toBeNull()

  const firstUse = node.clock.now().toISOString()
  expect(await statusOf(made.api_key)).toBe(200)
  await expect.poll(read).toBe(firstUse)
  node.clock.advance(30_000)
  expect(await statusOf(made.api_key)).toBe(200)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await read()).toBe(firstUse)

  node.clock.advance(31_000)
  await sendRequest(node, 'POST /api/session', { api_key: made.api_key })
  await expect.poll(read).toBe(node.clock.now().toISOString())

  await send(api_key, `DELETE /api/keys/${made.key_id}`)
  const beforeRevocation = await read()
  node.clock.advance(120_000)
  expect(await statusOf(made.api_key)).toBe(401)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(await read()).toBe(beforeRevocation)
})

test('a bond is not shed by making a new key: it is inherited, and another or a wider one is refused', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const [first, second] = [
    await createMandate(tenant_id, `man_${tenant_id}_1`),
    await createMandate(tenant_id, `man_${tenant_id}_2`),
  ]
  const bound = await make(api_key, { scopes: ['read', 'keys'], spender: 'bot', team: 'maps', mandate_ids: [first] })
  expect(bound).toMatchObject({ spender: 'bot', team: 'maps', mandate_ids: [first] })
  for (const wider of [
    { spender: 'other' },
    { team: 'other' },
    { mandate_ids: [second] },
    { mandate_ids: [first, second] },
  ]) {
    const response = await send(bound.api_key, 'POST /api/keys', { name: 'a', scopes: ['read'], ...wider })
    expect([response.status, response.body.code], JSON.stringify(wider)).toEqual([403, 'forbidden'])
  }
  for (const body of [{}, { spender: 'bot' }, { team: 'maps', mandate_ids: [first] }])
    expect(await make(bound.api_key, body)).toMatchObject({ spender: 'bot', team: 'maps', mandate_ids: [first] })
  const team = await make(api_key, { scopes: ['read', 'keys'], team: 'maps' })
  expect(await make(team.api_key, { spender: 'bot' })).toMatchObject({
    spender: 'bot',
    team: 'maps',
    mandate_ids: null,
  })
})

test('a key that ends makes no key that ends later, and the overlap of a rotation does not shorten what it makes', async () => {
  const { api_key } = await onboard(node)
  const at = (hours: number) => new Date(node.clock.now().getTime() + hours * 3_600_000).toISOString()
  const temporary = await make(api_key, { scopes: ['read', 'keys'], expires_at: at(2) })
  const later = await send(temporary.api_key, 'POST /api/keys', { name: 'a', scopes: ['read'], expires_at: at(3) })
  expect(later.status).toBe(403)
  expect((await make(temporary.api_key)).expires_at).toBe(temporary.expires_at)
  expect((await make(temporary.api_key, { expires_at: at(1) })).expires_at).toBe(at(1))
  const { key_id } = (await send(api_key, 'GET /api/me')).body
  await send(api_key, `POST /api/keys/${key_id}/rotate`, { overlap_seconds: 60 })
  expect((await make(api_key)).expires_at).toBeNull()
})

test('a rotation keeps scopes, bonds and maker, and shows the new key once', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const mandateId = await createMandate(tenant_id, `man_${tenant_id}`)
  const child = await make(api_key, {
    scopes: ['read', 'keys'],
    spender: 'bot',
    team: 'maps',
    mandate_ids: [mandateId],
  })
  const rotated = await send(child.api_key, `POST /api/keys/${child.key_id}/rotate`, {})
  expect(rotated.status).toBe(201)
  const { scopes, spender, team, mandate_ids, created_by } = child
  expect(rotated.body).toMatchObject({ scopes, spender, team, mandate_ids, created_by })
  expect(created_by).toBe((await send(api_key, 'GET /api/me')).body.key_id)
  expect(rotated.body.replaces).toMatchObject({ key_id: child.key_id, replaced_by: rotated.body.key_id })
  expect((await send(rotated.body.api_key, 'GET /api/me')).body).toMatchObject({ spender, team, mandate_ids })
  const byOperator = await sendRequest(node, `POST /api/admin/keys/${rotated.body.key_id}/rotate`, {}, { admin: true })
  expect(byOperator.body).toMatchObject({ spender, team, mandate_ids, created_by })
})

test('a key rotates only itself and what it made, since whoever rotates a key gets to hold it', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const manager = await make(api_key, { scopes: ['read', 'keys'] })
  const sibling = await make(api_key, { scopes: ['read', 'keys'] })
  const byOperator = await makeByOperator(tenant_id, { scopes: ['read'] })
  const { key_id: onboarded } = (await send(api_key, 'GET /api/me')).body
  for (const id of [onboarded, sibling.key_id, byOperator.key_id])
    expect((await send(manager.api_key, `POST /api/keys/${id}/rotate`, {})).status).toBe(403)
  const grandchild = await make((await make(manager.api_key, { scopes: ['read', 'keys'] })).api_key)
  expect((await send(api_key, `POST /api/keys/${grandchild.key_id}/rotate`, {})).status).toBe(201)
})

test('rotating again and again does not make more keys valid than the plan allows', async () => {
  const { api_key } = await onboard(node)
  const { key_id } = (await send(api_key, 'GET /api/me')).body
  const { body: next } = await send(api_key, `POST /api/keys/${key_id}/rotate`, {})
  const again = await send(next.api_key, `POST /api/keys/${next.key_id}/rotate`, {})
  expect([again.status, again.body.code]).toEqual([409, 'conflict'])
  await send(next.api_key, `DELETE /api/keys/${key_id}`)
  expect((await send(next.api_key, `POST /api/keys/${next.key_id}/rotate`, {})).status).toBe(201)
})

test('a key cannot revoke a key that made it, nor one with a scope or without a bond of its own', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { key_id: onboarded } = (await send(api_key, 'GET /api/me')).body
  const full = await make(api_key, { scopes: ['read', 'run', 'control', 'mandate', 'keys'] })
  const bound = await make(api_key, { scopes: ['read', 'keys'], spender: 'bot' })
  const controller = await make(api_key, { scopes: ['control'], spender: 'bot' })
  const free = await make(api_key)
  expect((await send(full.api_key, `DELETE /api/keys/${onboarded}`)).status).toBe(403)
  for (const id of [controller.key_id, free.key_id])
    expect((await send(bound.api_key, `DELETE /api/keys/${id}`)).status).toBe(403)
  const byOperator = await makeByOperator(tenant_id, { scopes: ['read'] })
  for (const key of [free, byOperator, full, bound]) {
    expect((await send(api_key, `DELETE /api/keys/${key.key_id}`)).body.revoked_at).toBe(node.clock.now().toISOString())
    expect(await statusOf(key.api_key)).toBe(401)
  }
  expect((await send(api_key, `DELETE /api/keys/${onboarded}`)).status).toBe(200)
  expect(await statusOf(api_key)).toBe(401)
})

test("another tenant's key is not found, and its mandates are not known", async () => {
  const { api_key } = await onboard(node)
  const other = await onboard(node)
  const { key_id } = (await send(other.api_key, 'GET /api/me')).body
  for (const route of [`GET /api/keys/${key_id}`, `POST /api/keys/${key_id}/rotate`, `DELETE /api/keys/${key_id}`])
    expect((await send(api_key, route, route.startsWith('POST') ? {} : undefined)).status).toBe(404)
  const mandateId = await createMandate(other.tenant_id, `man_${other.tenant_id}`)
  const response = await send(api_key, 'POST /api/keys', { name: 'a', scopes: ['read'], mandate_ids: [mandateId] })
  expect([response.status, response.body.error]).toEqual([400, 'invalid_request'])
  const { keys } = (await send(api_key, 'GET /api/keys')).body
  expect(keys).toHaveLength(1)
  expect(JSON.stringify(keys)).not.toContain(api_key)
})

test('revoking a key says which of the keys that it made are still active, and a refused revocation says why', async () => {
  const owner = await onboard(node)
  const maker = await make(owner.api_key, { scopes: ['read', 'keys'] })
  const [live, dead] = [await make(maker.api_key), await make(maker.api_key, { name: 'dead' })]
  expect((await send(owner.api_key, `DELETE /api/keys/${dead.key_id}`)).body.active_keys_made).toEqual([])
  const revoked = await send(owner.api_key, `DELETE /api/keys/${maker.key_id}`)
  expect(revoked.body.active_keys_made).toEqual([live.key_id])
  const again = await sendRequest(node, `DELETE /api/admin/keys/${maker.key_id}`, undefined, { admin: true })
  expect(again.body.active_keys_made).toEqual([live.key_id])
  expect(await statusOf(live.api_key)).toBe(200)

  const narrow = await make(owner.api_key, { scopes: ['read', 'keys'] })
  const wide = await make(owner.api_key, { scopes: ['read', 'run'] })
  const refused = await send(narrow.api_key, `DELETE /api/keys/${wide.key_id}`)
  expect(refused.status).toBe(403)
  expect(refused.body.message).toBe(
    "This key lacks the scope 'run' of that key, and a key revokes no key with more rights than its own.",
  )
})

test('bad bodies are 400 and make nothing', async () => {
  const { api_key } = await onboard(node)
  const valid = { name: 'a', scopes: ['read'] }
  for (const body of [
    {},
    { name: 'a' },
    { scopes: ['read'] },
    { ...valid, scopes: [] },
    { ...valid, scopes: ['root'] },
    { ...valid, spender: '' },
    { ...valid, spender: 'key:key_1' },
    { ...valid, spender: null },
    { ...valid, team: 7 },
    { ...valid, mandate_ids: [] },
    { ...valid, mandate_ids: ['man_none'] },
    { ...valid, expires_at: '2020-01-01T00:00:00Z' },
    { ...valid, created_by: 'key_1' },
  ])
    expect((await send(api_key, 'POST /api/keys', body)).status, JSON.stringify(body)).toBe(400)
  expect((await send(api_key, 'GET /api/keys')).body.keys).toHaveLength(1)
})

test('the plan limits the live keys that a tenant makes, also for concurrent requests', async () => {
  const { api_key } = await onboard(node)
  const statuses = await Promise.all(
    Array.from(
      { length: 20 },
      async () => (await send(api_key, 'POST /api/keys', { name: 'a', scopes: ['read'] })).status,
    ),
  )
  expect(statuses.sort()).toEqual([...Array(19).fill(201), 403])
})

test('making and revoking keys is limited by day', async () => {
  const { tenant_id, api_key } = await onboard(node)
  await database.pool.query(
    `insert into api_keys (id, tenant_id, name, prefix, hash, scopes, created_at, revoked_at)
     select 'key_' || $1 || n, $1, 'n', 'p', $1 || n, '{read}', $2, $2 from generate_series(1, 199) n`,
    [tenant_id, node.clock.now()],
  )
  const { key_id } = (await send(api_key, 'GET /api/me')).body
  const created = await send(api_key, 'POST /api/keys', { name: 'a', scopes: ['read'] })
  expect([created.status, created.body.code, created.headers['retry-after']]).toEqual([429, 'rate_limited', '3600'])
  expect((await send(api_key, `POST /api/keys/${key_id}/rotate`, {})).status).toBe(429)
})

test('a repeated request gets the new key again, but only with the key that asked first', async () => {
  const { api_key } = await onboard(node)
  const other = await make(api_key, { scopes: ['read', 'keys'] })
  const body = { name: 'once', scopes: ['read'] }
  const headers = { 'idempotency-key': 'one-key' }
  const first = await send(api_key, 'POST /api/keys', body, headers)
  expect((await send(api_key, 'POST /api/keys', body, headers)).text).toBe(first.text)
  const second = await send(other.api_key, 'POST /api/keys', body, headers)
  expect(second.status).toBe(201)
  expect(second.body.api_key).not.toBe(first.body.api_key)
})

test('the audit trail names the key that made, rotated and revoked another, with its bonds', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const { key_id } = (await send(api_key, 'GET /api/me')).body
  const child = await make(api_key, { spender: 'bot' })
  const { body: next } = await send(api_key, `POST /api/keys/${child.key_id}/rotate`, {})
  await send(api_key, `DELETE /api/keys/${next.key_id}`)
  const events = await readAudits(database.db, tenant_id)
  expect(events.slice(1).map(({ type, actor, subject }) => ({ type, actor, subject }))).toEqual([
    { type: 'key.created', actor: key_id, subject: child.key_id },
    { type: 'key.created', actor: key_id, subject: next.key_id },
    { type: 'key.revoked', actor: key_id, subject: next.key_id },
  ])
  expect(events[1]!.data).toMatchObject({ spender: 'bot', created_by: key_id })
  expect(events[2]!.data).toMatchObject({ spender: 'bot', created_by: key_id, replaces: child.key_id })
})

test('self-approval is a setting of the tenant; a change takes scope control and is audited with its key', async () => {
  const { tenant_id, api_key } = await onboard(node)
  const reader = await make(api_key, { scopes: ['read', 'run', 'mandate', 'keys'] })
  expect((await send(reader.api_key, 'GET /api/settings')).body).toEqual({ self_approval: 'single_key' })
  expect((await send(reader.api_key, 'PUT /api/settings', { self_approval: 'never' })).status).toBe(403)
  for (const body of [{}, { self_approval: 'always' }, { self_approval: 'never', more: true }])
    expect((await send(api_key, 'PUT /api/settings', body)).status).toBe(400)
  expect((await send(api_key, 'PUT /api/settings', { self_approval: 'never' })).body).toEqual({
    self_approval: 'never',
  })
  expect((await send(api_key, 'GET /api/settings')).body).toEqual({ self_approval: 'never' })
  const { key_id } = (await send(api_key, 'GET /api/me')).body
  expect((await readAudits(database.db, tenant_id)).at(-1)).toMatchObject({
    type: 'settings.updated',
    actor: key_id,
    data: { self_approval: 'never', before: { self_approval: 'single_key' } },
  })
})

test('keys of a data folder from before keep their meaning: the four scopes of an onboarded key become five', async () => {
  const scratch = await createTestDatabase({ empty: true })
  const old = scratch.open(2)
  try {
    await migrateUntil(old, '0082')
    await old.pool.query(
      `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'T', 't@acme.test', now(), now())`,
    )
    const scopes = {
      onboarded: '{read,run,control,mandate}',
      shuffled: '{mandate,control,run,read}',
      admin: '{read,run,control,mandate,admin}',
      viewer: '{read}',
      operator: '{read,run,control}',
    }
    for (const [name, text] of Object.entries(scopes))
      await old.pool.query(
        `insert into api_keys (id, tenant_id, name, prefix, hash, scopes, created_at) values ($1, 'ten_1', $1, 'p', $1, $2, now())`,
        [name, text],
      )
    await migrate(old)
    const { rows } = await old.pool.query('select id, scopes from api_keys')
    expect(Object.fromEntries(rows.map((row) => [row.id, row.scopes]))).toEqual({
      onboarded: ['read', 'run', 'control', 'mandate', 'keys'],
      shuffled: ['read', 'run', 'control', 'mandate', 'keys'],
      admin: ['read', 'run', 'control', 'mandate', 'keys', 'admin'],
      viewer: ['read'],
      operator: ['read', 'run', 'control'],
    })
  } finally {
    await old.close()
    await scratch.drop()
  }
})
