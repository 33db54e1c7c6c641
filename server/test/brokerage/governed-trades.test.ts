import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPendingWork } from '../../src/modules/insights/control-tower.store.ts'
import { counterFaults, openWorld, type World } from '../governance/world.ts'
import { readAudits } from '../journal.ts'

/** Trades through the whole service: what mandates, policies, budgets and freezes of the tenant refuse. */
let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => {
  expect(await counterFaults(world)).toEqual([])
  await world.close()
})

type Headers = Record<string, string>
type Trader = { tenantId: string; headers: Headers }

const openTenant = async (): Promise<Trader> => world.onboard()
const spend = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy', quantity: 40 }
const bitcoin = { symbol: 'BTC-USD', instrument_type: 'crypto', side: 'buy', quantity: 0.001 }
const trade = (tenant: Trader, body: Record<string, unknown>, headers = tenant.headers) =>
  world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...body }, headers)
const post = async (tenant: Trader, path: string, body: unknown) => {
  const response = await world.post(path, body, tenant.headers)
  expect(response.status, response.text).toBeLessThan(300)
  return response.body
}
/** A key of the tenant that may run and read, and nothing else. */
const agentKey = async (tenant: Trader, bonds: Record<string, unknown> = {}): Promise<Headers> => {
  const { api_key } = await post(tenant, '/api/keys', { name: 'agent', scopes: ['read', 'run'], ...bonds })
  return { 'x-api-key': api_key }
}
const putPolicy = (tenant: Trader, type: string, constraints: Record<string, unknown>, headers = tenant.headers) =>
  world.call('PUT', `/api/rh/policies/${type}`, { constraints }, headers)
const failedChecks = (body: { checks: { id: string; result: string }[] }) =>
  body.checks.filter((check) => check.result === 'fail').map((check) => check.id)
const getRun = async (tenant: Trader, runId: string) => (await world.get(`/api/rh/runs/${runId}`, tenant.headers)).body

describe('an agent cannot choose its own leash', () => {
  test('a key without control cannot name a policy, unless the policy is selectable', async () => {
    const tenant = await openTenant()
    const agent = await agentKey(tenant)
    const generous = { constraints: { require_approval_above_usdc: 5_000, max_notional_usdc: 9_000 } }
    const policy = await post(tenant, '/api/policies', { name: 'Generous', ...generous })
    const large = { ...spend, quantity: 1_500, policy_id: policy.id }
    const refused = await trade(tenant, large, agent)
    expect([refused.status, refused.body.code], refused.text).toEqual([403, 'forbidden'])
    expect((await trade(tenant, large)).status).toBe(200)

    const selectable = await post(tenant, '/api/policies', { name: 'Choice', selectable: true, ...generous })
    expect(selectable).toMatchObject({ selectable: true })
    expect((await trade(tenant, { ...large, policy_id: selectable.id }, agent)).status).toBe(200)
    const closed = await world.call('PATCH', `/api/policies/${selectable.id}`, { selectable: false }, tenant.headers)
    expect(closed.body).toMatchObject({ selectable: false, version: 2 })
    expect((await trade(tenant, { ...large, policy_id: selectable.id }, agent)).status).toBe(403)
  })

  test('a policy that is for another spender, team or key cannot be named', async () => {
    const tenant = await openTenant()
    const generous = { constraints: { require_approval_above_usdc: 5_000, max_notional_usdc: 9_000 } }
    const identities = [
      { identity_type: 'spender', identity_id: 'desk-1' },
      { identity_type: 'team', identity_id: 'trading' },
      { identity_type: 'api_key', api_key: (await agentKey(tenant))['x-api-key'] },
    ]
    for (const identity of identities) {
      const policy = await post(tenant, '/api/policies', { name: 'Theirs', ...identity, ...generous })
      const large = { ...spend, quantity: 1_500, spender: 'desk-2', policy_id: policy.id }
      const refused = await trade(tenant, large)
      expect([refused.status, refused.body.message], refused.text).toEqual([
        400,
        `Policy 'Theirs' is for another ${identity.identity_type === 'api_key' ? 'key' : identity.identity_type}.`,
      ])
      await world.call('DELETE', `/api/policies/${policy.id}`, undefined, tenant.headers)
    }
    const own = { name: 'Own', identity_type: 'spender', identity_id: 'desk-2', ...generous }
    const { id } = await post(tenant, '/api/policies', own)
    expect((await trade(tenant, { ...spend, quantity: 1_500, spender: 'desk-2', policy_id: id })).status).toBe(200)
  })

  test('the hash of a policy has selectable in it only when it is true', async () => {
    const tenant = await openTenant()
    const body = { name: 'Same', constraints: { max_notional_usdc: 5 } }
    const [silent, closed, open] = [
      await post(tenant, '/api/policies', body),
      await post(tenant, '/api/policies', { ...body, selectable: false }),
      await post(tenant, '/api/policies', { ...body, selectable: true }),
    ]
    expect(closed.content_hash).toBe(silent.content_hash)
    expect(open.content_hash).not.toBe(silent.content_hash)
  })

  test('a key without control cannot set the default of a type', async () => {
    const tenant = await openTenant()
    const response = await putPolicy(tenant, 'spend', { max_notional_usdc: 9_999 }, await agentKey(tenant))
    expect([response.status, response.body.code]).toEqual([403, 'forbidden'])
  })
})

