import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { stringifyWithBigints } from '../../src/platform/json.ts'
import { createTestDatabase } from '../harness.ts'
import { type Node, onboard, openNode, sendRequest } from '../tenants/test-node.ts'
import { openReceiver, type Receiver } from './receiver.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let key: string
let tenantId: string
const receivers: Receiver[] = []

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
})
beforeEach(async () => {
  node = await openNode(database)
  const tenant = await onboard(node)
  key = tenant.api_key
  tenantId = tenant.tenant_id
  // Dispatches the `key.created` event of the onboarding before anything subscribes.
  await node.tick()
})
afterEach(async () => {
  await node.close()
  for (const receiver of receivers.splice(0)) await receiver.close()
})
afterAll(async () => {
  await database?.close()
  await testDatabase?.drop()
})

async function startReceiver(...args: Parameters<typeof openReceiver>) {
  const receiver = await openReceiver(...args)
  receivers.push(receiver)
  return receiver
}

const subscribe = async (url: string, events = ['*']) =>
  (await sendRequest(node, 'POST /api/webhooks', { url, events }, { key })).body as {
    id: string
    signingSecret: string
  }

const emit = (type: string, data: Record<string, unknown> = {}, tenant = tenantId) =>
  database.db
    .transaction()
    .execute((tx) => node.outbox.emit(tx, { tenantId: tenant, type, data, at: node.clock.now() }))

const listDeliveries = async (id: string) =>
  (await sendRequest(node, `GET /api/webhooks/${id}/deliveries`, undefined, { key })).body.deliveries

const readSubscription = async (id: string) =>
  (await sendRequest(node, `GET /api/webhooks/${id}`, undefined, { key })).body

/** Verifies with the Standard Webhooks library, with the system time set to the test clock. */
function verify(secret: string, { body, headers }: Receiver['received'][number]) {
  vi.useFakeTimers({ toFake: ['Date'], now: node.clock.now() })
  try {
    return new Webhook(secret).verify(body, headers) as { type: string; seq: number; timestamp: string; data: unknown }
  } finally {
    vi.useRealTimers()
  }
}

test('a subscription shows its secret once and stores it encrypted', async () => {
  const createResponse = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: 'https://example.com/hook', events: ['run.completed'] },
    { key },
  )
  expect(createResponse.status).toBe(201)
  expect(createResponse.body).toMatchObject({
    url: 'https://example.com/hook',
    events: ['run.completed'],
    is_active: true,
  })
  expect(createResponse.body.signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(createResponse.headers['cache-control']).toBe('no-store')
  const list = await sendRequest(node, 'GET /api/webhooks', undefined, { key })
  expect(list.body.subscriptions.map((entry: { id: string }) => entry.id)).toEqual([createResponse.body.id])
  expect(list.text).not.toContain('whsec_')
  const { rows } = await database.pool.query('select * from webhook_subscriptions where id = $1', [
    createResponse.body.id,
  ])
  expect(stringifyWithBigints(rows)).not.toContain(createResponse.body.signingSecret)
})

test('invalid subscriptions are 400 and are not stored', async () => {
  const url = 'https://example.com/hook'
  const invalidBodies = [
    {},
    { url },
    { events: ['*'] },
    { url, events: [] },
    { url, events: 'run.completed' },
    { url, events: ['run.finished'] },
    { url, events: ['webhook.test'] },
    { url: 'http://example.com', events: ['*'] },
    { url: 'https://10.0.0.1/', events: ['*'] },
    { url, events: ['*'], is_active: true },
  ]
  for (const body of invalidBodies) {
    const response = await sendRequest(node, 'POST /api/webhooks', body, { key })
    expect([response.status, response.body.error]).toEqual([400, 'invalid_request'])
  }
  expect((await sendRequest(node, 'GET /api/webhooks', undefined, { key })).body.subscriptions).toEqual([])
})

