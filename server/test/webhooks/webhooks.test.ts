import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { ask, type Node, onboard, openNode } from '../tenants/test-app.ts'
import { openReceiver, type Receiver } from './receiver.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let key: string
let tenantId: string
const receivers: Receiver[] = []

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
})
beforeEach(async () => {
  node = await openNode(database, { answerMs: 300 })
  const tenant = await onboard(node)
  key = tenant.api_key
  tenantId = tenant.tenant_id
  // The making of its key is an event too; nobody has asked for it yet.
  await node.tick()
})
afterEach(async () => {
  await node.close()
  for (const receiver of receivers.splice(0)) await receiver.close()
})
afterAll(async () => {
  await database?.close()
  await scratch?.drop()
})

async function receiverThat(...answer: Parameters<typeof openReceiver>) {
  const receiver = await openReceiver(...answer)
  receivers.push(receiver)
  return receiver
}

const subscribe = async (url: string, events = ['*']) =>
  (await ask(node, 'POST /api/webhooks', { url, events }, { key })).body as { id: string; signingSecret: string }

const emit = (type: string, data: Record<string, unknown> = {}, tenant = tenantId) =>
  database.db
    .transaction()
    .execute((tx) => node.outbox.emit(tx, { tenantId: tenant, type, data, at: node.clock.now() }))

const deliveriesOf = async (id: string) =>
  (await ask(node, `GET /api/webhooks/${id}/deliveries`, undefined, { key })).body.deliveries

const readSubscription = async (id: string) => (await ask(node, `GET /api/webhooks/${id}`, undefined, { key })).body

/** As the receiver's library sees it: its own clock stands where ours does. */
function verify(secret: string, { body, headers }: Receiver['received'][number]) {
  vi.useFakeTimers({ toFake: ['Date'], now: node.clock.now() })
  try {
    return new Webhook(secret).verify(body, headers) as { type: string; seq: number; timestamp: string; data: unknown }
  } finally {
    vi.useRealTimers()
  }
}