describe('where the limits of a trade come from', () => {
  test('the tenant’s default for the type stands before the shipped one, and is versioned and audited', async () => {
    const tenant = await openTenant()
    const read = () => world.get('/api/rh/policies/spend', tenant.headers)
    expect((await read()).body).toMatchObject({
      instrument_type: 'spend',
      source: 'shipped',
      version: 0,
      constraints: { require_approval_above_usdc: 1_000, max_notional_usdc: 10_000 },
      tenant_constraints: null,
    })
    const changed = await putPolicy(tenant, 'spend', { max_notional_usdc: 30, require_approval_above_usdc: 20 })
    expect(changed.body).toMatchObject({
      source: 'tenant',
      version: 1,
      constraints: { max_notional_usdc: 30, require_approval_above_usdc: 20, max_per_day_usdc: 25_000 },
      tenant_constraints: { max_notional_usdc: 30, require_approval_above_usdc: 20 },
    })
    const refused = await trade(tenant, spend)
    expect([refused.status, refused.body.error, failedChecks(refused.body)]).toEqual([
      422,
      'budget_exceeded',
      ['order_notional'],
    ])
    expect((await trade(tenant, { ...spend, quantity: 25 })).status).toBe(202)
    expect((await trade(tenant, { ...spend, quantity: 20 })).status).toBe(200)
    // Another type keeps its own, and the same again is not a new version.
    expect((await trade(tenant, bitcoin)).status).toBe(200)
    expect((await putPolicy(tenant, 'spend', { require_approval_above_usdc: 20, max_notional_usdc: 30 })).body).toEqual(
      changed.body,
    )
    expect((await putPolicy(tenant, 'spend', {})).body).toMatchObject({ source: 'shipped', version: 2 })
    expect((await trade(tenant, spend)).status).toBe(200)
    const { policies } = (await world.get('/api/rh/policies', tenant.headers)).body
    expect(policies.map((policy: { instrument_type: string }) => policy.instrument_type)).toEqual([
      'equity',
      'perp',
      'crypto',
      'rwa',
      'earn',
      'spend',
    ])
    const audits = (await readAudits(world.db, tenant.tenantId)).filter(({ type }) => type === 'rh_policy.updated')
    expect(audits.map(({ subject, data }) => [subject, data.version])).toEqual([
      ['default-spend', 1],
      ['default-spend', 2],
    ])
  })

  test('bad defaults are a 400 that says why', async () => {
    const tenant = await openTenant()
    for (const [type, constraints, message] of [
      ['bond', {}, /instrument_type/],
      ['spend', { max_notional_usdc: -1 }, /max_notional_usdc/],
      ['spend', { max_notional_usdc: 0.0000001 }, /six decimals/],
      ['spend', { max_concentration: 2 }, /max_concentration/],
      ['spend', { surprise: 1 }, /surprise/],
    ] as const) {
      const response = await putPolicy(tenant, type, constraints)
      expect([response.status, response.body.error], response.text).toEqual([400, 'invalid_request'])
      expect(response.body.message).toMatch(message)
    }
  })

  test('a named policy fills what it leaves open from the tenant’s default', async () => {
    const tenant = await openTenant()
    await putPolicy(tenant, 'spend', { require_approval_above_usdc: 10 })
    const policy = await post(tenant, '/api/policies', { name: 'Named', constraints: { max_notional_usdc: 50 } })
    expect((await trade(tenant, { ...spend, policy_id: policy.id })).status).toBe(202)
    expect((await trade(tenant, { ...spend, quantity: 60, policy_id: policy.id })).status).toBe(422)
  })
})

describe('who trades', () => {
  test('spender, team, tags and key are in the run and in the receipt', async () => {
    const tenant = await openTenant()
    const bound = await agentKey(tenant, { spender: 'desk-1', team: 'trading' })
    const response = await trade(tenant, { ...spend, agent_id: 'bot-1', tags: { project: 'apollo' } }, bound)
    expect(response.status, response.text).toBe(200)
    const party = {
      spender: 'desk-1',
      team: 'trading',
      tags: { project: 'apollo' },
      agent_id: 'bot-1',
      mandate_id: null,
    }
    expect(response.body.receipt).toMatchObject(party)
    expect(await getRun(tenant, response.body.run_id)).toMatchObject({ ...party, key_id: response.body.receipt.key_id })

    const named = await trade(tenant, { ...spend, agent_id: 'bot-1', spender: 'desk-2' })
    expect(named.body.receipt).toMatchObject({ spender: 'desk-2', team: null, tags: {} })
    expect((await trade(tenant, { ...spend, agent_id: 'bot-1' })).body.receipt).toMatchObject({ spender: 'bot-1' })
    const { receipt } = (await trade(tenant, spend)).body
    expect(receipt.spender).toBe(`key:${receipt.key_id}`)
  })

  test('a key that is bound to a spender cannot name another', async () => {
    const tenant = await openTenant()
    const bound = await agentKey(tenant, { spender: 'desk-1' })
    const response = await trade(tenant, { ...spend, spender: 'desk-2' }, bound)
    expect([response.status, response.body.code], response.text).toEqual([403, 'forbidden'])
    expect((await trade(tenant, { ...spend, spender: 'desk-1' }, bound)).status).toBe(200)
  })

  test('tags are at most eight pairs of text', async () => {
    const tenant = await openTenant()
    const nine = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`t${index}`, 'x']))
    for (const tags of [nine, { a: 1 }, { '': 'x' }, 'text'])
      expect((await trade(tenant, { ...spend, tags })).status).toBe(400)
  })
})