test('an event reaches only its subscribers, with a signature that the Standard Webhooks library accepts', async () => {
  const subscriber = await startReceiver()
  const otherReceiver = await startReceiver()
  const otherTenant = await onboard(node, 'Stranger')
  await node.tick()
  const { signingSecret } = await subscribe(subscriber.url, ['run.completed', 'run.failed'])
  await subscribe(otherReceiver.url, ['policy.created'])
  const foreign = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: otherReceiver.url, events: ['*'] },
    { key: otherTenant.api_key },
  )
  expect(foreign.status).toBe(201)
  await emit('run.completed', { run_id: 'run_1' })
  await node.tick()
  expect(otherReceiver.received).toEqual([])
  expect(subscriber.received).toHaveLength(1)
  expect(verify(signingSecret, subscriber.received[0]!)).toEqual({
    type: 'run.completed',
    timestamp: node.clock.now().toISOString(),
    data: { run_id: 'run_1' },
    seq: 1,
  })
  const { rows } = await database.pool.query(`select id from events where type = 'run.completed' and tenant_id = $1`, [
    tenantId,
  ])
  expect(subscriber.received[0]!.headers['webhook-id']).toBe(rows[0].id)
  expect(() => verify('whsec_AAAA', subscriber.received[0]!)).toThrow('No matching signature')
})

test('an event of a rolled-back transaction is never sent', async () => {
  const receiver = await startReceiver()
  await subscribe(receiver.url)
  const rolledBack = database.db.transaction().execute(async (tx) => {
    await node.outbox.emit(tx, { tenantId, type: 'run.failed', data: {}, at: node.clock.now() })
    throw new Error('the business failed')
  })
  await expect(rolledBack).rejects.toThrow('the business failed')
  await emit('run.completed')
  await node.tick()
  expect(receiver.received.map(({ json }) => json.type)).toEqual(['run.completed'])
})

test('an event is stored only for a tenant with a subscription, which may be made until the event is dispatched', async () => {
  const storedTypes = async () =>
    (await database.pool.query('select type from events where tenant_id = $1', [tenantId])).rows.map((row) => row.type)
  await emit('run.completed')
  await node.tick()
  expect(await storedTypes()).toEqual([])
  const receiver = await startReceiver()
  await emit('run.failed')
  await subscribe(receiver.url, ['run.failed'])
  await emit('run.completed')
  await node.tick()
  expect(receiver.received.map(({ json }) => json.type)).toEqual(['run.failed'])
  expect(await storedTypes()).toEqual(['run.failed'])
})