test('a subscription shows its secret once and keeps it encrypted', async () => {
  const made = await ask(
    node,
    'POST /api/webhooks',
    { url: 'https://example.com/hook', events: ['run.completed'] },
    { key },
  )
  expect(made.status).toBe(201)
  expect(made.body).toMatchObject({ url: 'https://example.com/hook', events: ['run.completed'], is_active: true })
  expect(made.body.signingSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(made.headers['cache-control']).toBe('no-store')
  const list = await ask(node, 'GET /api/webhooks', undefined, { key })
  expect(list.body.subscriptions.map((one: { id: string }) => one.id)).toEqual([made.body.id])
  expect(list.text).not.toContain('whsec_')
  const { rows } = await database.pool.query('select * from webhook_subscriptions where id = $1', [made.body.id])
  expect(JSON.stringify(rows, (_, value) => (typeof value === 'bigint' ? Number(value) : value))).not.toContain(
    made.body.signingSecret,
  )
})

test('bad subscriptions are 400 and leave nothing', async () => {
  const url = 'https://example.com/hook'
  const bad = [
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
  for (const body of bad) {
    const answer = await ask(node, 'POST /api/webhooks', body, { key })
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request'])
  }
  expect((await ask(node, 'GET /api/webhooks', undefined, { key })).body.subscriptions).toEqual([])
})

test('an event reaches those who asked for it, signed so that the standard library accepts it, and nobody else', async () => {
  const wanting = await receiverThat()
  const other = await receiverThat()
  const stranger = await onboard(node, 'Stranger')
  await node.tick()
  const { signingSecret } = await subscribe(wanting.url, ['run.completed', 'run.failed'])
  await subscribe(other.url, ['policy.created'])
  const foreign = await ask(node, 'POST /api/webhooks', { url: other.url, events: ['*'] }, { key: stranger.api_key })
  expect(foreign.status).toBe(201)
  await emit('run.completed', { run_id: 'run_1' })
  await node.tick()
  expect(other.received).toEqual([])
  expect(wanting.received).toHaveLength(1)
  expect(verify(signingSecret, wanting.received[0]!)).toEqual({
    type: 'run.completed',
    timestamp: node.clock.now().toISOString(),
    data: { run_id: 'run_1' },
    seq: 1,
  })
  const [
    {
      rows: [event],
    },
  ] = [await database.pool.query(`select id from events where type = 'run.completed' and tenant_id = $1`, [tenantId])]
  expect(wanting.received[0]!.headers['webhook-id']).toBe(event.id)
  expect(() => verify('whsec_AAAA', wanting.received[0]!)).toThrow()
})

test('an event of a transaction that was rolled back is never sent', async () => {
  const receiver = await receiverThat()
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

test('a failing target is tried again by the schedule with the same id and the same bytes, then switched off', async () => {
  const receiver = await receiverThat((_received, response) => {
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
  const [delivery] = await deliveriesOf(id)
  expect(delivery).toMatchObject({ state: 'exhausted', attempts: 9, last_status: 500, next_attempt_at: null })
  expect(delivery.history).toHaveLength(9)
  expect(await readSubscription(id)).toMatchObject({ is_active: false, disabled_reason: 'exhausted' })
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toHaveLength(9)
})

test('410 switches a subscription off at once; what waits for it is marked, and a person can switch it on again', async () => {
  let gone = true
  const receiver = await receiverThat((_received, response) => {
    response.statusCode = gone ? 410 : 204
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  expect(await readSubscription(id)).toMatchObject({ is_active: false, disabled_reason: 'gone' })
  gone = false
  const on = await ask(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  expect(on.body).toMatchObject({ is_active: true, disabled_reason: null, failing_since: null })
  await emit('run.failed')
  await node.tick()
  expect(receiver.received.map(({ json }) => json.type)).toEqual(['run.completed', 'run.failed'])
})

test('what waits for a subscription that was switched off is given up by the sweep and can be replayed', async () => {
  let status = 500
  const receiver = await receiverThat((received, response) => {
    response.statusCode = received.json.type === 'run.failed' ? 410 : status
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed', { n: 1 })
  await node.tick()
  await emit('run.failed')
  await node.tick()
  expect((await node.webhooks.sweep(node.clock.now())).given_up).toBe(1)
  const waiting = (await deliveriesOf(id)).find((one: { type: string }) => one.type === 'run.completed')
  expect(waiting.state).toBe('exhausted')
  const path = `POST /api/webhooks/${id}/deliveries/${waiting.id}/replay`
  expect((await ask(node, path, undefined, { key })).status).toBe(409)
  await ask(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  status = 200
  expect((await ask(node, path, undefined, { key })).status).toBe(202)
  await node.tick()
  const first = receiver.received[0]!
  const last = receiver.received.at(-1)!
  expect([last.headers['webhook-id'], last.body]).toEqual([first.headers['webhook-id'], first.body])
  expect((await deliveriesOf(id)).find((one: { id: string }) => one.id === waiting.id)).toMatchObject({
    state: 'delivered',
    attempts: 2,
  })
})

test('an inactive subscription gets nothing, and what happened meanwhile does not come later', async () => {
  const receiver = await receiverThat()
  const { id } = await subscribe(receiver.url)
  await ask(node, `PATCH /api/webhooks/${id}`, { is_active: false }, { key })
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toEqual([])
  expect((await ask(node, `POST /api/webhooks/${id}/test`, undefined, { key })).status).toBe(409)
  await ask(node, `PATCH /api/webhooks/${id}`, { is_active: true }, { key })
  await emit('run.failed')
  await node.tick()
  expect(receiver.received.map(({ json }) => [json.type, json.seq])).toEqual([['run.failed', 1]])
})

test('PATCH applies url, events and is_active, checks them anew, and ignores the rest', async () => {
  const { id } = await subscribe('https://example.com/a')
  const changed = await ask(
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
  expect(changed.body).toMatchObject({ id, url: 'https://example.com/b', events: ['key.created'], last_seq: 0 })
  for (const body of [{ url: 'http://10.0.0.1' }, { events: ['nope'] }, { is_active: 'yes' }, { url: 7 }])
    expect((await ask(node, `PATCH /api/webhooks/${id}`, body, { key })).status).toBe(400)
  const { rows } = await database.pool.query('select tenant_id, url from webhook_subscriptions where id = $1', [id])
  expect(rows[0]).toEqual({ tenant_id: tenantId, url: 'https://example.com/b' })
})

test('a deleted subscription is gone, and its secret with it', async () => {
  const receiver = await receiverThat()
  const { id } = await subscribe(receiver.url)
  expect((await ask(node, `DELETE /api/webhooks/${id}`, undefined, { key })).status).toBe(200)
  await emit('run.completed')
  await node.tick()
  expect(receiver.received).toEqual([])
  for (const line of [`DELETE /api/webhooks/${id}`, `GET /api/webhooks/${id}`, `GET /api/webhooks/${id}/deliveries`])
    expect((await ask(node, line, undefined, { key })).status).toBe(404)
  const { rows } = await database.pool.query('select secret from webhook_subscriptions where id = $1', [id])
  expect(rows[0].secret).toBe('')
})

test('the answer for a foreign subscription is the answer for an unknown one', async () => {
  const { id } = await subscribe('https://example.com/hook')
  const stranger = await onboard(node, 'Stranger')
  const lines = [
    ['GET /api/webhooks/ID'],
    ['PATCH /api/webhooks/ID', { is_active: false }],
    ['DELETE /api/webhooks/ID'],
    ['POST /api/webhooks/ID/test', {}],
    ['POST /api/webhooks/ID/rotate-secret', {}],
    ['GET /api/webhooks/ID/deliveries'],
    ['POST /api/webhooks/ID/deliveries/dlv_x/replay', {}],
  ] as [string, unknown?][]
  for (const [line, body] of lines) {
    const headers = { 'x-request-id': 'same' }
    const foreign = await ask(node, line.replace('ID', id), body, { key: stranger.api_key, headers })
    const unknown = await ask(node, line.replace('ID', 'whk_none'), body, { key: stranger.api_key, headers })
    expect([foreign.status, foreign.text]).toEqual([404, unknown.text])
  }
  expect(await readSubscription(id)).toMatchObject({ is_active: true })
})

test('both secrets sign during a rotation, then only the new one', async () => {
  const receiver = await receiverThat()
  const { id, signingSecret } = await subscribe(receiver.url)
  const rotated = await ask(node, `POST /api/webhooks/${id}/rotate-secret`, { overlap_seconds: 60 }, { key })
  expect(rotated.status).toBe(200)
  await emit('run.completed')
  await node.tick()
  for (const secret of [signingSecret, rotated.body.signingSecret]) verify(secret, receiver.received[0]!)
  node.clock.advance(60_000)
  await emit('run.completed')
  await node.tick()
  verify(rotated.body.signingSecret, receiver.received[1]!)
  expect(() => verify(signingSecret, receiver.received[1]!)).toThrow()
})

test('a test event goes to one subscription, whatever it asked for', async () => {
  const receiver = await receiverThat()
  const other = await receiverThat()
  const { id, signingSecret } = await subscribe(receiver.url, ['key.revoked'])
  await subscribe(other.url)
  const sent = await ask(node, `POST /api/webhooks/${id}/test`, undefined, { key })
  expect(sent.status).toBe(202)
  await node.tick()
  expect(other.received).toEqual([])
  expect(verify(signingSecret, receiver.received[0]!).type).toBe('webhook.test')
  expect(receiver.received[0]!.headers['webhook-id']).toBe(sent.body.event_id)
})

test('a target that never answers does not delay another, and redirects are not followed', async () => {
  const silent = await receiverThat(() => {})
  const elsewhere = await receiverThat()
  const turning = await receiverThat((_received, response) => {
    response.writeHead(302, { location: elsewhere.url })
    response.end()
  })
  const good = await receiverThat()
  const hanging = await subscribe(silent.url)
  const redirecting = await subscribe(turning.url)
  await subscribe(good.url)
  for (let n = 0; n < 50; n += 1) await emit('run.completed', { n })
  await node.sequencer.runOnce()
  const oldest = async (id: string) => (await deliveriesOf(id)).at(-1)
  // It waits for an answer longer than this test may take.
  const patient = await openNode(database, { answerMs: 120_000 })
  await patient.deliver.deliverDue()
  await expect.poll(() => good.received.length, { interval: 10 }).toBe(50)
  expect(await oldest(hanging.id)).toMatchObject({ last_error: null })
  await patient.close()
  await node.deliver.deliverDue()
  await expect.poll(() => oldest(redirecting.id)).toMatchObject({ state: 'pending', last_status: 302 })
  await expect.poll(() => oldest(hanging.id)).toMatchObject({ state: 'pending', last_error: 'no answer in time' })
  expect(elsewhere.received).toEqual([])
})

test('an answer without end is cut off', async () => {
  const receiver = await receiverThat((_received, response) => {
    const pour = () => {
      while (response.write('x'.repeat(16 * 1024)));
      response.once('drain', pour)
    }
    pour()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.tick()
  expect((await deliveriesOf(id))[0]).toMatchObject({ state: 'delivered', last_status: 200 })
})

test('two workers at once never take the same delivery', async () => {
  const receiver = await receiverThat((_received, response) => setTimeout(() => response.end(), 5))
  await subscribe(receiver.url)
  for (let n = 0; n < 60; n += 1) await emit('run.completed', { n })
  await node.sequencer.runOnce()
  const second = await openNode(database)
  await Promise.all([node.deliver.deliverDue(), second.deliver.deliverDue()])
  await Promise.all([node.deliver.idle(), second.deliver.idle()])
  await second.close()
  expect(receiver.received.map(({ json }) => json.seq).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 60 }, (_, n) => n + 1),
  )
})

test('a worker that died leaves its deliveries to another when its lease is over', async () => {
  const receiver = await receiverThat()
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await node.sequencer.runOnce()
  await database.pool.query(
    `select claim_deliveries($1, interval '60 seconds', 10, 8, 'good', '{}', 'a worker that died')`,
    [node.clock.now()],
  )
  await node.tick()
  expect(receiver.received).toEqual([])
  node.clock.advance(60_000)
  await node.tick()
  expect(receiver.received).toHaveLength(1)
  expect((await deliveriesOf(id))[0]).toMatchObject({ state: 'delivered', attempts: 1 })
})

test('a worker that is stopped in the middle gives its deliveries back', async () => {
  let answers = false
  const receiver = await receiverThat((_received, response) => {
    if (answers) response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  const stopped = await openNode(database, { answerMs: 20_000 })
  await node.sequencer.runOnce()
  await stopped.deliver.deliverDue()
  await expect.poll(() => receiver.received.length).toBe(1)
  await stopped.close()
  answers = true
  await node.tick()
  expect(receiver.received).toHaveLength(2)
  expect((await deliveriesOf(id))[0]).toMatchObject({ state: 'delivered', attempts: 1 })
})

test('events that many want are numbered in several passes, without a gap', async () => {
  const subscriptions = 15
  await database.pool.query(`update tenants set plan = 'enterprise' where id = $1`, [tenantId])
  for (let n = 0; n < subscriptions; n += 1) await subscribe(`https://example.com/${n}`)
  const events = Array.from({ length: 800 }, (_, n) => ({ id: node.ids.next('evt'), n }))
  await database.pool.query(
    `insert into events (id, tenant_id, type, data, created_at)
     select e->>'id', $1, 'run.completed', '{}', $2 from jsonb_array_elements($3::jsonb) e`,
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

test('a plan limits how many subscriptions there are, also when they race', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 24 }, async (_, n) => {
      const body = { url: `https://example.com/${n}`, events: ['*'] }
      return (await ask(node, 'POST /api/webhooks', body, { key })).status
    }),
  )
  expect(statuses.filter((status) => status === 201)).toHaveLength(20)
  expect(statuses.filter((status) => status === 403)).toHaveLength(4)
})

test('a repeated creation with its key is the same answer with the same secret', async () => {
  const body = { url: 'https://example.com/once', events: ['*'] }
  const headers = { 'idempotency-key': 'subscribe-once' }
  const first = await ask(node, 'POST /api/webhooks', body, { key, headers })
  const second = await ask(node, 'POST /api/webhooks', body, { key, headers })
  expect([second.status, second.text]).toEqual([201, first.text])
})

test('the log pages without gap or repetition', async () => {
  const receiver = await receiverThat()
  const { id } = await subscribe(receiver.url)
  for (let n = 0; n < 7; n += 1) await emit('run.completed', { n })
  await node.tick()
  const seen: number[] = []
  let cursor = ''
  do {
    const line = `GET /api/webhooks/${id}/deliveries?limit=3&state=delivered${cursor && `&cursor=${cursor}`}`
    const { body } = await ask(node, line, undefined, { key })
    seen.push(...body.deliveries.map((one: { seq: number }) => one.seq))
    cursor = body.next_cursor ?? ''
  } while (cursor)
  expect(seen).toEqual([7, 6, 5, 4, 3, 2, 1])
})

test('the backlog tells how long the oldest event and the oldest due delivery have waited', async () => {
  const receiver = await receiverThat()
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

test('the log is forgotten after a while, but nothing that still waits', async () => {
  const receiver = await receiverThat((received, response) => {
    response.statusCode = received.json.type === 'run.failed' ? 500 : 200
    response.end()
  })
  const { id } = await subscribe(receiver.url)
  await emit('run.completed')
  await emit('run.failed')
  await node.tick()
  const later = new Date(node.clock.now().getTime() + 31 * 24 * 3_600_000)
  expect((await node.webhooks.sweep(later)).forgotten).toBeGreaterThanOrEqual(2)
  expect((await deliveriesOf(id)).map((one: { type: string }) => one.type)).toEqual(['run.failed'])
})