describe('lists', () => {
  test('GET /api/rh/runs lists runs newest first by status and in pages, and the control tower counts what waits', async () => {
    const tenant = await openTenant()
    const executed = [(await trade(tenant, spend)).body.run_id, (await trade(tenant, spend)).body.run_id]
    const pending = (await trade(tenant, { ...spend, quantity: 1_500 })).body.run_id
    const list = async (query: string) => (await world.get(`/api/rh/runs${query}`, tenant.headers)).body
    const ids = (page: { runs: { run_id: string }[] }) => page.runs.map((run) => run.run_id)
    expect(ids(await list(''))).toEqual([pending, executed[1], executed[0]])
    const waiting = await list('?status=pending_approval')
    expect(ids(waiting)).toEqual([pending])
    expect(waiting).toMatchObject({ has_more: false, next_cursor: null })
    expect(waiting.runs[0]).toEqual(await getRun(tenant, pending))
    const first = await list('?limit=2')
    expect(first.has_more).toBe(true)
    expect(ids(await list(`?limit=2&cursor=${first.next_cursor}`))).toEqual([executed[0]])
    const stranger = await openTenant()
    expect((await world.get('/api/rh/runs', stranger.headers)).body.runs).toEqual([])
    expect((await world.get('/api/rh/runs?status=odd', tenant.headers)).status).toBe(400)
    expect((await world.get('/api/rh/runs?cursor=odd', tenant.headers)).status).toBe(400)
    expect(await readPendingWork(world.db, tenant.tenantId)).toMatchObject({
      approvals_pending: 0,
      brokerage_approvals_pending: 1,
    })
  })
})

const ruleOf = (body: { policy_results: { rule: string; outcome: string }[] }) =>
  body.policy_results.filter(({ outcome }) => outcome === 'blocked').map(({ rule }) => rule)
const expectRefused = (
  response: Awaited<ReturnType<typeof trade>>,
  error: 'policy_blocked' | 'budget_exceeded',
  rule: string,
) => {
  expect([response.status, response.body.error], response.text).toEqual([422, error])
  expect(ruleOf(response.body), response.text).toContain(rule)
  expect(failedChecks(response.body)).toContain('governance')
}
const readBudget = async (tenant: Trader, budgetId: string) => {
  const { budgets } = (await world.get('/api/budgets', tenant.headers)).body
  const { spent_usdc, reserved_usdc } = budgets.find((budget: { budget_id: string }) => budget.budget_id === budgetId)
  return [spent_usdc, reserved_usdc]
}

