import fc from 'fast-check'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { spendIn } from '../../src/modules/insights/spend.store.ts'
import { openWorld, richTenant, run, type Tenant, type World } from '../governance/world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
  // The control tower shows the newest checkpoint of the log, which the sequencer makes.
  await world.service.sequencer.runOnce()
})
afterAll(() => world?.close())

const spend = async (tenant: Tenant, query = '') => {
  const answer = await world.get(`/api/spend${query}`, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

async function pay(tenant: Tenant, amount: string, close: Record<string, unknown> | null = {}, terms = {}) {
  const body = { agent_id: 'buyer', merchant: { id: 'shop' }, amount, ...terms }
  const preauth = await world.post('/api/pre-auth', body, tenant.headers)
  expect(preauth.status, preauth.text).toBe(201)
  if (close === null) return
  const closing = { preauth_id: preauth.body.preauth_id, outcome: 'settled', ...close }
  expect((await world.post('/api/pre-auth/close', closing, tenant.headers)).status).toBe(200)
}

async function trade(tenant: Tenant, body: Record<string, unknown>) {
  const answer = await world.post('/api/rh/run', { tenant_id: tenant.tenantId, side: 'buy', ...body }, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}

/** The transaction of a run that is paid by x402. */
async function payRun(headers: Record<string, string>): Promise<string> {
  const payer = await world.payer(1)
  const answer = await payer.fetch(`${world.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }),
  })
  expect(answer.status).toBe(200)
  return ((await answer.json()) as { settlement: { transaction: string } }).settlement.transaction
}

async function failedRun(tenant: Tenant) {
  world.lane.failing = true
  expect((await run(world, tenant)).status).toBe(500)
  world.lane.failing = false
}

describe('what is refused', () => {
  test.each([
    ['an unknown dimension', '?group_by=colour', /'colour' is none of/],
    ['a dimension twice', '?group_by=day,day', /twice/],
    ['three dimensions', '?group_by=day,lane,rail', /more than 2/],
    ['group_by=tag without the name of a tag', '?group_by=tag', /send both or neither/],
    ['a tag without group_by=tag', '?group_by=day&tag=project', /send both or neither/],
    ['an end before the start', '?from=2026-11-02&to=2026-11-01', /before/],
    ['a range above a year', '?from=2024-01-01&to=2026-01-01', /366 days/],
    ['a day that the calendar does not have', '?from=2026-02-30&to=2026-03-02', /not a date/],
    ['a time without a zone', '?from=2026-02-01T00:00:00', /from/],
    ['a cursor that is none', '?cursor=abc', /cursor/],
    [
      'a cursor of another report',
      `?group_by=day,lane&cursor=${Buffer.from('["1a"]').toString('base64url')}`,
      /cursor/,
    ],
    ['a time zone that is none', '?time_zone=Mars/Olympus', /time zone/],
    ['a name that the database does not know', '?time_zone=US/Pacific-New', /time zone/],
    ['an offset for a time zone', '?time_zone=%2B02:00', /time_zone/],
    ['a page of nothing', '?limit=0', /limit/],
    ['a page of too much', '?limit=1001', /limit/],
    ['an unknown format', '?format=xml', /format/],
    ['an unknown parameter', '?window=7d', /window/],
  ])('%s', async (_, query, message) => {
    const tenant = await richTenant(world)
    const refusal = await world.get(`/api/spend${query}`, tenant.headers)
    expect([refusal.status, refusal.body.error]).toEqual([400, 'invalid_request'])
    expect(refusal.body.message).toMatch(message)
  })

  test('a guest', async () => {
    expect((await world.get('/api/spend')).status).toBe(401)
  })
})

test('what is held, failed, voided or refused is not spent; what is settled is, once', async () => {
  const tenant = await richTenant(world)
  await failedRun(tenant)
  await pay(tenant, '700', null)
  await pay(tenant, '800', { outcome: 'voided' })
  expect((await spend(tenant)).totals).toMatchObject({ amount: '0', count: 0 })
  await run(world, tenant)
  await pay(tenant, '900', { actual_amount: '400' })
  // A run under a pre-authorisation is one spend, not two.
  const token = await world.post(
    '/api/pre-auth',
    { agent_id: 'comedian-v1', amount_usdc: 0.01, merchant: { id: 'countersign' } },
    tenant.headers,
  )
  expect((await run(world, tenant, { preauth_token: token.body.token })).status).toBe(200)
  expect((await spend(tenant)).totals).toEqual({
    amount: '20400',
    amount_usdc: 0.0204,
    count: 3,
    reported: '400',
    reported_usdc: 0.0004,
    notional: '0',
    notional_usdc: 0,
    trades: 0,
  })
  const stranger = await richTenant(world)
  expect((await spend(stranger)).totals.amount).toBe('0')
})

const ownTerms = { agent_id: 'comedian-v1', amount_usdc: 0.01, merchant: { id: 'countersign' } }

describe('a pre-authorisation for this service that a run without its token has paid', () => {
  test('is counted once, by the run of its own tenant, in report, budgets and control tower', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/budgets', { budget_id: 'all', window: 'total', limit_usdc: 10 }, tenant.headers)
    const preauth = await world.post('/api/pre-auth', ownTerms, tenant.headers)
    const transaction = await payRun(tenant.headers)
    const closing = { preauth_id: preauth.body.preauth_id, outcome: 'settled', transaction }
    const closed = await world.post('/api/pre-auth/close', closing, tenant.headers)
    expect([closed.status, closed.body.outcome]).toEqual([200, 'settled'])
    // The receipt says that no counter counted it; the run's receipt does.
    expect(closed.body.evidence.counters.items).toEqual([])
    expect((await spend(tenant)).totals).toMatchObject({ amount: '10000', count: 1 })
    const { body } = await world.get('/api/budgets', tenant.headers)
    expect(body.budgets).toMatchObject([{ spent_usdc: 0.01, reserved_usdc: 0 }])
    expect((await world.get('/api/control-tower', tenant.headers)).body.spend.month_usdc).toBe(0.01)
    // The same payment closes no second one.
    const second = await world.post('/api/pre-auth', ownTerms, tenant.headers)
    const again = { ...closing, preauth_id: second.body.preauth_id }
    expect((await world.post('/api/pre-auth/close', again, tenant.headers)).status).toBe(409)
  })

  test('is counted itself when the run was a guest’s, which nothing else counts', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/budgets', { budget_id: 'all', window: 'total', limit_usdc: 10 }, tenant.headers)
    const preauth = await world.post('/api/pre-auth', ownTerms, tenant.headers)
    const closing = { preauth_id: preauth.body.preauth_id, outcome: 'settled', transaction: await payRun({}) }
    expect((await world.post('/api/pre-auth/close', closing, tenant.headers)).status).toBe(200)
    expect((await spend(tenant)).totals).toMatchObject({ amount: '10000', count: 1 })
    const { body } = await world.get('/api/budgets', tenant.headers)
    expect(body.budgets).toMatchObject([{ spent_usdc: 0.01, reserved_usdc: 0 }])
  })
})

test('days are those of the time zone that the request names', async () => {
  const tenant = await richTenant(world)
  await pay(tenant, '100')
  const at = world.clock.now()
  for (const time_zone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago', 'UTC']) {
    const day = new Intl.DateTimeFormat('en-CA', { timeZone: time_zone, dateStyle: 'short' }).format(at)
    const report = await spend(tenant, `?group_by=day&time_zone=${time_zone}`)
    expect(report.groups).toMatchObject([{ day, amount: '100' }])
  }
})

test('a spend trade is money, the notional of any other trade is apart', async () => {
  const tenant = await richTenant(world)
  const bought = await trade(tenant, { symbol: 'acme-store', instrument_type: 'spend', quantity: 5, agent_id: 'buyer' })
  const order = { symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.001 }
  expect((await trade(tenant, order)).status).toBe('executed')
  expect(bought.status).toBe('executed')
  const report = await spend(tenant, '?group_by=merchant')
  expect(report.totals).toMatchObject({ amount: '5000000', count: 1, trades: 1 })
  expect(report.totals.notional_usdc).toBeGreaterThan(0)
  expect(report.groups).toMatchObject([
    { merchant: 'acme-store', amount: '5000000', notional: '0', trades: 0 },
    { amount: '0', count: 0, notional: report.totals.notional, trades: 1 },
  ])
  expect((await spend(tenant, '?group_by=spender')).groups[0]).toMatchObject({ spender: 'buyer', amount: '5000000' })
  const tower = await world.get('/api/control-tower', tenant.headers)
  expect(tower.body.spend).toEqual({ today_usdc: 5, month_usdc: 5 })
})

test('groups by each dimension have the same sum, and pages together are the whole', async () => {
  const tenant = await richTenant(world)
  await run(world, tenant)
  await run(world, tenant, { agent_id: 'writer-v1' })
  for (const merchant of ['a', 'b', 'c', 'd', 'e']) await pay(tenant, '100', {}, { merchant: { id: merchant } })
  const total = (await spend(tenant)).totals.amount
  for (const dimension of [
    'day',
    'spender',
    'team',
    'lane',
    'merchant',
    'key',
    'rail',
    'tag&tag=project',
    'lane,rail',
  ]) {
    const { groups, totals } = await spend(tenant, `?group_by=${dimension}`)
    expect(totals.amount).toBe(total)
    const sum = groups.reduce((amount: bigint, group: { amount: string }) => amount + BigInt(group.amount), 0n)
    expect(sum.toString(), dimension).toBe(total)
  }
  expect((await spend(tenant, '?group_by=lane')).groups).toMatchObject([
    { lane: null, amount: '500' },
    { lane: 'comedian-v1', amount: '10000' },
    { lane: 'writer-v1', amount: '13000' },
  ])
  const whole = (await spend(tenant, '?group_by=merchant')).groups
  const parts: unknown[] = []
  let cursor = ''
  do {
    const page = await spend(tenant, `?group_by=merchant&limit=2${cursor && `&cursor=${cursor}`}`)
    expect(page.totals.amount).toBe(total)
    parts.push(...page.groups)
    cursor = page.next_cursor
  } while (cursor)
  expect(parts).toEqual(whole)
  expect(parts).toHaveLength(6)
})

test('CSV has the same figures, by format or Accept, and no name of it is a formula', async () => {
  const tenant = await richTenant(world)
  await pay(tenant, '100', {}, { merchant: { id: '=HYPERLINK("http://evil","x")' } })
  await pay(tenant, '200', {}, { merchant: { id: 'plain, "quoted"' } })
  const byFormat = await world.get('/api/spend?group_by=merchant&format=csv', tenant.headers)
  const byAccept = await world.get('/api/spend?group_by=merchant', { ...tenant.headers, accept: 'text/csv' })
  expect(byFormat.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  expect(byAccept.text).toBe(byFormat.text)
  expect(byFormat.text).toBe(
    [
      'merchant,amount,amount_usdc,count,reported,reported_usdc,notional,notional_usdc,trades',
      `"'=HYPERLINK(""http://evil"",""x"")",100,0.0001,1,100,0.0001,0,0,0`,
      '"plain, ""quoted""",200,0.0002,1,200,0.0002,0,0,0',
      '',
    ].join('\r\n'),
  )
  const first = await world.get('/api/spend?group_by=merchant&format=csv&limit=1', tenant.headers)
  const cursor = first.headers.get('x-next-cursor')
  const second = await world.get(`/api/spend?group_by=merchant&format=csv&limit=1&cursor=${cursor}`, tenant.headers)
  expect(second.text).toContain('plain')
  expect(second.headers.get('x-next-cursor')).toBeNull()
  const json = await world.get('/api/spend?format=json', { ...tenant.headers, accept: 'text/csv' })
  expect(json.body.totals.amount).toBe('300')
})

test('a range is by time: its start is in it, its end is not', async () => {
  const tenant = await richTenant(world)
  await pay(tenant, '100')
  const at = world.clock.now().toISOString()
  const after = new Date(world.clock.now().getTime() + 1).toISOString()
  expect((await spend(tenant, `?from=${at}&to=${after}`)).totals.amount).toBe('100')
  const before = new Date(world.clock.now().getTime() - 86_400_000).toISOString()
  expect((await spend(tenant, `?from=${before}&to=${at}`)).totals.amount).toBe('0')
})

test('a read of a month without sums goes by the ids and times of that month and of that tenant', async () => {
  const tenant = await richTenant(world)
  for (let n = 0; n < 3; n += 1) await run(world, tenant)
  await pay(tenant, '100')
  await trade(tenant, { symbol: 'BTC-USD', instrument_type: 'crypto', quantity: 0.001 })
  const at = (ms: number) => new Date(world.clock.now().getTime() + ms)
  const countRowsRead = (since: Date, until: Date) =>
    world.db.transaction().execute(async (tx) => {
      const readCounters = async () => {
        const { rows } = await sql<{ name: string; read: number }>`
          select substring(relname from '^(ended_runs|open_runs|preauths|rh_runs)') as name, sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
          from pg_stat_xact_user_tables where relname ~ '^(ended_runs|open_runs|preauths|rh_runs)' group by 1 order by 1
        `.execute(tx)
        return rows
      }
      // Small tables are read whole; what counts is that the indexes fit.
      await sql`set local enable_seqscan = off`.execute(tx)
      await sql`update spend_hours_begin set hour = 'infinity'`.execute(tx)
      const before = await readCounters()
      await sql`select * from ${spendIn({ tenantId: tenant.tenantId, since, until }, { isByTag: true, dayZone: null })} entry`.execute(
        tx,
      )
      const after = await readCounters()
      await sql`update spend_hours_begin set hour = '-infinity'`.execute(tx)
      return Object.fromEntries(after.map(({ name, read }, place) => [name, read - before[place]!.read]))
    })
  const nothing = { ended_runs: 0, open_runs: 0, preauths: 0, rh_runs: 0 }
  expect(await countRowsRead(at(-30 * 86_400_000), at(-86_400_000))).toEqual(nothing)
  expect(await countRowsRead(at(-1), at(1))).toEqual({ ended_runs: 3, open_runs: 0, preauths: 1, rh_runs: 1 })
})

/** The runs behind each group, as the list of runs has them, sum up to the part of the group that was paid for runs. */
async function expectRunsBehind(tenant: Tenant, dimension: string, parameter: string, totalMicro: number) {
  const { groups } = await spend(tenant, `?group_by=${dimension},rail`)
  const ofRuns = new Map<string, number>()
  for (const group of groups)
    if (['wallet', 'x402'].includes(group.rail))
      ofRuns.set(group[dimension], (ofRuns.get(group[dimension]) ?? 0) + Number(group.amount))
  expect([...ofRuns.values()].reduce((sum, amount) => sum + amount, 0)).toBe(totalMicro)
  for (const [name, amount] of ofRuns) {
    const query = new URLSearchParams({ [parameter]: name, spent: 'true', limit: '100' })
    const { body } = await world.get(`/api/runs?${query}`, tenant.headers)
    const prices = body.runs.map((item: { price_usdc: number }) => Math.round(item.price_usdc * 1e6))
    expect(prices.reduce((sum: number, price: number) => sum + price, 0)).toBe(amount)
  }
}

test('random runs, payments, trades and failures: spend, budgets, analytics and control tower agree to the atom', async () => {
  const who = fc.record({
    spender: fc.constantFrom('ann', 'bob', undefined),
    tags: fc.constantFrom({ project: 'x' }, { project: 'y', cost: '7' }, undefined),
  })
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('run' as const),
      agent: fc.constantFrom('comedian-v1', 'writer-v1', 'coder-v1'),
      who,
    }),
    fc.record({ kind: fc.constant('loop' as const), who }),
    fc.record({ kind: fc.constant('fail' as const) }),
    // A pre-authorisation for this service whose payment is that of a run without its token.
    fc.record({ kind: fc.constant('own' as const) }),
    fc.record({
      kind: fc.constant('pay' as const),
      amount: fc.integer({ min: 1, max: 2_000_000 }),
      share: fc.integer({ min: 0, max: 100 }),
      end: fc.constantFrom('settled', 'voided', 'failed', 'open'),
      who,
    }),
    fc.record({ kind: fc.constant('buy' as const), quantity: fc.integer({ min: 1, max: 20 }), who }),
    fc.record({ kind: fc.constant('trade' as const), quantity: fc.constantFrom(0.0001, 0.00037, 0.001), who }),
  )
  const perform = async (tenant: Tenant, step: typeof action extends fc.Arbitrary<infer T> ? T : never) => {
    if (step.kind === 'fail') return failedRun(tenant)
    if (step.kind === 'own') {
      const { body } = await world.post('/api/pre-auth', ownTerms, tenant.headers)
      const closing = { preauth_id: body.preauth_id, outcome: 'settled', transaction: await payRun(tenant.headers) }
      expect((await world.post('/api/pre-auth/close', closing, tenant.headers)).status).toBe(200)
      return
    }
    const { who: payer } = step
    if (step.kind === 'run') {
      const { status, text } = await run(world, tenant, { agent_id: step.agent, ...payer })
      expect(status, text).toBe(200)
    } else if (step.kind === 'loop') {
      const body = { input: 'Tell me a joke.', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
      expect((await world.post('/api/loop', { ...body, ...payer }, tenant.headers)).status).toBe(200)
    } else if (step.kind === 'pay') {
      const charged = Math.floor((step.amount * step.share) / 100)
      const close = step.end === 'settled' ? { actual_amount: String(charged) } : { outcome: step.end }
      await pay(tenant, String(step.amount), step.end === 'open' ? null : close, payer)
    } else if (step.kind === 'buy')
      await trade(tenant, { symbol: 'acme-store', instrument_type: 'spend', quantity: step.quantity, ...payer })
    else await trade(tenant, { symbol: 'BTC-USD', instrument_type: 'crypto', quantity: step.quantity, ...payer })
  }
  const budgets = [
    { budget_id: 'all', window: 'month', limit_usdc: 100_000 },
    { budget_id: 'trades', window: 'total', limit_usdc: 1_000_000, applies_to: ['trades'] },
    { budget_id: 'runs', window: 'rolling_24h', limit_usdc: 100_000, applies_to: ['runs'] },
    { budget_id: 'shop', window: 'total', limit_usdc: 100_000, scope: { type: 'merchant', id: 'shop' } },
  ]
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 12 }), async (actions) => {
      const tenant = await richTenant(world)
      for (const body of budgets) {
        const answer = await world.post('/api/budgets', body, tenant.headers)
        expect(answer.status, answer.text).toBe(200)
      }
      for (const step of actions) await perform(tenant, step)
      for (const isFolded of [false, true]) {
        if (isFolded) await world.service.sequencer.runOnce()
        const [report, budgetList, analytics, tower, ...grouped] = await Promise.all([
          spend(tenant),
          world.get('/api/budgets', tenant.headers),
          world.get('/api/analytics?window=24h', tenant.headers),
          world.get('/api/control-tower', tenant.headers),
          ...['rail', 'merchant', 'spender', 'tag&tag=project', 'lane'].map((name) =>
            spend(tenant, `?group_by=${name}`),
          ),
        ])
        type Group = Record<string, string | null> & { amount: string; notional: string }
        const [rails, merchants, spenders, projects, lanes] = grouped.map(({ groups }) => groups as Group[])
        const sum = (groups: Group[], name: string, value: string | null) =>
          groups.filter((group) => group[name] === value).reduce((atoms, group) => atoms + Number(group.amount), 0)
        const atoms = (usdc: number) => Math.round(usdc * 1e6)
        const ofRuns = sum(rails!, 'rail', 'wallet') + sum(rails!, 'rail', 'x402')
        const spent = Object.fromEntries(
          budgetList.body.budgets.map((row: { budget_id: string; spent_usdc: number }) => [
            row.budget_id,
            atoms(row.spent_usdc),
          ]),
        )
        expect(spent).toEqual({
          all: Number(report.totals.amount),
          trades: Number(report.totals.notional),
          runs: ofRuns,
          shop: sum(merchants!, 'merchant', 'shop'),
        })
        expect(atoms(analytics.body.totals.spend_usdc)).toBe(ofRuns)
        expect(analytics.body.by_agent.map((lane: { spend_usdc: number }) => atoms(lane.spend_usdc))).toEqual(
          analytics.body.by_agent.map((lane: { agent_id: string }) => sum(lanes!, 'lane', lane.agent_id)),
        )
        expect(atoms(tower.body.spend.month_usdc)).toBe(Number(report.totals.amount))
        for (const groups of [rails!, merchants!, spenders!, projects!, lanes!])
          expect(groups.reduce((total, group) => total + Number(group.amount), 0)).toBe(Number(report.totals.amount))
        await expectRunsBehind(tenant, 'spender', 'spender', ofRuns)
        await expectRunsBehind(tenant, 'lane', 'agent_id', ofRuns)
        const named = actions.filter((step) => step.kind === 'run' || step.kind === 'buy' || step.kind === 'loop')
        for (const name of ['ann', 'bob'])
          if (named.some((step) => step.who.spender === name))
            expect(sum(spenders!, 'spender', name)).toBeGreaterThan(0)
        for (const value of ['x', 'y'])
          if (named.some((step) => step.who.tags?.project === value))
            expect(sum(projects!, 'tag', value)).toBeGreaterThan(0)
      }
    }),
    { numRuns: 12 },
  )
}, 180_000)
