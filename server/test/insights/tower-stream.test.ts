import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { richTenant, run, type Tenant } from '../governance/world.ts'
import { createTestDatabase, startService, type TestService } from '../harness.ts'

/** Two processes on one database: whatever one writes is announced by the other. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let first: TestService
let second: TestService
let tenant: Tenant
let stranger: Tenant
beforeAll(async () => {
  database = await createTestDatabase()
  const env = { BACKGROUND_WORK: 'off', SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40) }
  first = await startService({ databaseUrl: database.url, env })
  second = await startService({ databaseUrl: database.url, env })
  tenant = await richTenant(first)
  stranger = await richTenant(first)
})
afterAll(async () => {
  await second?.close()
  await first?.close()
  await database?.drop()
})

type StreamEvent = { event: string; data: { topics?: string[] }; at: number }

async function openStream(service: TestService, headers: Record<string, string>) {
  const abort = new AbortController()
  const response = await fetch(`${service.url}/api/control-tower/stream`, { headers, signal: abort.signal })
  const events: StreamEvent[] = []
  const readAll = async () => {
    let text = ''
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString()
      const blocks = text.split('\n\n')
      text = blocks.pop()!
      for (const block of blocks) {
        const [, event] = /^event: (.*)$/m.exec(block) ?? []
        const [, data] = /^data: (.*)$/m.exec(block) ?? []
        if (event) events.push({ event, data: JSON.parse(data!), at: performance.now() })
      }
    }
  }
  const ended = response.status === 200 ? readAll().catch(() => {}) : Promise.resolve()
  return {
    response,
    events,
    changes: () => events.filter(({ event }) => event === 'change'),
    isReady: () => events.some(({ event }) => event === 'ready'),
    async close() {
      abort.abort()
      await ended
    },
  }
}

test('a run of one process is announced by another within a second, to its tenant and to nobody else', async () => {
  const mine = await openStream(second, tenant.headers)
  const foreign = await openStream(second, stranger.headers)
  expect(mine.response.headers.get('content-type')).toContain('text/event-stream')
  await expect.poll(() => mine.isReady() && foreign.isReady()).toBe(true)
  /** How long after its answer a run is announced. */
  const delayOfRun = async () => {
    const before = mine.changes().length
    expect((await run(first, tenant)).status).toBe(200)
    const endedAt = performance.now()
    await expect.poll(() => mine.changes().length).toBeGreaterThan(before)
    return mine.changes()[before]!.at - endedAt
  }
  // The median: a busy machine may hold up one of them.
  const delays: number[] = []
  for (let count = 0; count < 5; count += 1) {
    delays.push(await delayOfRun())
    // No later event of this run is taken for the first of the next.
    await sleep(900)
  }
  expect(delays.sort((a, b) => a - b)[2]).toBeLessThan(1_000)
  const [change] = mine.changes()
  expect(change!.data.topics).toEqual(expect.arrayContaining(['tower', 'runs', 'spend', 'budgets']))
  // Topics and nothing else.
  expect(Object.keys(change!.data)).toEqual(['topics'])
  expect(foreign.changes()).toEqual([])
  await mine.close()
  await foreign.close()
})

test('refusals, pre-authorisations, alerts, webhooks and trades have topics of their own', async () => {
  const stream = await openStream(first, tenant.headers)
  await expect.poll(stream.isReady).toBe(true)
  const expectTopic = async (topic: string, path: string, body: unknown, statuses: number[]) => {
    const before = stream.changes().length
    const { status, text } = await first.post(path, body, tenant.headers)
    expect(statuses, text).toContain(status)
    const newTopics = () =>
      stream
        .changes()
        .slice(before)
        .flatMap(({ data }) => data.topics)
    await expect.poll(newTopics).toContain(topic)
  }
  const preauth = { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.01 }
  await expectTopic('preauths', '/api/pre-auth', preauth, [201])
  await expectTopic('alerts', '/api/predictive/alerts', { severity: 'info', type: 't', message: 'm' }, [201])
  await expectTopic('webhooks', '/api/webhooks', { url: 'http://127.0.0.1:9/', events: ['*'] }, [201])
  const trade = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy', quantity: 1_500, agent_id: 'buyer' }
  await expectTopic('trades', '/api/rh/run', { tenant_id: tenant.tenantId, ...trade }, [202])
  await stream.close()
})

test('many changes at once are a few events', async () => {
  const stream = await openStream(first, tenant.headers)
  await expect.poll(stream.isReady).toBe(true)
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: 30 }, (_, index) => run(first, tenant, { task: `Joke ${index}` })))
  await sleep(600)
  const seconds = (performance.now() - startedAt) / 1_000
  expect(stream.changes().length).toBeGreaterThan(0)
  expect(stream.changes().length).toBeLessThanOrEqual(Math.ceil(seconds * 3) + 1)
  await stream.close()
})

test('without a key there is no stream, and a tenant has at most twenty', async () => {
  expect((await openStream(first, {})).response.status).toBe(401)
  const streams = []
  for (let index = 0; index < 20; index += 1) streams.push(await openStream(first, stranger.headers))
  expect(streams.map(({ response }) => response.status)).toEqual(Array(20).fill(200))
  expect((await openStream(first, stranger.headers)).response.status).toBe(429)
  for (const stream of streams) await stream.close()
  await expect
    .poll(async () => {
      const again = await openStream(first, stranger.headers)
      await again.close()
      return again.response.status
    })
    .toBe(200)
})