describe('denials of every enforced policy bind every trade, named or not', () => {
  test('denied_instruments: ["crypto"] refuses a BTC order that names no policy', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/policies', { name: 'No crypto', constraints: { denied_instruments: ['crypto'] } })
    const refused = await trade(tenant, bitcoin)
    expectRefused(refused, 'policy_blocked', 'denied_instruments')
    expect(await getRun(tenant, refused.body.run_id)).toMatchObject({ status: 'rejected', fills: [] })
    // Naming another policy, or a default of the tenant, does not lift the denial.
    const generous = await post(tenant, '/api/policies', {
      name: 'Generous',
      constraints: { max_notional_usdc: 9_000 },
    })
    expectRefused(await trade(tenant, { ...bitcoin, policy_id: generous.id }), 'policy_blocked', 'denied_instruments')
    await putPolicy(tenant, 'crypto', { max_notional_usdc: 9_000 })
    expectRefused(await trade(tenant, bitcoin), 'policy_blocked', 'denied_instruments')
    expect((await trade(tenant, spend)).status).toBe(200)
  })

  test.each([
    ['an instrument by its symbol', { denied_instruments: ['BTC-USD'] }, 'denied_instruments'],
    ['a list of allowed instruments', { allowed_instruments: ['spend'] }, 'allowed_instruments'],
    ['the broker as merchant', { denied_merchants: ['coinbase-paper'] }, 'denied_merchants'],
    ['a list of allowed merchants', { allowed_merchants: ['acme-store'] }, 'allowed_merchants'],
    ['a denied agent', { denied_agents: ['bot-1'] }, 'denied_agents'],
    ['a list of allowed agents', { allowed_agents: ['bot-2'] }, 'allowed_agents'],
    ['the hours', { allowed_hours_utc: [] }, 'allowed_hours_utc'],
    ['a mandate that is required', { require_mandate: true }, 'require_mandate'],
  ])('%s', async (_name, constraints, rule) => {
    const tenant = await openTenant()
    const policy = await post(tenant, '/api/policies', { name: 'Denial', constraints })
    expectRefused(await trade(tenant, { ...bitcoin, agent_id: 'bot-1' }), 'policy_blocked', rule)
    const warn = await world.call('PATCH', `/api/policies/${policy.id}`, { mode: 'warn' }, tenant.headers)
    expect(warn.status).toBe(200)
    expect((await trade(tenant, { ...bitcoin, agent_id: 'bot-1' })).status).toBe(200)
  })

  test('the merchant of a spend, by its name', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/policies', { name: 'Denial', constraints: { denied_merchants: ['acme-store'] } })
    expectRefused(await trade(tenant, spend), 'policy_blocked', 'denied_merchants')
    expect((await trade(tenant, { ...spend, symbol: 'other-store' })).status).toBe(200)
  })

  test('a rule on the instrument denies, and one with review asks for a person', async () => {
    const tenant = await openTenant()
    const rules = [
      { field: 'instrument', op: '=', value: 'crypto', effect: 'deny' },
      { field: 'merchant', op: '=', value: 'acme-store', effect: 'review', reason: 'First time.' },
    ]
    await post(tenant, '/api/policies', { name: 'Rules', rules })
    expectRefused(await trade(tenant, bitcoin), 'policy_blocked', 'rules[0]')
    const pending = await trade(tenant, spend)
    expect([pending.status, pending.body.approval?.policy_verdict], pending.text).toEqual([202, 'requires_human'])
    expect((await world.post('/api/rh/approve', { run_id: pending.body.run_id }, tenant.headers)).status).toBe(200)
    await world.service.brokerage.brokerage.sweep()
    expect(await getRun(tenant, pending.body.run_id)).toMatchObject({ status: 'executed' })
  })

  test('a policy that requires two approvals, or another approver, is not satisfied by one', async () => {
    const tenant = await openTenant()
    const rules = [{ field: 'merchant', op: '=', value: 'acme-store', effect: 'review' }]
    await post(tenant, '/api/policies', { name: 'Two', rules, constraints: { approvals_required: 2 } })
    const waiting = await trade(tenant, spend)
    expect([waiting.status, waiting.body.approval?.approvals_required], waiting.text).toEqual([202, 2])
    const vote = await world.post('/api/rh/approve', { run_id: waiting.body.run_id }, tenant.headers)
    expect([vote.status, vote.body.status], vote.text).toEqual([200, 'pending_approval'])
    await world.service.brokerage.brokerage.sweep()
    expect(await getRun(tenant, waiting.body.run_id)).toMatchObject({ status: 'pending_approval', fills: [] })
    const threshold = { require_approval_above_usdc: 1, approvals_required: 2, max_notional_usdc: 50 }
    const two = await post(tenant, '/api/policies', { name: 'Threshold', constraints: threshold })
    const other = { ...spend, symbol: 'other-store', policy_id: two.id }
    expect((await trade(tenant, other)).body.approval).toMatchObject({ approvals_required: 2 })

    const separate = { require_approval_above_usdc: 1, separate_approver: true, max_notional_usdc: 50 }
    const policy = await post(tenant, '/api/policies', { name: 'Separate', constraints: separate })
    await world.call('DELETE', `/api/policies/${two.id}`, undefined, tenant.headers)
    const pending = await trade(tenant, { ...other, policy_id: policy.id })
    expect(pending.status, pending.text).toBe(202)
    const own = await world.post('/api/rh/approve', { run_id: pending.body.run_id }, tenant.headers)
    expect([own.status, own.body.code], own.text).toEqual([403, 'forbidden'])
  })

  test('a policy that requires a pre-authorisation refuses a spend, which has none', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/policies', { name: 'Preauth', constraints: { require_preauth: true } })
    expectRefused(await trade(tenant, spend), 'policy_blocked', 'require_preauth')
    expect((await trade(tenant, bitcoin)).status).toBe(200)
  })
})

describe('a frozen agent cannot trade', () => {
  test('as agent, as spender, by a bound key, or by leaving its name out', async () => {
    const tenant = await openTenant()
    const bound = await agentKey(tenant, { spender: 'bot-1' })
    const freeze = { action: 'freeze', agent_id: 'bot-1', reason: 'leaked' }
    await world.post('/api/control-tower', freeze, tenant.headers)
    expectRefused(await trade(tenant, { ...spend, agent_id: 'bot-1' }), 'policy_blocked', 'agent_frozen')
    expectRefused(await trade(tenant, { ...spend, agent_id: 'b', spender: 'bot-1' }), 'policy_blocked', 'agent_frozen')
    expectRefused(await trade(tenant, spend, bound), 'policy_blocked', 'agent_frozen')
    expectRefused(await trade(tenant, { ...spend, agent_id: 'bot-2' }, bound), 'policy_blocked', 'agent_frozen')
    const nameless = await trade(tenant, spend)
    expectRefused(nameless, 'policy_blocked', 'agent_frozen')
    expect(nameless.body).toMatchObject({ code: 'field_required', field_required: 'agent_id' })
    expect((await trade(tenant, { ...spend, agent_id: 'bot-2' })).status).toBe(200)
  })
})

