import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
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

async function signIn(apiKey: string) {
  const response = await sendRequest(node, 'POST /api/session', { api_key: apiKey })
  const cookie = String(response.headers['set-cookie'])
  return {
    response,
    cookie: cookie.split(';')[0]!,
    attributes: cookie,
    csrf: response.body.csrf_token as string,
  }
}

test('a key opens a session: an HttpOnly cookie that authenticates the same caller', async () => {
  const { api_key, tenant_id } = await onboard(node)
  const { response, cookie, attributes } = await signIn(api_key)
  expect(response.status).toBe(200)
  expect(attributes).toMatch(/^countersign_session=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax; Secure$/)
  const me = await sendRequest(node, 'GET /api/me', undefined, { headers: { cookie } })
  expect(me.body).toMatchObject({ tenant_id, auth: 'session', scopes: ['read', 'run', 'control', 'mandate', 'keys'] })
  const { rows } = await database.pool.query('select * from sessions')
  expect(JSON.stringify(rows)).not.toContain(cookie.split('=')[1])
})

test('an invalid key opens no session', async () => {
  const response = await sendRequest(node, 'POST /api/session', { api_key: 'csk_wrong' })
  expect(response.status).toBe(401)
  expect(response.headers['set-cookie']).toBeUndefined()
})

test('a reloaded page gets the same CSRF token; a key has none', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const reloadResponse = await sendRequest(node, 'GET /api/session', undefined, { headers: { cookie } })
  expect(reloadResponse.body.csrf_token).toBe(csrf)
  expect((await sendRequest(node, 'GET /api/session', undefined, { key: api_key })).status).toBe(404)
})

test('a write with a session needs its own CSRF token and origin', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const otherSession = await signIn(api_key)
  const write = (headers: Record<string, string>) =>
    sendRequest(node, 'DELETE /api/session', undefined, { headers: { cookie, ...headers } })
  expect((await write({})).status).toBe(403)
  expect((await write({ 'x-csrf-token': otherSession.csrf })).status).toBe(403)
  expect((await write({ 'x-csrf-token': 'é'.repeat(csrf.length) })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, origin: 'https://evil.test' })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, origin: 'null' })).status).toBe(403)
  expect((await write({ 'x-csrf-token': csrf, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  const endedResponse = await write({ 'x-csrf-token': csrf, origin: 'https://countersign.test' })
  expect(endedResponse.status).toBe(200)
  expect(String(endedResponse.headers['set-cookie'])).toContain('Max-Age=0')
})

test('another site cannot open a session', async () => {
  const { api_key } = await onboard(node)
  const response = await sendRequest(
    node,
    'POST /api/session',
    { api_key },
    { headers: { origin: 'https://evil.test' } },
  )
  expect([response.status, response.headers['set-cookie']]).toEqual([403, undefined])
})

test('signing out ends the session on every node', async () => {
  const { api_key } = await onboard(node)
  const { cookie, csrf } = await signIn(api_key)
  const me = (node: Node) => sendRequest(node, 'GET /api/me', undefined, { headers: { cookie } })
  expect((await me(otherNode)).status).toBe(200)
  await sendRequest(node, 'DELETE /api/session', undefined, { headers: { cookie, 'x-csrf-token': csrf } })
  expect((await me(node)).status).toBe(401)
  await expect.poll(async () => (await me(otherNode)).status).toBe(401)
})

test('a session ends when its key is revoked, and after twelve hours', async () => {
  const { api_key, tenant_id } = await onboard(node)
  const { cookie } = await signIn(api_key)
  const me = () => sendRequest(node, 'GET /api/me', undefined, { headers: { cookie } })
  const before = node.clock.now()
  node.clock.advance(12 * 3_600_000 - 1)
  expect((await me()).status).toBe(200)
  node.clock.advance(1)
  expect((await me()).status).toBe(401)
  expect(await node.tenants.sessions.sweep(node.clock.now())).toBeGreaterThan(0)
  node.clock.set(before)
  const second = await signIn(api_key)
  const { body } = await sendRequest(node, `GET /api/admin/tenants/${tenant_id}/keys`, undefined, { admin: true })
  await sendRequest(node, `DELETE /api/admin/keys/${body.keys[0].key_id}`, undefined, { admin: true })
  const afterRevocation = await sendRequest(node, 'GET /api/me', undefined, { headers: { cookie: second.cookie } })
  expect(afterRevocation.status).toBe(401)
})
