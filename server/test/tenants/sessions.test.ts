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

async function signIn(apiKey: string) {
  const answer = await ask(node, 'POST /api/session', { api_key: apiKey })
  const cookie = String(answer.headers['set-cookie'])
  return { answer, cookie: cookie.split(';')[0]!, attributes: cookie, csrf: answer.body.csrf_token as string }
}

test('a key becomes a session: a cookie scripts cannot read, and the same caller as the key', async () => {
  const { api_key, tenant_id } = await onboard(node)
  const { answer, cookie, attributes } = await signIn(api_key)
  expect(answer.status).toBe(200)
  expect(attributes).toMatch(/^countersign_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure$/)
  const me = await ask(node, 'GET /api/me', undefined, { headers: { cookie } })
  expect(me.body).toMatchObject({ tenant_id, auth: 'session', scopes: ['read', 'run', 'control', 'mandate'] })
  const { rows } = await database.pool.query('select * from sessions')
  expect(JSON.stringify(rows)).not.toContain(cookie.split('=')[1])
})

test('a wrong key opens no session', async () => {
  const answer = await ask(node, 'POST /api/session', { api_key: 'csk_wrong' })
  expect(answer.status).toBe(401)
  expect(answer.headers['set-cookie']).toBeUndefined()
})

test('a page that was loaded again gets the same token; a key has none', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const again = await ask(node, 'GET /api/session', undefined, { headers: { cookie } })
  expect(again.body.csrf_token).toBe(csrf)
  expect((await ask(node, 'GET /api/session', undefined, { key: api_key })).status).toBe(404)
})

test('a write with a session needs its own token and its own origin', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const another = await signIn(api_key)
  const write = (headers: Record<string, string>) =>
    ask(node, 'DELETE /api/session', undefined, { headers: { cookie, ...headers } })
  expect((await write({})).status).toBe(403)
  expect((await write({ 'x-csrf-token': another.csrf })).status).toBe(403)
  expect((await write({ 'x-csrf-token': 'é'.repeat(csrf.length) })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, origin: 'https://evil.test' })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, origin: 'null' })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  const ended = await write({ 'x-csrf-token': csrf, origin: 'https://countersign.test' })
  expect(ended.status).toBe(200)
  expect(String(ended.headers['set-cookie'])).toContain('Max-Age=0')
})

test('nobody is signed in from a foreign site', async () => {
  const { api_key } = await onboard(node)
  const answer = await ask(node, 'POST /api/session', { api_key }, { headers: { origin: 'https://evil.test' } })
  expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
})

test('a session ends on every node with its sign-out', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const me = (where: Node) => ask(where, 'GET /api/me', undefined, { headers: { cookie } })
  expect((await me(other)).status).toBe(200)
  await ask(node, 'DELETE /api/session', undefined, { headers: { cookie, 'x-csrf-token': csrf } })
  expect((await me(node)).status).toBe(401)
  await expect.poll(async () => (await me(other)).status).toBe(401)
})

test('a session ends with its key, and by itself after twelve hours', async () => {
  const { api_key, tenant_id } = await onboard(node)
  const { cookie } = await signIn(api_key)
  const me = () => ask(node, 'GET /api/me', undefined, { headers: { cookie } })
  const before = node.clock.now()
  node.clock.advance(12 * 3_600_000 - 1)
  expect((await me()).status).toBe(200)
  node.clock.advance(1)
  expect((await me()).status).toBe(401)
  expect(await node.tenants.sessions.sweep(node.clock.now())).toBeGreaterThan(0)
  node.clock.set(before)
  const second = await signIn(api_key)
  const { body } = await ask(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  await ask(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  const gone = await ask(node, 'GET /api/me', undefined, { headers: { cookie: second.cookie } })
  expect(gone.status).toBe(401)
})
