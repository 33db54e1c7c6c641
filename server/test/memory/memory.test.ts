import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { readAudits } from '../journal.ts'

/** A tenant's memories over HTTP: created, listed, searched, deleted, and never visible to another tenant. */
const DAY = 24 * 60 * 60 * 1000

let service: TestService
let clockOffsetMs = 0
beforeAll(async () => {
  service = await startService({ clock: { now: () => new Date(Date.now() + clockOffsetMs) } })
})
afterAll(() => service.close())

type Tenant = Awaited<ReturnType<TestService['onboard']>>

async function remember(tenant: Tenant, body: Record<string, unknown>) {
  const response = await service.post('/api/memory', body, tenant.headers)
  if (response.status !== 201) throw new Error(`${response.status}: ${response.text}`)
  return response.body
}

const contents = (body: { memories: { content: string }[] }) => body.memories.map((memory) => memory.content)

describe('creating', () => {
  test('a memory is returned as stored, and again for the same idempotency key', async () => {
    const tenant = await service.onboard()
    const headers = { ...tenant.headers, 'idempotency-key': 'once' }
    const body = { session_id: 's1', agent_id: 'support-v1', content: 'Prefers e-mail.', metadata: { from: 'crm' } }
    const first = await service.post('/api/memory', body, headers)
    expect(first.status, first.text).toBe(201)
    expect(first.body).toMatchObject({ ...body, run_id: null })
    expect(first.body.id).toMatch(/^mem_/)
    expect(Date.parse(first.body.expires_at) - Date.parse(first.body.created_at)).toBe(90 * DAY)
    expect((await service.post('/api/memory', body, headers)).text).toBe(first.text)
    expect((await service.post('/api/memory', { ...body, content: 'Other.' }, headers)).status).toBe(409)
    expect((await service.get('/api/memory', tenant.headers)).body.memories).toEqual([first.body])
    expect((await service.get(`/api/memory/${first.body.id}`, tenant.headers)).body).toEqual(first.body)
    const audit = (await readAudits(service.db, tenant.tenantId)).filter(({ type }) => type.startsWith('memory.'))
    expect(audit).toMatchObject([{ type: 'memory.created', subject: first.body.id }])
    expect(JSON.stringify(audit)).not.toContain('e-mail')
  })

  test('a memory without a session gets a new one', async () => {
    const tenant = await service.onboard()
    expect((await remember(tenant, { content: 'Alone.' })).session_id).toMatch(/^ses_/)
  })

  test.each([
    ['an empty body', {}],
    ['blank content', { content: ' \n ' }],
    ['a NUL in the content', { content: 'a\u0000b' }],
    ['a lone surrogate', { content: 'a\ud800' }],
    ['a NUL in the metadata', { content: 'a', metadata: { deep: [{ key: '\u0000' }] } }],
    ['a NUL in the session id', { content: 'a', session_id: '\u0000' }],
    ['content that is too long', { content: 'x'.repeat(8_001) }],
    ['metadata that is too long', { content: 'a', metadata: { text: 'x'.repeat(4_001) } }],
    ['an expiry in the past', { content: 'a', expires_at: '2020-01-01T00:00:00Z' }],
    ['an expiry at a leap second', { content: 'a', expires_at: '2026-12-31T23:59:60Z' }],
    ['an expiry too far ahead', { content: 'a', expires_at: '2099-01-01T00:00:00Z' }],
    ['a run of another tenant', { content: 'a', run_id: 'run_nothing' }],
    ['an unknown property', { content: 'a', price_usdc: 0 }],
  ])('%s is refused', async (_, body) => {
    const tenant = await service.onboard()
    const response = await service.post('/api/memory', body, tenant.headers)
    expect(response.status, response.text).toBe(400)
    expect(response.body.error).toBe('invalid_request')
    expect((await service.get('/api/memory', tenant.headers)).body.memories).toEqual([])
  })

  test('a memory of the maximum length is stored whole', async () => {
    const tenant = await service.onboard()
    const content = '\u{1f600}'.repeat(4_000)
    expect((await remember(tenant, { content })).content).toBe(content)
  })
})