describe('limits of the policies that speak of trades', () => {
  test('the smallest of each limit applies, and a policy that does not speak of trades limits none', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/policies', { name: 'Runs', constraints: { max_per_run_usdc: 0.02, max_per_day_usdc: 1 } })
    expect((await trade(tenant, spend)).status).toBe(200)
    await post(tenant, '/api/policies', { name: 'A', constraints: { max_notional_usdc: 50 } })
    await post(tenant, '/api/policies', {
      name: 'B',
      constraints: { allowed_instruments: ['spend'], max_per_run_usdc: 30, require_approval_above_usdc: 10 },
    })
    expect(failedChecks((await trade(tenant, spend)).body)).toEqual(['order_notional'])
    expect((await trade(tenant, { ...spend, quantity: 20 })).status).toBe(202)
    expect((await trade(tenant, { ...spend, quantity: 10 })).status).toBe(200)
    // A default of the tenant stands before them.
    await putPolicy(tenant, 'spend', { max_notional_usdc: 45 })
    expect((await trade(tenant, spend)).status).toBe(200)
  })

  test('their limit by day counts trades of every type, together with the runs that the policy is for', async () => {
    const tenant = await openTenant()
    const constraints = { denied_instruments: ['perp'], max_per_day_usdc: 100 }
    const policy = await post(tenant, '/api/policies', { name: 'Daily', constraints })
    expect((await trade(tenant, spend)).status).toBe(200)
    expect((await trade(tenant, { ...spend, symbol: 'other-store', quantity: 50 })).status).toBe(200)
    expectRefused(await trade(tenant, { ...bitcoin, quantity: 0.0002 }), 'policy_blocked', 'max_per_day_usdc')
    const { rows } = await world.service.database.pool.query(
      `select spent_micro, reserved_micro from limits where scope = 'policy:${policy.id}:max_per_day_usdc'`,
    )
    expect(rows).toEqual([{ spent_micro: 90_000_000n, reserved_micro: 0n }])
  })
})

describe('budgets count trades', () => {
  test('a budget of 1 USDC a day refuses a spend of 500, and counts one that fits', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'daily', window: 'day', limit_usdc: 1 })
    const refused = await trade(tenant, { ...spend, quantity: 500 })
    expectRefused(refused, 'budget_exceeded', 'limit_usdc')
    expect(await readBudget(tenant, 'daily')).toEqual([0, 0])
    expect((await trade(tenant, { ...spend, quantity: 0.6 })).status).toBe(200)
    expect(await readBudget(tenant, 'daily')).toEqual([0.6, 0])
    expectRefused(await trade(tenant, { ...spend, quantity: 0.6 }), 'budget_exceeded', 'limit_usdc')
  })

  test('other trades count their notional in budgets that apply to trades, and in no others', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'spending', window: 'day', limit_usdc: 1 })
    expect((await trade(tenant, bitcoin)).status).toBe(200)
    const budget = { budget_id: 'trading', window: 'day', limit_usdc: 100, applies_to: ['trades'] }
    await post(tenant, '/api/budgets', budget)
    const bought = await trade(tenant, bitcoin)
    expect(bought.status, bought.text).toBe(200)
    const [spent, reserved] = await readBudget(tenant, 'trading')
    expect(reserved).toBe(0)
    expect(spent).toBeLessThanOrEqual(bought.body.receipt.notional_usdc)
    expect(spent).toBeGreaterThan(50)
    expectRefused(await trade(tenant, bitcoin), 'budget_exceeded', 'limit_usdc')
    expect((await trade(tenant, { ...spend, quantity: 0.5 })).status).toBe(200)
    expect(await readBudget(tenant, 'trading')).toEqual([spent, 0])
  })

  test('a budget by spender needs the spender: leaving it out is refused', async () => {
    const tenant = await openTenant()
    const scope = { type: 'spender', id: 'desk-1' }
    await post(tenant, '/api/budgets', { budget_id: 'desk', scope, window: 'day', limit_usdc: 50 })
    const nameless = await trade(tenant, spend)
    expect([nameless.status, nameless.body.code, nameless.body.field_required], nameless.text).toEqual([
      422,
      'field_required',
      'spender',
    ])
    expect((await trade(tenant, { ...spend, spender: 'desk-1' })).status).toBe(200)
    expect((await trade(tenant, { ...spend, spender: 'desk-1' })).status).toBe(422)
    expect((await trade(tenant, { ...spend, spender: 'desk-2' })).status).toBe(200)
  })

  test('a trade that waits holds nothing; its approval holds, and is a 409 while the trade does not fit', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'total', window: 'total', limit_usdc: 2_000 })
    const first = (await trade(tenant, { ...spend, quantity: 1_500 })).body.run_id
    const second = (await trade(tenant, { ...spend, quantity: 1_500 })).body.run_id
    expect(await readBudget(tenant, 'total')).toEqual([0, 0])
    const approve = (runId: string) => world.post('/api/rh/approve', { run_id: runId }, tenant.headers)
    expect((await approve(first)).status).toBe(200)
    expect(await readBudget(tenant, 'total')).toEqual([0, 1_500])
    const refused = await approve(second)
    expect([refused.status, refused.body.code], refused.text).toEqual([409, 'conflict'])
    expect(ruleOf(refused.body)).toEqual(['limit_usdc'])
    expect(await getRun(tenant, second)).toMatchObject({ status: 'pending_approval', approved_by: null })
    // Cancelling the approved one releases its hold; the other fits then.
    await world.post(`/api/rh/runs/${first}/cancel`, {}, tenant.headers)
    expect(await readBudget(tenant, 'total')).toEqual([0, 0])
    expect((await approve(second)).status).toBe(200)
    await world.service.brokerage.brokerage.sweep()
    expect(await getRun(tenant, second)).toMatchObject({ status: 'executed' })
    expect(await readBudget(tenant, 'total')).toEqual([1_500, 0])
  })

  test('an approved trade belongs to the day of its approval, in its budget and in the meter', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'daily', window: 'day', limit_usdc: 2_000 })
    const now = world.clock.now()
    const midnight = new Date(`${now.toISOString().slice(0, 10)}T00:00:00.000Z`).getTime() + 24 * 3_600_000
    world.clock.set(new Date(midnight - 60_000))
    const { run_id } = (await trade(tenant, { ...spend, quantity: 1_500 })).body
    world.clock.set(new Date(midnight + 60_000))
    expect((await world.post('/api/rh/approve', { run_id }, tenant.headers)).status).toBe(200)
    await world.service.brokerage.brokerage.sweep()
    expect(await readBudget(tenant, 'daily')).toEqual([1_500, 0])
    const { groups } = (await world.get('/api/spend?group_by=day', tenant.headers)).body
    const day = new Date(midnight).toISOString().slice(0, 10)
    expect(groups.map((group: { day: string; amount: string }) => [group.day, group.amount])).toEqual([
      [day, '1500000000'],
    ])
  })

  test('the kill switch releases what approved trades hold', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'total', window: 'total', limit_usdc: 5_000 })
    for (const symbol of ['one-store', 'two-store']) {
      const { run_id } = (await trade(tenant, { ...spend, symbol, quantity: 1_500 })).body
      await world.post('/api/rh/approve', { run_id }, tenant.headers)
    }
    expect(await readBudget(tenant, 'total')).toEqual([0, 3_000])
    await world.post('/api/rh/kill-switch', { engaged: true }, tenant.headers)
    expect(await readBudget(tenant, 'total')).toEqual([0, 0])
  })

  test('a budget that breaches with review makes the trade wait for a person', async () => {
    const tenant = await openTenant()
    const budget = { budget_id: 'soft', window: 'day', limit_usdc: 10, on_breach: 'review' }
    await post(tenant, '/api/budgets', budget)
    const pending = await trade(tenant, spend)
    expect([pending.status, pending.body.status], pending.text).toEqual([202, 'pending_approval'])
    expect((await world.post('/api/rh/approve', { run_id: pending.body.run_id }, tenant.headers)).status).toBe(200)
    expect(await readBudget(tenant, 'soft')).toEqual([0, 0])
  })
})

