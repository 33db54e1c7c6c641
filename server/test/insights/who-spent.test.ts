import { afterAll, beforeAll, expect, test } from 'vitest'
import { openWorld, richTenant, run, type Tenant, type World } from '../governance/world.ts'

/** Analytics, alerts and the audit trail know who spent: spender, team, tags, key and merchant. */
let world: World
beforeAll(async () => {
  world = await openWorld({ PREAUTH_CLOSE_SECONDS: '60' })
})
afterAll(() => world?.close())

const agentKey = async (tenant: Tenant, spender: string, team: string) => {
  const body = { name: spender, scopes: ['read', 'run'], spender, team }
  const made = await world.post('/api/keys', body, tenant.headers)
  expect(made.status, made.text).toBe(201)
  return { 'x-api-key': made.body.api_key as string }
}

async function pay(tenant: Tenant, headers: Record<string, string>, amount: string, tags?: Record<string, string>) {
  const body = { agent_id: 'payer-agent', merchant: { id: 'shop' }, amount, ...(tags && { tags }) }
  const preauth = await world.post('/api/pre-auth', body, { ...tenant.headers, ...headers })
  expect(preauth.status, preauth.text).toBe(201)
  return preauth.body.preauth_id as string
}

test('the groups of analytics are those of /api/spend, to the atom', async () => {
  const tenant = await richTenant(world)
  const north = await agentKey(tenant, 'north', 'sales')
  const south = await agentKey(tenant, 'south', 'sales')
  await run(world, tenant, { tags: { project: 'apollo', stage: 'test' } }, north)
  await run(world, tenant, { tags: { project: 'zeus' } }, south)
  await run(world, tenant)
  const closed = await pay(tenant, north, '700', { project: 'apollo' })
  await world.post('/api/pre-auth/close', { preauth_id: closed, outcome: 'settled' }, { ...tenant.headers, ...north })
  await pay(tenant, south, '900')
  const trade = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy', quantity: 3, tags: { project: 'zeus' } }
  expect((await world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...trade }, south)).status).toBe(200)
  const crypto = { symbol: 'BTC-USD', instrument_type: 'crypto', side: 'buy', quantity: 0.001 }
  expect((await world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...crypto }, north)).status).toBe(200)

  const analytics = (await world.get('/api/analytics?window=7d', tenant.headers)).body
  expect(analytics.groups_complete).toBe(true)
  const range = `from=${analytics.window.since}`
  const groupsOf = async (query: string) =>
    (await world.get(`/api/spend?${range}&${query}`, tenant.headers)).body.groups as Record<string, unknown>[]
  const byName = (name: string) => (a: Record<string, unknown>, b: Record<string, unknown>) =>
    String(a[name] ?? '') < String(b[name] ?? '') ? -1 : 1
  for (const [field, dimension] of [
    ['by_spender', 'spender'],
    ['by_team', 'team'],
    ['by_key', 'key'],
  ] as const) {
    const groups = await groupsOf(`group_by=${dimension}`)
    expect(groups.length, field).toBeGreaterThan(1)
    expect([...analytics[field]].sort(byName(dimension)), field).toEqual([...groups].sort(byName(dimension)))
  }
  for (const name of ['project', 'stage']) {
    const groups = (await groupsOf(`group_by=tag&tag=${name}`)).filter(({ tag }) => tag !== null)
    const rows = analytics.by_tag.filter(({ tag }: { tag: string }) => tag === name)
    expect(
      rows.map(({ tag: _, value, ...sums }: Record<string, unknown>) => ({ tag: value, ...sums })).sort(byName('tag')),
    ).toEqual(groups)
  }
  // The largest first.
  expect(analytics.by_spender[0].spender).toBe('south')
})

test('an alert about a payment says who spends', async () => {
  const tenant = await richTenant(world)
  const north = await agentKey(tenant, 'north', 'sales')
  const id = await pay(tenant, north, '700', { project: 'apollo' })
  world.clock.advance(120_000)
  await world.service.governance.sweepOrphanedPreauths()
  const [alert] = await world.db.selectFrom('alerts').selectAll().where('tenant_id', '=', tenant.tenantId).execute()
  expect(alert).toMatchObject({
    type: 'preauth_orphaned',
    data: {
      preauth_id: id,
      agent_id: 'payer-agent',
      spender: 'north',
      team: 'sales',
      tags: { project: 'apollo' },
      merchant: 'shop',
    },
  })
})

test('the audit trail is filtered by spender and team', async () => {
  const tenant = await richTenant(world)
  const north = await agentKey(tenant, 'north', 'sales')
  const south = await agentKey(tenant, 'south', 'support')
  const mine = (await run(world, tenant, {}, north)).body.run_id
  await run(world, tenant, {}, south)
  const trade = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy', quantity: 3 }
  const traded = (await world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...trade }, north)).body.run_id
  const paid = await pay(tenant, north, '700')
  await world.service.sequencer.runOnce()
  const subjects = async (query: string) =>
    (await world.get(`/api/audit?limit=100&${query}`, tenant.headers)).body.events.map(
      ({ type, subject }: { type: string; subject: string }) => `${type} ${subject}`,
    )
  const expected = [
    `run.admitted ${mine}`,
    `run.completed ${mine}`,
    `rh_run.executed ${traded}`,
    `preauth.created ${paid}`,
  ]
  expect((await subjects('spender=north')).sort()).toEqual(expect.arrayContaining(expected))
  expect(await subjects('spender=north')).toEqual(await subjects('team=sales'))
  for (const subject of await subjects('spender=south')) expect(expected).not.toContain(subject)
  expect(await subjects('spender=north&team=support')).toEqual([])
  expect((await world.get('/api/audit?spender=', tenant.headers)).status).toBe(400)
  const exported = (await world.get('/api/audit?format=ndjson', tenant.headers)).text
  expect(exported.split('\n').filter((line) => line.includes('"spender":"north"')).length).toBeGreaterThanOrEqual(4)
  expect((await world.get('/api/audit?format=ndjson&spender=north', tenant.headers)).status).toBe(400)
})