describe('listing', () => {
  test('filters by session and agent, newest first, in pages without gaps or repeats', async () => {
    const tenant = await service.onboard()
    for (let n = 0; n < 7; n++)
      await remember(tenant, { content: `note ${n}`, session_id: `s${n % 2}`, agent_id: `a${n % 3}` })
    const listedContents: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const page: { body: { next_cursor: string | null; memories: { content: string }[]; has_more: boolean } } =
        await service.get(`/api/memory?limit=3${cursor && `&cursor=${cursor}`}`, tenant.headers)
      expect(page.body.has_more).toBe(page.body.next_cursor !== null)
      listedContents.push(...contents(page.body))
      cursor = page.body.next_cursor
    }
    expect(listedContents).toEqual([6, 5, 4, 3, 2, 1, 0].map((n) => `note ${n}`))
    const filteredResponse = await service.get('/api/memory?session_id=s0&agent_id=a0', tenant.headers)
    expect(contents(filteredResponse.body)).toEqual(['note 6', 'note 0'])
    for (const query of [
      'limit=0',
      'limit=101',
      'limit=x',
      'colour=red',
      'session_id=',
      'session_id=%00',
      'cursor=%00',
    ])
      expect((await service.get(`/api/memory?${query}`, tenant.headers)).status, query).toBe(400)
  })
})

describe('searching', () => {
  test('finds inflected words, ranks the better match first, and returns nothing without a match', async () => {
    const tenant = await service.onboard()
    await remember(tenant, { session_id: 's', content: 'The customer asked for an invoice.' })
    await remember(tenant, { session_id: 's', content: 'The refund for the broken kettle was approved.' })
    await remember(tenant, { session_id: 't', content: 'Kettles ship from Hamburg.' })
    const search = async (body: unknown) => (await service.post('/api/memory/search', body, tenant.headers)).body
    const results = await search({ query: 'What about refunding the kettle?' })
    expect(contents(results)).toEqual(['The refund for the broken kettle was approved.', 'Kettles ship from Hamburg.'])
    expect(results.memories[0].score).toBeGreaterThan(results.memories[1].score)
    expect(contents(await search({ query: 'kettle', session_id: 't' }))).toEqual(['Kettles ship from Hamburg.'])
    expect(contents(await search({ query: 'kettle', limit: 1 }))).toHaveLength(1)
    expect(contents(await search({ query: 'zeppelin' }))).toEqual([])
    expect(contents(await search({ query: 'the of and' }))).toEqual([])
  })

  test('treats search operators and quotes in a query as plain text', async () => {
    const tenant = await service.onboard()
    await remember(tenant, { content: "It's in C:\\temp & 'quoted' | (a) !b <-> c:*" })
    const hostileQueries = [
      "it's",
      "'",
      '\\',
      'a & b | !c <-> (d',
      ':*',
      "temp') or true --",
      'C:\\temp',
      tenant.tenantId,
    ]
    for (const query of hostileQueries) {
      const response = await service.post('/api/memory/search', { query }, tenant.headers)
      expect(response.status, `${query}: ${response.text}`).toBe(200)
    }
    const results = await service.post('/api/memory/search', { query: "quoted'" }, tenant.headers)
    expect(results.body.memories).toHaveLength(1)
  })

  test('of two equal matches the newer comes first', async () => {
    const tenant = await service.onboard()
    const oldMemory = await remember(tenant, { content: 'The door code is blue.' })
    clockOffsetMs += 60 * DAY
    const fresh = await remember(tenant, { content: 'The door code is red.' })
    const { body } = await service.post('/api/memory/search', { query: 'door code' }, tenant.headers)
    expect(body.memories.map((memory: { id: string }) => memory.id)).toEqual([fresh.id, oldMemory.id])
    expect(body.memories[0].score / body.memories[1].score).toBeCloseTo(2 / (1 + 0.5 ** (60 / 14)), 1)
    clockOffsetMs -= 60 * DAY
  })
})