describe('mandates bind trades', () => {
  const mandate = (tenant: Trader, agent_id: string | undefined, payee: string, max = 100) =>
    post(tenant, '/api/mandates', {
      name: 'Mandate',
      ...(agent_id && { agent_id }),
      constraints: [
        { type: 'payment.amount_range', currency: 'USDC', max },
        { type: 'payment.allowed_payees', allowed: [payee] },
        { type: 'payment.budget', currency: 'USDC', max: 100 },
      ],
    })
  const remaining = async (tenant: Trader, id: string) =>
    (await world.get(`/api/mandates/${id}/remaining`, tenant.headers)).body.remaining_usdc

  test('a mandate of the spender refuses a spend to another merchant, named or not', async () => {
    const tenant = await openTenant()
    const { id } = await mandate(tenant, 'bot-1', 'maps-store')
    expectRefused(await trade(tenant, { ...spend, agent_id: 'bot-1' }), 'policy_blocked', 'payment.allowed_payees')
    expectRefused(
      await trade(tenant, { ...spend, agent_id: 'x', spender: 'bot-1' }),
      'policy_blocked',
      'payment.allowed_payees',
    )
    const large = { ...spend, symbol: 'maps-store', agent_id: 'bot-1', quantity: 101 }
    expectRefused(await trade(tenant, large), 'policy_blocked', 'payment.amount_range')
    const nameless = await trade(tenant, spend)
    expect([nameless.status, nameless.body.code], nameless.text).toEqual([422, 'field_required'])

    const paid = await trade(tenant, { ...spend, symbol: 'maps-store', agent_id: 'bot-1' })
    expect(paid.status, paid.text).toBe(200)
    expect(paid.body.receipt.mandate_id).toBe(id)
    expect(await getRun(tenant, paid.body.run_id)).toMatchObject({ mandate_id: id })
    expect(await remaining(tenant, id)).toBe(60)
    // Nothing binds another agent.
    expect((await trade(tenant, { ...spend, agent_id: 'bot-2' })).status).toBe(200)
  })

  test('another trade is judged by its notional and its broker as payee', async () => {
    const tenant = await openTenant()
    const { id } = await mandate(tenant, undefined, 'coinbase-paper')
    expectRefused(await trade(tenant, spend), 'policy_blocked', 'payment.allowed_payees')
    const bought = await trade(tenant, bitcoin)
    expect(bought.status, bought.text).toBe(200)
    expect(bought.body.receipt.mandate_id).toBe(id)
    expect(await remaining(tenant, id)).toBeLessThan(50)
    expectRefused(await trade(tenant, { ...bitcoin, quantity: 0.01 }), 'policy_blocked', 'payment.amount_range')
  })

  test('a named mandate is used alone, and an unknown one is a 400', async () => {
    const tenant = await openTenant()
    const wide = await mandate(tenant, 'bot-1', 'acme-store')
    const narrow = await mandate(tenant, 'bot-1', 'acme-store', 10)
    const named = { ...spend, agent_id: 'bot-1', mandate_id: narrow.id }
    expectRefused(await trade(tenant, named), 'policy_blocked', 'payment.amount_range')
    const paid = await trade(tenant, { ...spend, agent_id: 'bot-1' })
    expect(paid.body.receipt?.mandate_id, paid.text).toBe(wide.id)
    expect((await trade(tenant, { ...named, mandate_id: 'man_unknown' })).status).toBe(400)
  })
})