test('a failing target is retried on schedule with the same id and bytes, then switched off', async () => {
  const receiver = await startReceiver((_received, response) => {
    response.statusCode = 500
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  const waits = [5, 30, 120, 600, 3600, 4 * 3600, 8 * 3600, 12 * 3600]
  for (const [index, seconds] of waits.entries()) {
    expect(receiver.received).toHaveLength(index + 1)
    node.clock.advance(seconds * 1000 - 1)
    await node.tick()
    expect(receiver.received).toHaveLength(index + 1)
    node.clock.advance(1)
    await node.tick()
  }
  expect(receiver.received).toHaveLength(9)
  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
  const [delivery] = await listDeliveries(id)
  expect(delivery).toMatchObject({ state: 'exhausted', attempts: 9, last_status: 500, next_attempt_at: null })
  expect(delivery.history).toHaveLength(9)
  expect(await readSubscription(id)).toMatchObject({ is_active: false, disabled_reason: 'exhausted' })
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toHaveLength(9)
})

test('a delivery shows its request as sent, with each attempt, its signature and the beginning of its answer', async () => {
  let isBroken = true
  const receiver = await startReceiver((_received, response) => {
    response.statusCode = isBroken ? 500 : 200
    response.end(isBroken ? `Out of \u0000 order: ${'€'.repeat(400)}` : '')
  })
  const { id, signingSecret } = await subscribe(receiver.url)
  await emit('run.completed', { z: 'ü', a: { n: 1 } })
  await node.tick()
  const [listed] = await listDeliveries(id)
  const path = `/api/webhooks/${id}/deliveries/${listed.id}`
  const readDelivery = async () => (await sendRequest(node, `GET ${path}`, undefined, { key })).body

  const failed = await readDelivery()
  const [first] = receiver.received
  expect(failed).toMatchObject({ ...listed, request: { method: 'POST', url: receiver.url, body: first!.body } })
  for (const [name, value] of Object.entries(failed.request.headers)) expect(first!.headers[name], name).toBe(value)
  expect(Object.keys(failed.request.headers)).toEqual(
    expect.arrayContaining(['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp', 'webhook-signature']),
  )
  verify(signingSecret, failed.request)
  expect(failed.history[0].answer).toMatch(/^Out of \uFFFD order: €+\uFFFD?$/)
  expect(Buffer.byteLength(failed.history[0].answer)).toBeLessThan(520)

  isBroken = false
  await sendRequest(node, `POST /api/webhooks/${id}/rotate-secret`, {}, { key })
  node.clock.advance(7_000)
  await sendRequest(node, `POST ${path}/replay`, undefined, { key })
  await node.tick()
  const delivered = await readDelivery()
  expect(delivered).toMatchObject({ state: 'delivered', attempts: 2, request: { body: first!.body } })
  expect(delivered.history.map(({ signature }: { signature: string }) => signature)).toEqual(
    receiver.received.map(({ headers }) => headers['webhook-signature']),
  )
  expect(delivered.history.map(({ timestamp }: { timestamp: number }) => String(timestamp))).toEqual(
    receiver.received.map(({ headers }) => headers['webhook-timestamp']),
  )
  expect(delivered.history[1]).toMatchObject({ status: 200, answer: null })
  expect(delivered.request.headers['webhook-signature'].split(' ')).toHaveLength(2)
  expect(JSON.stringify(delivered)).not.toContain('whsec_')

  const stranger = await onboard(node)
  expect((await sendRequest(node, `GET ${path}`, undefined, { key: stranger.api_key })).status).toBe(404)
  expect((await sendRequest(node, `GET ${path}x`, undefined, { key })).status).toBe(404)
})

test('an attempt that an earlier version recorded has no signature, and a delivery without attempts no headers of one', async () => {
  const receiver = await startReceiver()
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  const [delivery] = await listDeliveries(id)
  const readDelivery = async () =>
    (await sendRequest(node, `GET /api/webhooks/${id}/deliveries/${delivery.id}`, undefined, { key })).body
  await database.pool.query(
    `update webhook_deliveries set history = '[{"at": "2026-01-01T00:00:00.000Z", "status": 500, "error": "answered 500", "ms": 3}]'`,
  )
  expect((await readDelivery()).history).toEqual([
    {
      at: '2026-01-01T00:00:00.000Z',
      status: 500,
      error: 'answered 500',
      ms: 3,
      timestamp: null,
      signature: null,
      answer: null,
    },
  ])
  await database.pool.query(`update webhook_deliveries set history = '[]'`)
  expect(Object.keys((await readDelivery()).request.headers)).toEqual(['content-type', 'user-agent', 'webhook-id'])
})

test('every event type that can be subscribed to is listed with its meaning', async () => {
  const { event_types } = (await sendRequest(node, 'GET /api/webhooks/event-types', undefined, { key })).body
  const types = event_types.map(({ type }: { type: string }) => type)
  const { status } = await sendRequest(
    node,
    'POST /api/webhooks',
    { url: 'https://example.com/hook', events: types },
    { key },
  )
  expect(status).toBe(201)
  for (const { type, description } of event_types) expect(description.length, type).toBeGreaterThan(10)
})

test('410 switches a subscription off at once, and it can be switched on again', async () => {
  let isGone = true
  const receiver = await startReceiver((_received, response) => {
    response.statusCode = isGone ? 410 : 204
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  expect(await readSubscription(id)).toMatchObject({ is_active: false, disabled_reason: 'gone' })
  isGone = false
  const reactivateResponse = await sendRequest(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  expect(reactivateResponse.body).toMatchObject({ is_active: true, disabled_reason: null, failing_since: null })
  await emit('run.failed')
  await node.tick()
  expect(receiver.received.map(({ json }) => json.type)).toEqual(['run.completed', 'run.failed'])
})

test('pending deliveries of a switched-off subscription are exhausted by the sweep and can be replayed', async () => {
  let status = 500
  const receiver = await startReceiver((received, response) => {
    response.statusCode = received.json.type === 'run.failed' ? 410 : status
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed', { n: 1 })
  await node.tick()
  await emit('run.failed')
  await node.tick()
  expect((await node.webhooks.sweep(node.clock.now())).given_up).toBe(1)
  const waitingDelivery = (await listDeliveries(id)).find((entry: { type: string }) => entry.type === 'run.completed')
  expect(waitingDelivery.state).toBe('exhausted')
  const path = `POST /api/webhooks/${id}/deliveries/${waitingDelivery.id}/replay`
  expect((await sendRequest(node, path, undefined, { key })).status).toBe(409)
  await sendRequest(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  status = 200
  expect((await sendRequest(node, path, undefined, { key })).status).toBe(202)
  await node.tick()
  const first = receiver.received[0]!
  const last = receiver.received.at(-1)!
  expect([last.headers['webhook-id'], last.body]).toEqual([first.headers['webhook-id'], first.body])
  expect((await listDeliveries(id)).find((entry: { id: string }) => entry.id === waitingDelivery.id)).toMatchObject({
    state: 'delivered',
    attempts: 2,
  })
})

test('an attempt that fails after its subscription was switched off does not make it a failing one', async () => {
  const receiver = await startReceiver(async (_received, response) => {
    await sendRequest(node, `PATCH /api/webhooks/${id}`, { is_active: false }, { key })
    response.destroy()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  expect(await listDeliveries(id)).toMatchObject([{ attempts: 1, state: 'pending' }])
  expect(await readSubscription(id)).toMatchObject({ is_active: false, failing_since: null })
})

test('an inactive subscription gets nothing, and events of that time are not delivered later', async () => {
  const receiver = await startReceiver()
  const { id } = await subscribe(receiver.url)
  await sendRequest(node, `PATCH /api/webhooks/${id}`, { is_active: false }, { key })
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toEqual([])
  expect((await sendRequest(node, `POST /api/webhooks/${id}/test`, undefined, { key })).status).toBe(409)
  await sendRequest(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  await emit('run.failed')
  await node.tick()
  expect(receiver.received.map(({ json }) => [json.type, json.seq])).toEqual([['run.failed', 1]])
})

test('PATCH validates and applies url, events and is_active, and ignores other fields', async () => {
  const { id } = await subscribe('https://example.com/a')
  const changeResponse = await sendRequest(
    node,
    `PATCH /api/webhooks/${id}`,
    {
      url: 'https://example.com/b',
      events: ['key.created'],
      secret: 'x',
      tenant_id: 'ten_x',
      last_seq: 9,
      id: 'whk_x',
    },
    { key },
  )
  expect(changeResponse.body).toMatchObject({ id, url: 'https://example.com/b', events: ['key.created'], last_seq: 0 })
  for (const body of [{ url: 'http://10.0.0.1' }, { events: ['nope'] }, { is_active: 'yes' }, { url: 7 }])
    expect((await sendRequest(node, `PATCH /api/webhooks/${id}`, body, { key })).status).toBe(400)
  const { rows } = await database.pool.query('select tenant_id, url from webhook_subscriptions where id = $1', [id])
  expect(rows[0]).toEqual({ tenant_id: tenantId, url: 'https://example.com/b' })
})

test('a deleted subscription is 404, gets nothing, and its secret is erased', async () => {
  const receiver = await startReceiver()
  const { id } = await subscribe(receiver.url)
  expect((await sendRequest(node, `DELETE /api/webhooks/${id}`, undefined, { key })).status).toBe(200)
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toEqual([])
  for (const route of [`DELETE /api/webhooks/${id}`, `GET /api/webhooks/${id}`, `GET /api/webhooks/${id}/deliveries`])
    expect((await sendRequest(node, route, undefined, { key })).status).toBe(404)
  const { rows } = await database.pool.query('select secret from webhook_subscriptions where id = $1', [id])
  expect(rows[0].secret).toBe('')
})

test("another tenant's subscription is answered like an unknown one", async () => {
  const { id } = await subscribe('https://example.com/hook')
  const otherTenant = await onboard(node, 'Stranger')
  const routes = [
    ['GET /api/webhooks/ID'],
    ['PATCH /api/webhooks/ID', { is_active: false }],
    ['DELETE /api/webhooks/ID'],
    ['POST /api/webhooks/ID/test', {}],
    ['POST /api/webhooks/ID/rotate-secret', {}],
    ['GET /api/webhooks/ID/deliveries'],
    ['POST /api/webhooks/ID/deliveries/dlv_x/replay', {}],
  ] as [string, unknown?][]
  for (const [route, body] of routes) {
    const headers = { 'x-request-id': 'same' }
    const foreign = await sendRequest(node, route.replace('ID', id), body, { key: otherTenant.api_key, headers })
    const unknown = await sendRequest(node, route.replace('ID', 'whk_none'), body, {
      key: otherTenant.api_key,
      headers,
    })
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
  }
  expect(await readSubscription(id)).toMatchObject({ is_active: true })
})

test('messages are signed with both secrets during a rotation, then only with the new one', async () => {
  const receiver = await startReceiver()
  const { id, signingSecret } = await subscribe(receiver.url)
  const rotateResponse = await sendRequest(
    node,
    `POST /api/webhooks/${id}/rotate-secret`,
    { overlap_seconds: 60 },
    { key },
  )
  expect(rotateResponse.status).toBe(200)
  await emit('run.completed')
  await node.tick()
  for (const secret of [signingSecret, rotateResponse.body.signingSecret]) verify(secret, receiver.received[0]!)
  node.clock.advance(60_000)
  await emit('run.completed')
  await node.tick()
  verify(rotateResponse.body.signingSecret, receiver.received[1]!)
  expect(() => verify(signingSecret, receiver.received[1]!)).toThrow('No matching signature')
})

test('a test event goes to one subscription, whatever its events', async () => {
  const receiver = await startReceiver()
  const otherReceiver = await startReceiver()
  const { id, signingSecret } = await subscribe(receiver.url, ['key.revoked'])
  await subscribe(otherReceiver.url)
  const response = await sendRequest(node, `POST /api/webhooks/${id}/test`, undefined, { key })
  expect(response.status).toBe(202)
  await node.tick()
  expect(otherReceiver.received).toEqual([])
  expect(verify(signingSecret, receiver.received[0]!).type).toBe('webhook.test')
  expect(receiver.received[0]!.headers['webhook-id']).toBe(response.body.event_id)
})

test('a target that does not respond does not delay others, and redirects are not followed', async () => {
  const silentReceiver = await startReceiver(() => {})
  const redirectTarget = await startReceiver()
  const redirectingReceiver = await startReceiver((_received, response) => {
    response.writeHead(302, { location: redirectTarget.url })
    response.end()
  })
  const workingReceiver = await startReceiver()
  const hangingSubscription = await subscribe(silentReceiver.url)
  const redirectingSubscription = await subscribe(redirectingReceiver.url)
  await subscribe(workingReceiver.url)
  for (let n = 0; n < 50; n += 1) await emit('run.completed', { n })
  await node.sequencer.runOnce()
  const oldest = async (id: string) => (await listDeliveries(id)).at(-1)
  // Its timeout is longer than this test may take.
  const patientNode = await openNode(database, { timeoutMs: 120_000 })
  await patientNode.deliveryWorker.deliverDue()
  await expect.poll(() => workingReceiver.received.length, { interval: 10 }).toBe(50)
  expect(await oldest(hangingSubscription.id)).toMatchObject({ last_error: null })
  await patientNode.close()
  const impatientNode = await openNode(database, { timeoutMs: 1_000 })
  await impatientNode.deliveryWorker.deliverDue()
  await expect.poll(() => oldest(redirectingSubscription.id)).toMatchObject({ state: 'pending', last_status: 302 })
  await expect
    .poll(() => oldest(hangingSubscription.id))
    .toMatchObject({ state: 'pending', last_error: 'no answer in time' })
  await impatientNode.close()
  expect(redirectTarget.received).toEqual([])
})

test('an endless response body is cut off', async () => {
  const receiver = await startReceiver((_received, response) => {
    const writeForever = () => {
      while (response.write('x'.repeat(16 * 1024)));
      response.once('drain', writeForever)
    }
    writeForever()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  expect((await listDeliveries(id))[0]).toMatchObject({ state: 'delivered', last_status: 200 })
})

test('two concurrent workers never send the same delivery', async () => {
  const receiver = await startReceiver((_received, response) => setTimeout(() => response.end(), 5))
  await subscribe(receiver.url)
  for (let n = 0; n < 60; n += 1) await emit('run.completed', { n })
  await node.sequencer.runOnce()
  const secondNode = await openNode(database)
  await Promise.all([node.deliveryWorker.deliverDue(), secondNode.deliveryWorker.deliverDue()])
  await Promise.all([node.deliveryWorker.idle(), secondNode.deliveryWorker.idle()])
  await secondNode.close()
  expect(receiver.received.map(({ json }) => json.seq).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 60 }, (_, n) => n + 1),
  )
})

test('the deliveries of a dead worker are taken over when its lease expires', async () => {
  const receiver = await startReceiver()
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.sequencer.runOnce()
  await database.pool.query(`select claim_deliveries($1, interval '60 seconds', 10, 8, 'good', '{}', 'dead-worker')`, [
    node.clock.now(),
  ])
  await node.tick()
  expect(receiver.received).toEqual([])
  node.clock.advance(60_000)
  await node.tick()
  expect(receiver.received).toHaveLength(1)
  expect((await listDeliveries(id))[0]).toMatchObject({ state: 'delivered', attempts: 1 })
})

test('a stopped worker releases its unfinished deliveries', async () => {
  let isAnswering = false
  const receiver = await startReceiver((_received, response) => {
    if (isAnswering) response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  const stoppedNode = await openNode(database, { timeoutMs: 20_000 })
  await node.sequencer.runOnce()
  await stoppedNode.deliveryWorker.deliverDue()
  await expect.poll(() => receiver.received.length).toBe(1)
  await stoppedNode.close()
  isAnswering = true
  await node.tick()
  expect(receiver.received).toHaveLength(2)
  expect((await listDeliveries(id))[0]).toMatchObject({ state: 'delivered', attempts: 1 })
})

test('events with many subscribers are dispatched in several batches, without gaps in seq', async () => {
  const subscriptions = 15
  await database.pool.query(`update tenants set plan = 'enterprise' where id = $1`, [tenantId])
  for (let n = 0; n < subscriptions; n += 1) await subscribe(`https://example.com/${n}`)
  const events = Array.from({ length: 800 }, (_, n) => ({ id: node.ids.next('evt'), n }))
  await database.pool.query(
    `insert into journal (tenant_id, at, events)
     select $1, $2, jsonb_build_array(jsonb_build_object('id', e->>'id', 'type', 'run.completed', 'data', '{}'::jsonb)) from jsonb_array_elements($3::jsonb) e`,
    [tenantId, node.clock.now(), JSON.stringify(events)],
  )
  await node.sequencer.runOnce()
  const { rows } = await database.pool.query(
    `select count(*)::int as count, min(seq)::int as first, max(seq)::int as last, count(distinct seq)::int as different
     from webhook_deliveries where tenant_id = $1 group by subscription_id`,
    [tenantId],
  )
  expect(rows).toEqual(Array(subscriptions).fill({ count: 800, first: 1, last: 800, different: 800 }))
  await database.pool.query('delete from webhook_deliveries where tenant_id = $1', [tenantId])
})

test('the plan limits the number of subscriptions, also for concurrent requests', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 24 }, async (_, n) => {
      const body = { url: `https://example.com/${n}`, events: ['*'] }
      return (await sendRequest(node, 'POST /api/webhooks', body, { key })).status
    }),
  )
  expect(statuses.filter((status) => status === 201)).toHaveLength(20)
  expect(statuses.filter((status) => status === 403)).toHaveLength(4)
})

test('repeating a creation with its idempotency key returns the same response with the same secret', async () => {
  const body = { url: 'https://example.com/once', events: ['*'] }
  const headers = { 'idempotency-key': 'subscribe-once' }
  const first = await sendRequest(node, 'POST /api/webhooks', body, { key, headers })
  const secondNode = await sendRequest(node, 'POST /api/webhooks', body, { key, headers })
  expect([secondNode.status, secondNode.text]).toEqual([201, first.text])
})

test('deliveries are listed page by page, without gaps or duplicates', async () => {
  const receiver = await startReceiver()
  const { id } = await subscribe(receiver.url)
  for (let n = 0; n < 7; n += 1) await emit('run.completed', { n })
  await node.tick()
  const seqs: number[] = []
  let cursor = ''
  do {
    const route = `GET /api/webhooks/${id}/deliveries?limit=3&state=delivered${cursor && `&cursor=${cursor}`}`
    const { body } = await sendRequest(node, route, undefined, { key })
    seqs.push(...body.deliveries.map((entry: { seq: number }) => entry.seq))
    cursor = body.next_cursor ?? ''
  } while (cursor)
  expect(seqs).toEqual([7, 6, 5, 4, 3, 2, 1])
})

test('the backlog shows how long the oldest event and the oldest due delivery have waited', async () => {
  const receiver = await startReceiver()
  await subscribe(receiver.url)
  await node.tick()
  await database.pool.query(`update webhook_deliveries set state = 'exhausted' where state = 'pending'`)
  const backlog = () => node.webhooks.backlog(node.clock.now())
  expect(await backlog()).toEqual({ undispatched_age_s: 0, due_age_s: 0, overdue_subscriptions: 0 })
  await emit('run.completed')
  node.clock.advance(7_000)
  expect(await backlog()).toMatchObject({ undispatched_age_s: 7, due_age_s: 0 })
  await node.sequencer.runOnce()
  node.clock.advance(3_000)
  expect(await backlog()).toEqual({ undispatched_age_s: 0, due_age_s: 3, overdue_subscriptions: 1 })
  await node.tick()
  expect(await backlog()).toEqual({ undispatched_age_s: 0, due_age_s: 0, overdue_subscriptions: 0 })
})

test('old deliveries are deleted after the retention period, except pending ones', async () => {
  const receiver = await startReceiver((received, response) => {
    response.statusCode = received.json.type === 'run.failed' ? 500 : 200
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await emit('run.failed')
  await node.tick()
  const later = new Date(node.clock.now().getTime() + 31 * 24 * 3_600_000)
  expect((await node.webhooks.sweep(later)).forgotten).toBeGreaterThanOrEqual(2)
  expect((await listDeliveries(id)).map((entry: { type: string }) => entry.type)).toEqual(['run.failed'])
})