describe('deleting', () => {
  test('a deleted memory is not found, exactly like one of another tenant', async () => {
    const [tenant, otherTenant] = [await service.onboard(), await service.onboard()]
    const { id } = await remember(tenant, { content: 'Secret.' })
    const send = (method: string, path: string, headers: Record<string, string>) =>
      service.call(method, path, undefined, headers)
    for (const method of ['GET', 'DELETE']) {
      const foreign = await send(method, `/api/memory/${id}`, otherTenant.headers)
      const unknown = await send(method, '/api/memory/mem_nothing', otherTenant.headers)
      expect([foreign.status, foreign.body.message]).toEqual([404, unknown.body.message])
      expect((await send(method, `/api/memory/${id}`, {})).status).toBe(401)
    }
    expect((await send('DELETE', `/api/memory/${id}`, tenant.headers)).body).toEqual({ id, deleted: true })
    expect((await send('DELETE', `/api/memory/${id}`, tenant.headers)).status).toBe(404)
    expect((await service.get('/api/memory', tenant.headers)).body.memories).toEqual([])
  })

  test('deleting a session leaves other sessions and other tenants alone', async () => {
    const [tenant, otherTenant] = [await service.onboard(), await service.onboard()]
    for (const session_id of ['gone', 'gone', 'kept']) await remember(tenant, { session_id, content: session_id })
    const forget = (headers: Record<string, string>) =>
      service.call('DELETE', '/api/memory?session_id=gone', undefined, headers)
    expect((await forget(otherTenant.headers)).body).toEqual({ session_id: 'gone', deleted_count: 0 })
    expect((await forget(tenant.headers)).body).toEqual({ session_id: 'gone', deleted_count: 2 })
    expect(contents((await service.get('/api/memory', tenant.headers)).body)).toEqual(['kept'])
    expect((await service.call('DELETE', '/api/memory', undefined, tenant.headers)).status).toBe(400)
    const audits = [
      ...(await readAudits(service.db, tenant.tenantId)),
      ...(await readAudits(service.db, otherTenant.tenantId)),
    ]
    expect(audits.filter(({ type }) => type === 'memory.session_deleted')).toMatchObject([{ subject: 'gone' }])
  })

  test('another tenant finds nothing by listing or searching', async () => {
    const [tenant, otherTenant] = [await service.onboard(), await service.onboard()]
    await remember(tenant, { session_id: 'shared', agent_id: 'a', content: 'xylophone' })
    expect((await service.get('/api/memory?session_id=shared', otherTenant.headers)).body.memories).toEqual([])
    // Even when the query contains the owner's tenant id.
    const query = `xylophone ${tenant.tenantId}`
    const results = await service.post('/api/memory/search', { query, session_id: 'shared' }, otherTenant.headers)
    expect(results.body).toEqual({ memories: [] })
  })

  test('an expired memory is hidden at once and deleted by the next sweep', async () => {
    const tenant = await service.onboard()
    const inAnHour = new Date(Date.now() + clockOffsetMs + 3_600_000).toISOString()
    const { id } = await remember(tenant, { content: 'A passing remark.', session_id: 's', expires_at: inAnHour })
    const remaining = await remember(tenant, { content: 'A lasting remark.', session_id: 's' })
    clockOffsetMs += 3_600_001
    expect((await service.get('/api/memory', tenant.headers)).body.memories).toEqual([remaining])
    expect((await service.get(`/api/memory/${id}`, tenant.headers)).status).toBe(404)
    expect((await service.call('DELETE', `/api/memory/${id}`, undefined, tenant.headers)).status).toBe(404)
    const results = await service.post('/api/memory/search', { query: 'passing remark' }, tenant.headers)
    expect(contents(results.body)).toEqual(['A lasting remark.'])
    await service.service.memory.memory.sweep(new Date(Date.now() + clockOffsetMs))
    const remainingRows = service.db.selectFrom('memories').select('id').where('tenant_id', '=', tenant.tenantId)
    expect(await remainingRows.execute()).toEqual([{ id: remaining.id }])
  })

  test('a session keeps its newest thousand, a tenant its newest ten thousand', async () => {
    const [fullSession, fullTenant] = [await service.onboard(), await service.onboard()]
    const fill = (tenantId: string, rows: number, perSession: number) =>
      service.service.database.pool.query(
        `insert into memories (id, tenant_id, session_id, content, created_at, expires_at)
         select 'mem_' || $1 || lpad(n::text, 6, '0'), $1, 's' || n / $3, 'note ' || n, now(), now() + interval '1 year'
         from generate_series(1, $2::int) as n`,
        [tenantId, rows, perSession],
      )
    await fill(fullSession.tenantId, 1_007, 1_000_000)
    await fill(fullTenant.tenantId, 10_003, 900)
    await service.service.memory.memory.sweep(new Date())
    const oldest = async (tenantId: string) => {
      const { rows } = await service.service.database.pool.query(
        'select count(*)::int as kept, min(right(id, 6)) as oldest from memories where tenant_id = $1',
        [tenantId],
      )
      return rows[0]
    }
    expect(await oldest(fullSession.tenantId)).toEqual({ kept: 1_000, oldest: '000008' })
    expect(await oldest(fullTenant.tenantId)).toEqual({ kept: 10_000, oldest: '000004' })
  })
})