describe('a trade names the rule that decided', () => {
  const policyOf = (tenant: Trader, name: string, constraints: Record<string, unknown>) =>
    post(tenant, '/api/policies', { name, constraints })
  const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.001, leverage: 2 }
  const ruleOf = async (tenant: Trader, body: Record<string, unknown>) => {
    const { status, text, body: waiting } = await trade(tenant, body)
    expect(status, text).toBe(202)
    return waiting.approval.rule
  }

  test('the shipped default is named as such, never as a policy that says nothing of approvals', async () => {
    const tenant = await openTenant()
    const noCrypto = await policyOf(tenant, 'no crypto', { denied_instruments: ['crypto'] })
    expect(await ruleOf(tenant, perp)).toEqual({
      policy_id: null,
      name: 'Default perp policy',
      sentence:
        'No rule of yours sets a threshold for this trade; the shipped default wants a person to approve every perp trade.',
      constraint: 'always_require_approval',
      asked: expect.any(Number),
    })
    // A named policy without a threshold does not ask either.
    const named = await ruleOf(tenant, { ...spend, quantity: 1_500, policy_id: noCrypto.id })
    expect(named).toMatchObject({ policy_id: null, sentence: expect.stringContaining('the shipped default wants') })
    expect((await putPolicy(tenant, 'spend', { require_approval_above_usdc: 30 })).status).toBe(200)
    expect(await ruleOf(tenant, spend)).toEqual({
      policy_id: null,
      name: "Tenant's default spend policy",
      sentence:
        "Your organisation's default for spend trades wants a person to approve trades above 30 USDC; this one is 40 USDC.",
      constraint: 'require_approval_above_usdc',
      limit: 30,
      asked: 40,
    })
  })

  test('of several policies the one with the smallest threshold or limit, not the first', async () => {
    const tenant = await openTenant()
    await policyOf(tenant, 'no crypto', { denied_instruments: ['crypto'] })
    await policyOf(tenant, 'lax', { max_notional_usdc: 9_000, require_approval_above_usdc: 9_000 })
    const strict = await policyOf(tenant, 'strict', { max_notional_usdc: 50, require_approval_above_usdc: 10 })
    expect(await ruleOf(tenant, { ...spend, quantity: 20 })).toEqual({
      policy_id: strict.id,
      name: 'strict',
      sentence: "The policy 'strict' wants a person to approve trades above 10 USDC; this one is 20 USDC.",
      constraint: 'require_approval_above_usdc',
      limit: 10,
      asked: 20,
    })
    // The record and the receipt name every policy that gave a limit, not the first alone.
    const executed = await trade(tenant, { ...spend, quantity: 5 })
    const record = (await world.get(`/api/rh/runs/${executed.body.run_id}`, tenant.headers)).body
    for (const { policy_ids } of [record, executed.body.receipt.policy]) {
      expect(policy_ids).toHaveLength(3)
      expect(policy_ids).toContain(strict.id)
    }
    const refused = await trade(tenant, { ...spend, quantity: 60 })
    const change = { text: 'Raise max_notional_usdc to 60.', path: 'constraints.max_notional_usdc', from: 50, to: 60 }
    expect(refused.body, refused.text).toMatchObject({
      error: 'budget_exceeded',
      message: expect.stringContaining("60 USDC is above the 50 USDC an order may commit by the policy 'strict'."),
      decided_by: { policy_id: strict.id, budget_id: null, mandate_id: null, rule: 'max_notional_usdc' },
    })
    expect(refused.body.smallest_change[0]).toEqual(change)
    const { body: decision } = await world.get(`/api/decisions/${refused.body.decision_id}`, tenant.headers)
    expect(decision.smallest_change).toEqual(refused.body.smallest_change)
    expect(decision.policy_results[0]).toMatchObject({ policy_id: strict.id, policy_name: 'strict' })
    const refusing = decision.policy_results.filter(({ outcome }: { outcome: string }) => outcome !== 'pass')
    expect(new Set(refusing.map(({ policy_name }: { policy_name: string }) => policy_name))).toEqual(
      new Set(['strict']),
    )
  })

  test('a limit by day, by run and of the leverage have their own policy and constraint', async () => {
    const tenant = await openTenant()
    await policyOf(tenant, 'notional', { max_notional_usdc: 9_000, require_approval_above_usdc: 9_000 })
    const daily = await policyOf(tenant, 'daily', { max_leverage: 3, max_per_day_usdc: 100 })
    const small = await policyOf(tenant, 'small', { max_notional_usdc: 8_000, max_per_run_usdc: 99 })
    const decidedBy = async (body: Record<string, unknown>) => (await trade(tenant, body)).body.decided_by
    expect(await decidedBy({ ...spend, quantity: 99.5 })).toMatchObject({
      policy_id: small.id,
      rule: 'max_per_run_usdc',
    })
    expect(await decidedBy({ ...perp, leverage: 4 })).toMatchObject({ policy_id: daily.id, rule: 'max_leverage' })
    expect((await trade(tenant, { ...spend, quantity: 90 })).status).toBe(200)
    expect(await decidedBy({ ...spend, quantity: 20 })).toMatchObject({ policy_id: daily.id, rule: 'max_per_day_usdc' })
  })

  test('a limit of the shipped default says how to set an own one', async () => {
    const tenant = await openTenant()
    const refused = await trade(tenant, { ...spend, quantity: 20_000 })
    expect(refused.body).toMatchObject({
      decided_by: { policy_id: null, budget_id: null, mandate_id: null, rule: 'max_notional_usdc' },
      smallest_change: [
        {
          text: 'Set max_notional_usdc of your default for spend trades to 20000 (PUT /api/rh/policies/spend).',
          path: 'rh_policies.spend.constraints.max_notional_usdc',
          from: 10_000,
          to: 20_000,
        },
        { path: 'rh_policies.spend.constraints.require_approval_above_usdc', from: 1_000, to: 20_000 },
      ],
    })
  })
})

