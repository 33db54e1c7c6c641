import { createClient } from '@countersign/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listEvents } from '../../src/modules/audit/audit.store.ts'
import { listRuns, type RunsQuery } from '../../src/modules/runs/runs.store.ts'
import { openWorld, richTenant, run, type Tenant, type World } from '../governance/world.ts'

/** Lists whose filters nearly nothing passes, behind more rows than a page looks at. */
const NEWER = 5_050

let world: World
let tenant: Tenant
let tagged: string
beforeAll(async () => {
  world = await openWorld()
  tenant = await richTenant(world)
  const first = await run(world, tenant, { spender: 'ann', tags: { project: 'apollo' } })
  expect(first.status, first.text).toBe(200)
  tagged = first.body.run_id
  await world.service.sequencer.runOnce()
  world.clock.advance(1_000)
  const pool = world.service.database.pool
  // Copies of the run without its names, each a second newer.
  await pool.query(
    `insert into ended_runs
     select made.* from (select run from ended_runs run where id = $1) origin
     cross join (select n, created_at + n * interval '1 second' as at from ended_runs cross join generate_series(1, $2::int) n where id = $1) copy
     cross join lateral jsonb_populate_record(origin.run, jsonb_build_object('id', first_id('run', copy.at) || '-7000-8000-' || lpad(to_hex(copy.n), 12, '0'), 'created_at', copy.at,
       'finished_at', copy.at, 'spender', case when copy.n % 7 = 0 then 'bob' end, 'tags', null, 'decided_seq', nextval('decision_order'), 'ended_seq', nextval('decision_order'))) made`,
    [tagged, NEWER],
  )
  await pool.query(
    `insert into audit_events select made.* from (select event from audit_events event where subject = $1 order by seq desc limit 1) origin
     cross join (select tenant_id, seq + n as seq, occurred_at + n * interval '1 second' as at from audit_heads join audit_events using (tenant_id, seq) cross join generate_series(1, $2::int) n where tenant_id = $3) copy
     cross join lateral jsonb_populate_record(origin.event, jsonb_build_object('seq', copy.seq, 'id', 'aud_copy-' || copy.seq, 'occurred_at', copy.at, 'subject', 'run_copy', 'actor', 'copyist', 'data', case when copy.seq % 4 = 0 then '{"spender": "bob"}'::jsonb else '{}' end)) made`,
    [tagged, NEWER, tenant.tenantId],
  )
  await pool.query(
    `update audit_heads head set seq = event.seq, newest_at = event.occurred_at from audit_events event
     where event.tenant_id = head.tenant_id and head.tenant_id = $1 and event.seq = (select max(seq) from audit_events where tenant_id = $1)`,
    [tenant.tenantId],
  )
  await pool.query('analyze')
})
afterAll(() => world?.close())

const get = async (path: string) => {
  const { status, text, body } = await world.get(path, tenant.headers)
  expect(status, text).toBe(200)
  return body
}

test.each([
  ['/api/runs?tag=project:apollo', 'after', 'next_after', 'runs', 'run_id'],
  ['/api/runs?spender=ann&limit=1', 'after', 'next_after', 'runs', 'run_id'],
  ['/api/audit?spender=ann&type=run.completed', 'cursor', 'next_cursor', 'events', 'subject'],
] as const)('%s goes on behind the rows that a page has looked at', async (path, parameter, next, items, id) => {
  const first = await get(path)
  expect(first).toMatchObject({ [items]: [], has_more: true, [next]: expect.any(String) })
  const second = await get(`${path}&${parameter}=${first[next]}`)
  expect(second[items].map((item: Record<string, string>) => item[id])).toEqual([tagged])
  const last = second[next] === null ? second : await get(`${path}&${parameter}=${second[next]}`)
  expect(last).toMatchObject({ has_more: false, [next]: null })
})

test('a list that is full before that is cut as before, and a filter that nothing passes ends', async () => {
  const runs = await get('/api/runs?agent_id=comedian-v1&limit=20')
  expect(runs.runs).toHaveLength(20)
  expect(runs).toMatchObject({ has_more: true, next_after: runs.runs.at(-1).run_id })
  const page = await get('/api/runs?team=none')
  expect(await get(`/api/runs?team=none&after=${page.next_after}`)).toEqual({
    runs: [],
    has_more: false,
    next_after: null,
  })
})

