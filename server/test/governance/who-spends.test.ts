import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { counterFaults, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

const MINUTE = 60_000
const DAY = 86_400_000
const address = (byte: string) => `0x${byte.repeat(20)}`
const PRICE = 0.011

type Body = Record<string, unknown>
const post = (path: string, body: Body, { headers }: Pick<Tenant, 'headers'>) => world.post(path, body, headers)
const preauth = (tenant: Pick<Tenant, 'headers'>, body: Body = {}) =>
  post('/api/pre-auth', { agent_id: 'fleet-7', merchant: { id: 'shop' }, amount_usdc: 1, ...body }, tenant)
const mandate = async (tenant: Tenant, body: Body) => {
  const response = await post('/api/mandates', { name: 'm', constraints: [], ...body }, tenant)
  expect(response.status, response.text).toBe(201)
  return response.body.mandate_id as string
}
const budget = async (tenant: Tenant, body: Body) => {
  const response = await post('/api/budgets', { window: 'total', ...body }, tenant)
  expect(response.status, response.text).toBe(200)
}
const policy = async (tenant: Tenant, body: Body) => {
  const response = await post('/api/policies', body, tenant)
  expect(response.status, response.text).toBe(201)
  return response.body.id as string
}
const boundKey = async (tenant: Tenant, bond: Body): Promise<Tenant> => {
  const response = await post('/api/keys', { name: 'bound', scopes: ['read', 'run'], ...bond }, tenant)
  expect(response.status, response.text).toBe(201)
  return { ...tenant, headers: { 'x-api-key': response.body.api_key } }
}
const spentIn = async (tenant: Tenant, budgetId: string) => {
  const { body } = await world.get('/api/budgets', tenant.headers)
  const budgetRecord = body.budgets.find((candidate: { budget_id: string }) => candidate.budget_id === budgetId)
  return { spent: budgetRecord.spent_usdc, reserved: budgetRecord.reserved_usdc }
}
const fieldRequired = (field: string) => ({ error: 'policy_blocked', code: 'field_required', field_required: field })

describe('mandates bind, named or not', () => {
  const upTo = (max: number) => ({ type: 'payment.amount_range', currency: 'USDC', max })
  const inAll = (max: number) => ({ type: 'payment.budget', currency: 'USDC', max })

  test('a payment beside a mandate that it does not fit is refused though it names none, with the reason of each', async () => {
    const tenant = await richTenant(world)
    const small = await mandate(tenant, { agent_id: 'writer-v1', constraints: [upTo(0.001)] })
    const elsewhere = await mandate(tenant, {
      agent_id: 'writer-v1',
      constraints: [{ type: 'payment.allowed_payees', allowed: ['maps'] }],
    })
    const refusal = await preauth(tenant, { agent_id: 'writer-v1', amount_usdc: 500 })
    expect(refusal.status).toBe(422)
    expect(refusal.body).toMatchObject({ error: 'policy_blocked' })
    const reasons = refusal.body.policy_results.map((result: Body) => [result.mandate_id, result.rule, result.outcome])
    expect(reasons).toEqual([
      [small, 'payment.amount_range', 'blocked'],
      [elsewhere, 'payment.allowed_payees', 'blocked'],
    ])
    const runRefusal = await run(world, tenant, { agent_id: 'writer-v1' })
    expect(runRefusal.status).toBe(429)
    expect((await run(world, tenant, { agent_id: 'comedian-v1', spender: 'writer-v1' })).status).toBe(429)
    expect((await run(world, tenant, { agent_id: 'comedian-v1' })).status).toBe(200)
    const loop = { input: 'Write.', agent_id: 'writer-v1', payment: { wallet_id: tenant.walletId } }
    expect((await post('/api/loop', loop, tenant)).status).toBe(429)
  })

  test('a mandate without an agent binds every payment of the tenant, and one that has not begun or has expired binds none', async () => {
    const tenant = await richTenant(world)
    const now = world.clock.now().getTime()
    await mandate(tenant, { constraints: [upTo(0.001)], starts_at: new Date(now + DAY).toISOString() })
    await mandate(tenant, { constraints: [upTo(0.001)], expires_at: new Date(now + 1000).toISOString() })
    world.clock.advance(1000)
    expect((await run(world, tenant)).body.mandate_id).toBeNull()
    await mandate(tenant, { constraints: [upTo(0.001)] })
    expect((await run(world, tenant)).status).toBe(429)
    expect((await preauth(tenant)).status).toBe(422)
  })

  test('the first that fits is used, in the order of amount, budget, expiry and id, and named in response and receipt', async () => {
    const tenant = await richTenant(world)
    const at = (days: number) => new Date(world.clock.now().getTime() + days * DAY).toISOString()
    const unlimited = await mandate(tenant, {})
    const late = await mandate(tenant, { constraints: [upTo(1), inAll(PRICE)], expires_at: at(20) })
    const early = await mandate(tenant, { constraints: [upTo(1), inAll(PRICE)], expires_at: at(10) })
    const larger = await mandate(tenant, { constraints: [upTo(1), inAll(2 * PRICE)], expires_at: at(5) })
    const tooSmall = await mandate(tenant, { constraints: [upTo(0.001)] })
    const used: string[] = []
    for (let count = 0; count < 5; count += 1) {
      const { status, body, text } = await run(world, tenant, { agent_id: 'support-v1' })
      expect(status, text).toBe(200)
      expect(body.receipt.governance.mandate_id).toBe(body.mandate_id)
      used.push(body.mandate_id)
    }
    expect(used).toEqual([early, late, larger, larger, unlimited])
    expect(used).not.toContain(tooSmall)
    expect(await counterFaults(world)).toEqual([])
  })

  test('a named mandate is used alone, and a foreign or unknown one is refused', async () => {
    const tenant = await richTenant(world)
    const small = await mandate(tenant, { constraints: [upTo(0.001)] })
    const large = await mandate(tenant, { constraints: [upTo(5)] })
    expect((await run(world, tenant)).body.mandate_id).toBe(large)
    expect((await run(world, tenant, { mandate_id: small })).status).toBe(429)
    expect((await run(world, tenant, { mandate_id: large })).body.mandate_id).toBe(large)
    const stranger = await richTenant(world)
    expect((await run(world, stranger, { mandate_id: large })).status).toBe(400)
    expect((await preauth(stranger, { mandate_id: large })).status).toBe(400)
  })

  test('concurrent payments pass no mandate, and each uses one that had room', async () => {
    const tenant = await richTenant(world)
    const first = await mandate(tenant, { constraints: [upTo(1), inAll(2)] })
    const second = await mandate(tenant, { constraints: [upTo(1), inAll(3)] })
    const responses = await Promise.all(Array.from({ length: 8 }, () => preauth(tenant)))
    const opened = responses.filter(({ status }) => status === 201).map(({ body }) => body.mandate_id)
    expect(opened.filter((id) => id === first)).toHaveLength(2)
    expect(opened.filter((id) => id === second)).toHaveLength(3)
    expect(responses.filter(({ status }) => status === 422)).toHaveLength(3)
    expect(await counterFaults(world)).toEqual([])
  })

  test('require_mandate refuses what no mandate covers', async () => {
    const tenant = await richTenant(world)
    await policy(tenant, { constraints: { require_mandate: true } })
    expect((await run(world, tenant)).body).toMatchObject({
      error: 'policy_blocked',
      decided_by: { rule: 'require_mandate' },
    })
    expect((await preauth(tenant)).status).toBe(422)
    await mandate(tenant, {})
    expect((await run(world, tenant)).status).toBe(200)
    expect((await preauth(tenant)).status).toBe(201)
  })

  test('a mandate made while the rules are cached binds the next payment', async () => {
    const tenant = await richTenant(world)
    expect((await run(world, tenant)).status).toBe(200)
    const id = await mandate(tenant, { constraints: [upTo(0.001)] })
    expect((await run(world, tenant)).status).toBe(429)
    await post(`/api/mandates/${id}/revoke`, {}, tenant)
    expect((await run(world, tenant)).status).toBe(200)
  })
})

describe('an agent_id beside the spender gives no permission', () => {
  const upTo = (max: number) => ({ type: 'payment.amount_range', currency: 'USDC', max })
  const spend = (tenant: Tenant, body: Body = {}) =>
    post(
      '/api/rh/run',
      { tenant_id: tenant.tenantId, instrument_type: 'spend', symbol: 'acme', side: 'buy', quantity: 10, ...body },
      tenant,
    )
  const poorAndRich = async () => {
    const tenant = await richTenant(world)
    return { tenant, poor: await boundKey(tenant, { spender: 'poor' }) }
  }

  test("a key bound to a spender does not pay under another agent's mandate, named or not, nor does an explicit spender", async () => {
    const { tenant, poor } = await poorAndRich()
    await mandate(tenant, { agent_id: 'poor', constraints: [upTo(0.001)] })
    const rich = await mandate(tenant, { agent_id: 'rich', constraints: [upTo(50)] })
    expect((await preauth(poor, { agent_id: 'rich' })).status).toBe(422)
    expect((await preauth(poor, { agent_id: 'rich', mandate_id: rich })).status).toBe(422)
    expect((await preauth(poor, { agent_id: 'rich', merchant: { id: 'countersign' } })).status).toBe(422)
    expect((await preauth(tenant, { agent_id: 'rich', spender: 'poor' })).status).toBe(422)
    expect((await spend(poor, { agent_id: 'rich' })).status).toBe(422)
    expect((await spend(poor, { agent_id: 'rich', mandate_id: rich })).status).toBe(422)
    expect((await run(world, poor, { mandate_id: rich })).status).toBe(429)
    expect((await preauth(tenant, { agent_id: 'rich' })).body.mandate_id).toBe(rich)
    expect((await preauth(poor, { agent_id: 'rich', amount_usdc: 0.0005 })).status).toBe(201)
  })

  test('require_mandate is not met by the mandate of another agent, and no mandate of another agent binds', async () => {
    const { tenant, poor } = await poorAndRich()
    await mandate(tenant, { agent_id: 'rich', constraints: [upTo(0.001)] })
    expect((await preauth(poor, { agent_id: 'rich' })).body.mandate_id).toBeNull()
    await policy(tenant, { constraints: { require_mandate: true } })
    const refusal = await preauth(poor, { agent_id: 'rich', amount_usdc: 0.0005 })
    expect([refusal.status, refusal.body.decided_by?.rule]).toEqual([422, 'require_mandate'])
    expect((await spend(poor, { agent_id: 'rich', quantity: 0.0005 })).status).toBe(422)
  })

  for (const [name, body] of [
    ['allowed_agents', { constraints: { allowed_agents: ['rich'] } }],
    ['an allow rule', { name: 'p', rules: [{ field: 'agent_id', op: '=', value: 'rich', effect: 'allow' }] }],
    [
      'an allow rule with a list',
      { name: 'p', rules: [{ field: 'agent_id', op: 'in', value: ['rich'], effect: 'allow' }] },
    ],
    [
      'a deny rule for all others',
      { name: 'p', rules: [{ field: 'agent_id', op: '!=', value: 'rich', effect: 'deny' }] },
    ],
  ] as const)
    test(`${name} does not let a bound key pass as the agent it names`, async () => {
      const { tenant, poor } = await poorAndRich()
      await policy(tenant, body)
      expect((await preauth(poor, { agent_id: 'rich' })).status).toBe(422)
      expect((await spend(poor, { agent_id: 'rich' })).status).toBe(422)
      expect((await preauth(tenant, { agent_id: 'rich', spender: 'poor' })).status).toBe(422)
      expect((await preauth(tenant, { agent_id: 'rich' })).status).toBe(201)
      expect((await spend(tenant, { agent_id: 'rich' })).status).toBe(200)
    })

  test('what restricts is about both names: lists and rules that deny, freezes and budgets', async () => {
    const { tenant, poor } = await poorAndRich()
    const { tenantId } = tenant
    for (const body of [
      { constraints: { denied_agents: ['rich'] } },
      { name: 'p', rules: [{ field: 'agent_id', op: '=', value: 'rich', effect: 'deny' }] },
      { name: 'p', rules: [{ field: 'agent_id', op: '!=', value: 'rich', effect: 'allow' }] },
      { identity_type: 'agent', agent_id: 'rich', constraints: { max_per_run_usdc: 0.001 } },
    ]) {
      const id = await policy(tenant, body)
      expect((await preauth(poor, { agent_id: 'rich' })).status, JSON.stringify(body)).toBe(422)
      await world.call('DELETE', `/api/policies/${id}`, undefined, tenant.headers)
    }
    await budget(tenant, { budget_id: `rich-${tenantId}`, scope: { type: 'agent', id: 'rich' }, limit_usdc: 5 })
    expect((await preauth(poor, { agent_id: 'rich', amount_usdc: 3 })).status).toBe(201)
    expect((await preauth(poor, { agent_id: 'rich', amount_usdc: 3 })).status).toBe(422)
    await post('/api/control-tower', { action: 'freeze', agent_id: 'rich', reason: 'r' }, tenant)
    expect((await preauth(poor, { agent_id: 'rich', amount_usdc: 0.1 })).status).toBe(422)
  })

  test('a lane permits where it runs: on a run, a loop and the pre-authorisation of one, and nowhere else', async () => {
    const { tenant, poor } = await poorAndRich()
    await policy(tenant, { constraints: { allowed_agents: ['comedian-v1'] } })
    expect((await run(world, poor)).status).toBe(200)
    const own = { agent_id: 'comedian-v1', merchant: { id: 'countersign' } }
    const opened = await preauth(poor, own)
    expect(opened.status, opened.text).toBe(201)
    expect((await run(world, poor, { preauth_token: opened.body.token })).status).toBe(200)
    expect((await preauth(poor, { agent_id: 'comedian-v1' })).status).toBe(422)
    expect((await spend(poor, { agent_id: 'comedian-v1' })).status).toBe(422)
  })

  test('the policy of another agent gives a trade no larger limits, and cannot be named for it', async () => {
    const { tenant, poor } = await poorAndRich()
    const large = await policy(tenant, {
      identity_type: 'agent',
      agent_id: 'rich',
      selectable: true,
      constraints: { allowed_instruments: ['spend'], require_approval_above_usdc: 4000, max_notional_usdc: 5000 },
    })
    expect((await spend(tenant, { agent_id: 'rich', quantity: 1500 })).status).toBe(200)
    expect((await spend(poor, { quantity: 1500 })).status).toBe(202)
    expect((await spend(poor, { agent_id: 'rich', quantity: 1500 })).status).toBe(202)
    expect((await spend(poor, { agent_id: 'rich', quantity: 1500, policy_id: large })).status).toBe(400)
  })

  test('a pre-authorisation that waits is judged by the same names when it is approved', async () => {
    const { tenant, poor } = await poorAndRich()
    await policy(tenant, { constraints: { require_approval_above_usdc: 0.5 } })
    const waiting = await preauth(poor, { agent_id: 'rich' })
    expect(waiting.body.status).toBe('pending_approval')
    await policy(tenant, { constraints: { allowed_agents: ['rich'] } })
    const officer = await world.post(
      `/api/admin/tenants/${tenant.tenantId}/keys`,
      { scopes: ['read', 'control'] },
      { 'x-admin-key': world.service.adminKey },
    )
    const decision = { approval_id: waiting.body.approval_id, decision: 'approve' }
    const approved = await world.post('/api/approvals', decision, { 'x-api-key': officer.body.api_key })
    expect(approved.status, approved.text).toBe(409)
  })
})

describe('one spender', () => {
  test('a key that is bound to a spender cannot name another, at no door', async () => {
    const tenant = await richTenant(world)
    const bound = await boundKey(tenant, { spender: 'fleet-7' })
    expect((await run(world, bound, { spender: 'fleet-8' })).status).toBe(403)
    expect((await preauth(bound, { spender: 'fleet-8' })).status).toBe(403)
    expect((await run(world, bound, { spender: 'fleet-7' })).status).toBe(200)
    expect((await run(world, bound)).status).toBe(200)
    expect((await preauth(bound, { agent_id: 'other' })).body).toMatchObject({ agent_id: 'other', spender: 'fleet-7' })
  })

  test('the name of records for an unnamed spender cannot be taken', async () => {
    const tenant = await richTenant(world)
    expect((await run(world, tenant, { spender: 'key:1' })).status).toBe(400)
    expect((await run(world, tenant, { spender: '  ' })).status).toBe(400)
    expect((await preauth(tenant, { agent_id: 'key:1' })).status).toBe(400)
    const scope = { type: 'spender', id: 'key:1' }
    expect((await post('/api/budgets', { scope, limit_usdc: 1 }, tenant)).status).toBe(400)
  })

  test('rules by agent match lane and spender: lists, policies, budgets and freezes', async () => {
    const tenant = await richTenant(world)
    await policy(tenant, { constraints: { denied_agents: ['fleet-9'] } })
    await policy(tenant, { agent_id: 'fleet-8', identity_type: 'agent', constraints: { max_per_run_usdc: 0 } })
    await budget(tenant, { budget_id: 'agent', scope: { type: 'agent', id: 'fleet-7' }, limit_usdc: PRICE })
    expect((await run(world, tenant, { spender: 'fleet-9' })).status).toBe(429)
    expect((await run(world, tenant, { spender: 'fleet-8' })).status).toBe(429)
    expect((await run(world, tenant, { spender: 'fleet-7' })).status).toBe(200)
    expect((await run(world, tenant, { spender: 'fleet-7' })).body).toMatchObject({ error: 'budget_exceeded' })
    await post('/api/control-tower', { action: 'freeze', agent_id: 'fleet-6', reason: 'Lost.' }, tenant)
    expect((await run(world, tenant, { spender: 'fleet-6' })).body).toMatchObject({
      error: 'policy_blocked',
      decided_by: { rule: 'agent_frozen' },
    })
    expect((await run(world, tenant)).status).toBe(200)
  })

  test('who spent stands in the receipt, the decision and the pre-authorisation', async () => {
    const tenant = await richTenant(world)
    const bound = await boundKey(tenant, { spender: 'fleet-7', team: 'logistics' })
    const tags = { project: 'apollo' }
    const { body } = await run(world, bound, { tags })
    expect(body.receipt.governance).toMatchObject({ spender: 'fleet-7', team: 'logistics', tags })
    await policy(tenant, { constraints: { max_per_run_usdc: 0 } })
    const refusal = await run(world, bound, { tags })
    const decision = await world.get(`/api/decisions/${refusal.body.decision_id}`, tenant.headers)
    expect(decision.body).toMatchObject({ spender: 'fleet-7', team: 'logistics', tags })
    const unnamed = await run(world, tenant)
    const other = await world.get(`/api/decisions/${unnamed.body.decision_id}`, tenant.headers)
    expect(other.body.spender).toBe(`key:${other.body.asked_by}`)
  })
})

describe('what is left out is not free', () => {
  const doors = {
    run: (tenant: Tenant, body: Body) => run(world, tenant, body),
    preauth: (tenant: Tenant, body: Body) => preauth(tenant, body),
  }
  const cases: [string, Body, string, (keyof typeof doors)[]][] = [
    ['a budget of a spender', { scope: { type: 'spender', id: 'fleet-7' } }, 'spender', ['run']],
    ['a budget of a team', { scope: { type: 'team', id: 'ops' } }, 'team', ['run', 'preauth']],
    ['a budget of a tag', { scope: { type: 'tag', id: 'project=apollo' } }, 'tags.project', ['run', 'preauth']],
    ['a budget of a session', { scope: { type: 'session', id: 's1' } }, 'session_id', ['run']],
    ['a budget of an address', { scope: { type: 'merchant', id: address('ab') } }, 'merchant.pay_to', ['preauth']],
    ['a budget of a host', { scope: { type: 'merchant', id: 'shop.example' } }, 'merchant.url', ['preauth']],
    ['a policy for a spender', { identity_type: 'spender', identity_id: 'fleet-7' }, 'spender', ['run']],
    ['a policy for a team', { identity_type: 'team', identity_id: 'ops' }, 'team', ['run', 'preauth']],
    ['a policy for a tag', { identity_type: 'tag', identity_id: 'a=b' }, 'tags.a', ['run', 'preauth']],
    ['a rule on a spender', { rules: [{ field: 'spender', op: '=', value: 'x', effect: 'deny' }] }, 'spender', ['run']],
    [
      'a rule on a tag',
      { rules: [{ field: 'tags.a', op: '=', value: 'x', effect: 'deny' }] },
      'tags.a',
      ['run', 'preauth'],
    ],
    ['denied addresses', { constraints: { denied_merchants: [address('ab')] } }, 'merchant.pay_to', ['preauth']],
    ['denied hosts', { constraints: { denied_merchants: ['shop.example'] } }, 'merchant.url', ['preauth']],
  ]

  test.each(cases)('%s asks for the field by which it selects', async (_, rule, field, closedDoors) => {
    const tenant = await richTenant(world)
    if ('scope' in rule) await budget(tenant, { budget_id: 'b', limit_usdc: 100, ...rule })
    else
      await policy(tenant, {
        name: 'p',
        ...('rules' in rule ? {} : { constraints: { max_per_run_usdc: 100 } }),
        ...rule,
      })
    for (const door of Object.keys(doors) as (keyof typeof doors)[]) {
      const response = await doors[door](tenant, {})
      if (closedDoors.includes(door)) {
        expect(response.status).toBe(door === 'run' ? 429 : 422)
        expect(response.body).toMatchObject({ ...fieldRequired(field), decided_by: { rule: expect.any(String) } })
      } else expect(response.status, response.text).toBe(door === 'run' ? 200 : 201)
    }
  })

  test('the key may bind what the request leaves out', async () => {
    const tenant = await richTenant(world)
    const bound = await boundKey(tenant, { spender: 'fleet-7', team: 'ops' })
    await budget(tenant, { budget_id: 'spender', scope: { type: 'spender', id: 'fleet-7' }, limit_usdc: 1 })
    await budget(tenant, { budget_id: 'team', scope: { type: 'team', id: 'ops' }, limit_usdc: 1 })
    expect((await run(world, bound)).status).toBe(200)
    expect(await spentIn(tenant, 'spender')).toEqual({ spent: 0.01, reserved: 0 })
    expect(await spentIn(tenant, 'team')).toEqual({ spent: 0.01, reserved: 0 })
  })

  test('a policy in warn mode warns of a missing field, and no override replaces it', async () => {
    const tenant = await richTenant(world)
    const rules = [{ field: 'spender', op: '=', value: 'x', effect: 'deny' }]
    await policy(tenant, { name: 'warns', mode: 'warn', rules })
    expect((await run(world, tenant)).body).toMatchObject({ decision: 'warning' })
    await policy(tenant, { name: 'enforces', rules })
    const refusal = await run(world, tenant)
    expect(refusal.body).toMatchObject(fieldRequired('spender'))
    const decision = await world.get(`/api/decisions/${refusal.body.decision_id}`, tenant.headers)
    expect(decision.body.overridable).toBe(false)
  })
})

describe('budgets by scope, window and parent', () => {
  test('each scope counts its own payments', async () => {
    const tenant = await richTenant(world)
    const keyId = (await world.get('/api/me', tenant.headers)).body.key_id
    const bound = await boundKey(tenant, { team: 'ops' })
    await budget(tenant, { budget_id: 'tag', scope: { type: 'tag', id: 'project=apollo' }, limit_usdc: 5 })
    await budget(tenant, { budget_id: 'key', scope: { type: 'key', id: keyId }, limit_usdc: 5 })
    await budget(tenant, { budget_id: 'shop', scope: { type: 'merchant', id: 'shop' }, limit_usdc: 5 })
    const tags = { project: 'apollo' }
    expect((await preauth(tenant, { tags })).status).toBe(201)
    expect((await preauth(tenant, { tags: { project: 'zeus' }, merchant: { id: 'maps' } })).status).toBe(201)
    expect((await preauth(bound, { tags })).status).toBe(201)
    expect(await spentIn(tenant, 'tag')).toMatchObject({ reserved: 2 })
    // A key's budget counts what the keys pay that it made.
    expect(await spentIn(tenant, 'key')).toMatchObject({ reserved: 3 })
    expect(await spentIn(tenant, 'shop')).toMatchObject({ reserved: 2 })
    const foreign = { scope: { type: 'key', id: 'key_unknown' }, limit_usdc: 1 }
    expect((await post('/api/budgets', foreign, tenant)).status).toBe(400)
    // A tag that no request can send would refuse everything.
    for (const id of ['apollo', '=apollo', 'two words=apollo', 'project='])
      expect((await post('/api/budgets', { scope: { type: 'tag', id }, limit_usdc: 1 }, tenant)).status, id).toBe(400)
    const rules = [{ field: 'tags.two words', op: '=', value: 'x', effect: 'deny' }]
    expect((await post('/api/policies', { name: 'p', rules }, tenant)).status).toBe(400)
  })

  test('applies_to says which payments count', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { budget_id: 'runs', applies_to: ['runs'], limit_usdc: 0.01 })
    expect((await preauth(tenant)).status).toBe(201)
    expect((await run(world, tenant)).status).toBe(200)
    expect((await run(world, tenant)).status).toBe(429)
    expect(await spentIn(tenant, 'runs')).toEqual({ spent: 0.01, reserved: 0 })
    expect((await post('/api/budgets', { applies_to: [], limit_usdc: 1 }, tenant)).status).toBe(400)
    expect((await post('/api/budgets', { applies_to: ['all'], limit_usdc: 1 }, tenant)).status).toBe(400)
  })

  test('a budget cannot exceed its parent, at most four levels deep, and a parent cannot be deleted', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, {
      budget_id: 'all',
      scope: { type: 'team', id: 'nobody' },
      applies_to: ['trades'],
      limit_usdc: 2,
    })
    const bound = await boundKey(tenant, { team: 'ops' })
    await budget(tenant, {
      budget_id: 'fleet',
      parent_id: 'all',
      scope: { type: 'agent', id: 'fleet-7' },
      limit_usdc: 5,
    })
    expect((await preauth(bound)).status).toBe(201)
    expect((await preauth(bound)).status).toBe(201)
    expect((await preauth(bound)).body).toMatchObject({ error: 'budget_exceeded', decided_by: { budget_id: 'all' } })
    expect(await spentIn(tenant, 'all')).toMatchObject({ reserved: 2 })
    expect(await spentIn(tenant, 'fleet')).toMatchObject({ reserved: 2 })
    const removal = await world.call('DELETE', '/api/budgets/all', undefined, tenant.headers)
    expect(removal.status).toBe(409)
    await budget(tenant, { budget_id: 'third', parent_id: 'fleet', limit_usdc: 1 })
    await budget(tenant, { budget_id: 'fourth', parent_id: 'third', limit_usdc: 1 })
    const fifth = { budget_id: 'fifth', parent_id: 'fourth', limit_usdc: 1 }
    expect((await post('/api/budgets', fifth, tenant)).status).toBe(400)
    expect((await post('/api/budgets', { parent_id: 'none', limit_usdc: 1 }, tenant)).status).toBe(400)
    expect((await post('/api/budgets', { budget_id: 'third', parent_id: 'all', limit_usdc: 1 }, tenant)).status).toBe(
      400,
    )
    expect(await counterFaults(world)).toEqual([])
  })

  test('a rolling window forgets a spend when its slice lies outside, by the time of its hold', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { budget_id: 'roll', window: 'rolling_24h', limit_usdc: 2 })
    const first = await preauth(tenant)
    world.clock.advance(12 * 60 * MINUTE)
    const close = { preauth_id: first.body.preauth_id, outcome: 'settled', actual_amount_usdc: 1 }
    expect((await post('/api/pre-auth/close', close, tenant)).status).toBe(200)
    expect((await preauth(tenant)).status).toBe(201)
    expect((await preauth(tenant)).status).toBe(422)
    expect(await spentIn(tenant, 'roll')).toEqual({ spent: 1, reserved: 1 })
    // 24 hours after the hold, and at most one slice longer.
    world.clock.advance(12 * 60 * MINUTE - 1)
    expect((await preauth(tenant)).status).toBe(422)
    world.clock.advance(5 * MINUTE + 1)
    expect(await spentIn(tenant, 'roll')).toEqual({ spent: 0, reserved: 1 })
    expect((await preauth(tenant)).status).toBe(201)
    expect((await preauth(tenant)).status).toBe(422)
    expect(await counterFaults(world)).toEqual([])
  })

  test('concurrent payments never pass a rolling budget or a parent', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { budget_id: 'top', window: 'rolling_7d', limit_usdc: 5 })
    await budget(tenant, { budget_id: 'low', parent_id: 'top', window: 'rolling_24h', limit_usdc: 4 })
    const responses = await Promise.all(Array.from({ length: 12 }, () => preauth(tenant)))
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(4)
    expect(await spentIn(tenant, 'low')).toEqual({ spent: 0, reserved: 4 })
    expect(await spentIn(tenant, 'top')).toEqual({ spent: 0, reserved: 4 })
    expect(await counterFaults(world)).toEqual([])
  })
})

test('an override given for a pre-authorisation covers the run with its token for the same rules only', async () => {
  const tenant = await richTenant(world)
  await policy(tenant, { name: 'p1', constraints: { denied_agents: ['comedian-v1'] } })
  const terms = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.02 }
  const denial = await preauth(tenant, terms)
  expect(denial.status).toBe(422)
  const authorization = { agent_id: 'comedian-v1', amount_usdc: 0.02, merchant: 'countersign', reason: 'Once.' }
  const override = await post('/api/authorize', { ...authorization, expires_in_seconds: 300 }, tenant)
  const opened = await preauth(tenant, { ...terms, override_token: override.body.token })
  expect(opened.status, opened.text).toBe(201)
  const later = await policy(tenant, {
    name: 'p2',
    rules: [{ field: 'session_id', op: '=', value: 's1', effect: 'deny' }],
  })
  const preauth_token = opened.body.token
  expect((await run(world, tenant, { preauth_token, session_id: 's1' })).body).toMatchObject({
    error: 'policy_blocked',
    decided_by: { policy_id: later },
  })
  expect((await run(world, tenant, { preauth_token, session_id: 's2' })).status).toBe(200)
})