describe('a spend pays exactly its amount', () => {
  test('by notional_usdc and by quantity alike, to the millionth', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/budgets', { budget_id: 'shop', window: 'day', limit_usdc: 100 })
    const amounts = [
      [{ quantity: 1, notional_usdc: 1 }, 1],
      [{ quantity: 1, notional_usdc: 0.000001 }, 0.000001],
      [{ quantity: 7, notional_usdc: 3.271593 }, 3.271593],
      [{ quantity: 0.000001 }, 0.000001],
      [{ quantity: 3, price_limit: 0.333333 }, 0.999999],
      // The quantity is less than the cap.
      [{ quantity: 2, notional_usdc: 5 }, 2],
    ] as const
    let sum = 0
    for (const [body, amount] of amounts) {
      const paid = await trade(tenant, { ...spend, ...body })
      expect(paid.status, paid.text).toBe(200)
      expect([paid.body.receipt.gross, paid.body.receipt.fees]).toEqual([amount, 0])
      expect(paid.body.receipt.instrument_metadata.amount_usdc).toBe(amount)
      const check = paid.body.receipt.policy.checks.find(({ id }: { id: string }) => id === 'order_notional')
      expect(check.actual).toBe(amount)
      sum += amount
    }
    const { budgets } = (await world.get('/api/budgets', tenant.headers)).body
    expect(budgets[0].spent_usdc).toBeCloseTo(sum, 6)
    expect((await world.get('/api/spend', tenant.headers)).body.totals.amount_usdc).toBeCloseTo(sum, 6)
  })

  test('an amount finer than a millionth is refused and nothing is paid', async () => {
    const tenant = await openTenant()
    for (const body of [{ quantity: 0.0000005 }, { quantity: 1.1, price_limit: 0.1234567 }]) {
      const refused = await trade(tenant, { ...spend, ...body })
      expect(refused.status, refused.text).toBe(400)
      expect(refused.body).toMatchObject({
        details: { field: 'quantity' },
        message: expect.stringContaining('at most six decimals'),
      })
    }
  })
})

describe('require_preauth', () => {
  test('at a spend trade names the way that is open, and no field that the door refuses', async () => {
    const tenant = await openTenant()
    await post(tenant, '/api/policies', { name: 'Ask first', constraints: { require_preauth: true } })
    const refused = await trade(tenant, spend)
    expect([refused.status, refused.body.decided_by?.rule], refused.text).toEqual([422, 'require_preauth'])
    expect(refused.text).not.toContain('preauth_token')
    expect(refused.body.message).toContain('POST /api/pre-auth')
    expect(refused.body.smallest_change).toEqual([
      {
        text: 'Pay the merchant by a pre-authorisation instead of a trade: POST /api/pre-auth, pay, then POST /api/pre-auth/close.',
      },
    ])
    const opened = await world.post(
      '/api/pre-auth',
      { agent_id: 'a', amount_usdc: 5, merchant: { id: 'acme-store' } },
      tenant.headers,
    )
    expect(opened.status, opened.text).toBe(201)
  })
})