test('a range of time may begin before there were computers and end after them', async () => {
  for (const path of ['/api/runs', '/api/settlements', '/api/audit']) {
    const { runs, settlements, events } = await get(`${path}?limit=1`)
    for (const range of ['since=1970-01-01T00:00:00Z', 'since=1066-10-14T09:00:00Z', 'until=9999-12-31T23:59:59Z']) {
      const within = await get(`${path}?limit=1&${range}`)
      expect(within.runs ?? within.settlements ?? within.events, `${path} ${range}`).toEqual(
        runs ?? settlements ?? events,
      )
    }
    const before = await get(`${path}?limit=1&until=1066-10-14T09:00:00Z`)
    expect(before.runs ?? before.settlements ?? before.events).toEqual([])
  }
})

test('times with offsets and years that the database reads otherwise are times, not failures', async () => {
  for (const path of ['/api/runs', '/api/settlements', '/api/audit'])
    for (const time of ['0000-01-01T00:00:00Z', '2020-01-01T00:00:00-18:00', '2020-01-01T00:00:00%2B23:59']) {
      const since = await get(`${path}?limit=1&since=${time}`)
      expect(since.runs ?? since.settlements ?? since.events, `${path} ${time}`).toHaveLength(1)
      const until = await get(`${path}?limit=1&until=${time}`)
      expect(until.runs ?? until.settlements ?? until.events, `${path} ${time}`).toEqual([])
    }
})

test('what begins a range of time is found among the late approvals, not among all pre-authorisations', async () => {
  const payment = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 1 }
  const payer = await richTenant(world)
  const preauth = await world.post('/api/pre-auth', payment, payer.headers)
  expect((await run(world, payer, { preauth_token: preauth.body.token })).status).toBe(200)
  const pool = world.service.database.pool
  const columns = await pool.query<{ names: string }>(
    `select string_agg(quote_ident(column_name), ', ') as names from information_schema.columns where table_name = 'preauths' and is_generated = 'NEVER'`,
  )
  const { names } = columns.rows[0]!
  await pool.query(
    `insert into preauths (${names}) select ${names.replace(/^|(?<=, )/g, 'made.')} from (select original from preauths original where id = $1) origin cross join generate_series(1, 20000) n
     cross join lateral (select now() - n * interval '20 minutes' as at) time
     cross join lateral jsonb_populate_record(origin.original, jsonb_build_object('id', first_id('pa', at) || '-' || n, 'run_id', first_id('run', at) || '-' || n, 'created_at', at, 'issued_at', at, 'decided_seq', nextval('decision_order'), 'ended_seq', nextval('decision_order'))) made`,
    [preauth.body.preauth_id],
  )
  await pool.query('analyze preauths')
  const client = await pool.connect()
  try {
    await client.query('set plan_cache_mode = force_generic_plan')
    for (const { tenantId } of [payer, await richTenant(world)]) {
      const explain = `explain (analyze, buffers, format json) select first_run_id('${tenantId}', now() - interval '1 day', null)`
      await client.query(explain)
      const { rows } = await client.query(explain)
      expect(rows[0]['QUERY PLAN'][0].Plan['Shared Hit Blocks']).toBeLessThan(10)
    }
  } finally {
    client.release(true)
  }
})

test('runs that are made while the pages of a list are read put no other on two pages or on none', async () => {
  const busy = await richTenant(world)
  const charge = async () => {
    const made = await run(world, busy, { spender: 'ann' })
    expect(made.status, made.text).toBe(200)
    return made.body.run_id as string
  }
  const runIds: string[] = []
  for (let n = 0; n < 20; n += 1) runIds.unshift(await charge())
  // Another one is made after each statement.
  const db = world.db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      await charge()
      return result
    },
  })
  const listedIds: string[] = []
  for (let after: string | undefined, pages = 0; pages < 3; pages += 1) {
    const { rows, examinedTo } = await listRuns(db, busy.tenantId, { spender: 'ann', limit: 100, after }, 8)
    listedIds.push(...rows.map(({ id }) => id!))
    after = examinedTo
  }
  expect(listedIds).toEqual(runIds)
})

test('the SDK reads on to what the filter finds', async () => {
  const client = createClient({ baseUrl: world.url, apiKey: tenant.apiKey })
  const found: string[] = []
  for await (const item of client.runs.list({ tag: 'project:apollo' })) found.push(item.run_id)
  expect(found).toEqual([tagged])
})

describe('whatever the filter, the pages together are the list', () => {
  const collect = async <Row>(
    read: (after: string | undefined) => Promise<{ rows: Row[]; next?: string | undefined }>,
  ) => {
    const rows: Row[] = []
    let pages = 0
    for (let after: string | undefined; ; pages += 1) {
      const page = await read(after)
      rows.push(...page.rows)
      if (page.next === undefined) return { rows, pages }
      after = page.next
    }
  }
  const since = () => new Date(world.clock.now().getTime() + 100_000).toISOString()
  const until = () => new Date(world.clock.now().getTime() + 200_000).toISOString()
  const queries: [string, () => Omit<RunsQuery, 'limit'>][] = [
    ['a lane', () => ({ agent_id: 'comedian-v1', since: since() })],
    ['a spender', () => ({ spender: 'ann' })],
    ['a spender of every seventh', () => ({ spender: 'bob' })],
    ['a time', () => ({ since: since(), until: until() })],
    ['a time without rows', () => ({ since: '2020-01-01T00:00:00Z', until: '2020-02-01T00:00:00Z' })],
    ['what was spent', () => ({ spent: true, until: until() })],
    ['an outcome that has an index', () => ({ outcome: 'failed' })],
    ['an outcome that has none', () => ({ outcome: 'completed', until: until() })],
    ['progress', () => ({ progress: 'ended', until: until() })],
  ]
  test.each(queries)('runs by %s', async (_, query) => {
    const read = async (limit: number, maxExamined: number) =>
      collect(async (after) => {
        const { rows, examinedTo } = await listRuns(
          world.db,
          tenant.tenantId,
          { ...query(), limit, ...(after && { after }) },
          maxExamined,
        )
        return { rows: rows.slice(0, limit), next: rows.length > limit ? rows[limit - 1]!.id! : examinedTo }
      })
    const [whole, parts] = [await read(20_000, 50_000), await read(70, 100)]
    expect(parts.rows.map(({ id }) => id)).toEqual(whole.rows.map(({ id }) => id))
    const { since: from, until: to } = query()
    for (const { created_at } of whole.rows) {
      if (from) expect(created_at!.getTime()).toBeGreaterThanOrEqual(Date.parse(from))
      if (to) expect(created_at!.getTime()).toBeLessThanOrEqual(Date.parse(to))
    }
  })

  test('the ranges above have the rows they should', async () => {
    const count = async (query: Omit<RunsQuery, 'limit'>) =>
      (await listRuns(world.db, tenant.tenantId, { ...query, limit: 20_000 }, 50_000)).rows.length
    expect(await count({ since: since(), until: until() })).toBe(101)
    expect(await count({ until: until() })).toBe(202)
    expect(await count({})).toBe(NEWER + 1)
  })

  test.each([
    { actor: 'copyist' },
    { type: 'run.completed' },
    { spender: 'ann' },
    { spender: 'bob' },
    { team: 'none' },
    { type: 'run.admitted' },
  ])('events by %o', async (filter) => {
    const read = async (limit: number, maxExamined: number) =>
      collect(async (after) => {
        const page = { limit: limit + 1, ...(after && { beforeSeq: await seqOf(after) }) }
        const { rows, examinedTo } = await listEvents(
          world.db,
          tenant.tenantId,
          { ...filter, until: until() },
          page,
          maxExamined,
        )
        return { rows: rows.slice(0, limit), next: rows.length > limit ? rows[limit - 1]!.id : examinedTo }
      })
    const [whole, parts] = [await read(20_000, 50_000), await read(7, 20)]
    expect(parts.rows.map(({ seq }) => seq)).toEqual(whole.rows.map(({ seq }) => seq))
    expect(parts.pages).toBeGreaterThan(5)
  })
})

async function seqOf(id: string): Promise<bigint> {
  const { rows } = await world.service.database.pool.query('select seq from audit_events where id = $1', [id])
  return BigInt(rows[0].seq)
}
