import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openWorld, richTenant, type Tenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

type Body = Record<string, unknown>
const GOOD = `0x${'aa'.repeat(20)}`
const EVIL = `0x${'66'.repeat(20)}`

const preauth = (tenant: Tenant, merchant: Body, body: Body = {}) =>
  world.post('/api/pre-auth', { agent_id: 'fleet-7', merchant, amount_usdc: 0.01, ...body }, tenant.headers)
const spend = (tenant: Tenant, symbol: string, body: Body = {}) =>
  world.post(
    '/api/rh/run',
    {
      tenant_id: tenant.tenantId,
      side: 'buy',
      instrument_type: 'spend',
      symbol,
      quantity: 1,
      price_limit: 0.02,
      ...body,
    },
    tenant.headers,
  )
const create = async (tenant: Tenant, path: string, body: Body) => {
  const response = await world.post(path, { name: 'p', ...body }, tenant.headers)
  expect(response.status, response.text).toBeLessThan(300)
  return response.body
}
const createBudget = async (tenant: Tenant, body: Body) => {
  const response = await world.post('/api/budgets', { window: 'total', ...body }, tenant.headers)
  expect(response.status, response.text).toBe(200)
}

describe('a list that allows payees holds for every name of a kind that it speaks of', () => {
  const lists: Record<string, (names: string[]) => [string, Body]> = {
    allowed_merchants: (names) => ['/api/policies', { constraints: { allowed_merchants: names } }],
    'payment.allowed_payees': (names) => [
      '/api/mandates',
      { constraints: [{ type: 'payment.allowed_payees', allowed: names }] },
    ],
    'an allow rule': (names) => [
      '/api/policies',
      { rules: [{ field: 'merchant', op: 'in', value: names, effect: 'allow' }] },
    ],
    'a deny rule against all others': (names) => [
      '/api/policies',
      { rules: [{ field: 'merchant', op: 'not_in', value: names, effect: 'deny' }] },
    ],
  }
  test.each(Object.keys(lists))('%s', async (kind) => {
    const host = await richTenant(world)
    await create(host, ...lists[kind]!(['maps.example']))
    const both = await richTenant(world)
    await create(both, ...lists[kind]!(['maps.example', GOOD]))
    const id = await richTenant(world)
    await create(id, ...lists[kind]!(['m-1']))
    const cases: [Tenant, Body, number][] = [
      [host, { id: 'evil.example', url: 'https://maps.example/', pay_to: EVIL }, 422],
      [host, { id: 'maps.example', url: 'https://evil.example/', pay_to: EVIL }, 422],
      [host, { id: 'maps.example', pay_to: EVIL }, 201],
      [host, { id: 'https://maps.example/pay', pay_to: EVIL }, 201],
      [both, { id: 'maps.example', pay_to: EVIL }, 422],
      [both, { id: 'maps.example', pay_to: GOOD }, 201],
      [id, { id: 'm-1', url: 'https://m1.example', pay_to: EVIL }, 201],
      [id, { id: 'm-2', url: 'https://m-1', pay_to: EVIL }, 422],
    ]
    for (const [tenant, merchant, status] of cases) {
      const response = await preauth(tenant, merchant)
      expect(response.status, `${JSON.stringify(merchant)} ${response.text}`).toBe(status)
    }
  })

  test('an allow rule for one merchant and a deny rule against all others read the names as a list does', async () => {
    for (const [op, effect] of [
      ['eq', 'allow'],
      ['ne', 'deny'],
    ]) {
      const tenant = await richTenant(world)
      await create(tenant, '/api/policies', { rules: [{ field: 'merchant', op, value: 'maps.example', effect }] })
      const lie = { id: 'evil.example', url: 'https://maps.example/', pay_to: EVIL }
      expect((await preauth(tenant, lie)).status, op).toBe(422)
      expect((await preauth(tenant, { id: 'maps.example', pay_to: EVIL })).status, op).toBe(201)
    }
  })

  test('each payee of a mandate that is an object stands for itself, and where one is an address no other is paid', async () => {
    const payees = (allowed: Body[]) => ({ constraints: [{ type: 'payment.allowed_payees', allowed }] })
    const named = [{ id: 'shop' }, { name: 'Market', website: 'https://market.example' }]
    const tenant = await richTenant(world)
    await create(tenant, '/api/mandates', payees(named))
    const status = async (who: Tenant, merchant: Body) => (await preauth(who, merchant)).status
    expect(await status(tenant, { id: 'shop', url: 'https://shop.example', pay_to: EVIL })).toBe(201)
    expect(await status(tenant, { id: 'Market', url: 'https://market.example' })).toBe(201)
    expect(await status(tenant, { id: 'm-7', url: 'https://market.example' })).toBe(201)
    expect(await status(tenant, { id: 'evil.example', url: 'https://market.example' })).toBe(422)
    expect(await status(tenant, { id: 'Market', url: 'https://evil.example' })).toBe(422)
    const strict = await richTenant(world)
    await create(strict, '/api/mandates', payees([...named, { id: GOOD }]))
    expect(await status(strict, { id: 'shop', pay_to: EVIL })).toBe(422)
    expect(await status(strict, { id: 'shop', pay_to: GOOD })).toBe(201)
  })

  test('the answer says which name the list lacks', async () => {
    const tenant = await richTenant(world)
    await create(tenant, '/api/policies', { constraints: { allowed_merchants: ['maps.example', GOOD] } })
    const { body } = await preauth(tenant, { id: 'maps.example', pay_to: EVIL })
    expect(body.policy_results[0]).toMatchObject({
      reason: `The merchant '${EVIL}' is not in allowed_merchants.`,
      smallest_change: { add: EVIL },
    })
  })

  test('own runs pass a list that has countersign beside the address of another merchant', async () => {
    const tenant = await richTenant(world)
    await create(tenant, '/api/policies', { constraints: { allowed_merchants: ['countersign', GOOD] } })
    expect((await preauth(tenant, { id: 'countersign' })).status).toBe(201)
    const run = { task: 'Tell me a joke.', payment: { wallet_id: tenant.walletId } }
    expect((await world.post('/api/run', run, tenant.headers)).status).toBe(200)
  })
})

describe('a merchant is one merchant however its id is written', () => {
  const spellings = [
    'evil.example',
    'Evil.Example.',
    'https://evil.example/pay',
    'evil.example:443',
    'evil.example/',
    '//evil.example',
    'ｅｖｉｌ．ｅｘａｍｐｌｅ',
    'ACME-Store',
  ]

  test('denied_merchants and a rule refuse every spelling, at pre-authorisation and in a spend', async () => {
    const constraints = { denied_merchants: ['https://evil.example', 'acme-store'] }
    const rules = [{ field: 'merchant', op: 'in', value: ['EVIL.example', 'acme-STORE'], effect: 'deny' }]
    for (const policy of [{ constraints }, { rules }]) {
      const tenant = await richTenant(world)
      await create(tenant, '/api/policies', policy)
      for (const id of spellings) {
        expect((await preauth(tenant, { id, pay_to: GOOD })).status, id).toBe(422)
        // The paper broker has no merchant whose name does not begin with a letter or a digit.
        expect((await spend(tenant, id)).status, id).toBe(/^[a-z0-9]/i.test(id) ? 422 : 400)
      }
      expect((await preauth(tenant, { id: 'maps.example', pay_to: GOOD })).status).toBe(201)
    }
  })

  test('a budget and a policy for a merchant count every spelling', async () => {
    const tenant = await richTenant(world)
    await createBudget(tenant, { budget_id: 'evil', scope: { type: 'merchant', id: 'evil.example' }, limit_usdc: 0.02 })
    for (const id of spellings.slice(1, 3)) expect((await preauth(tenant, { id, pay_to: GOOD })).status).toBe(201)
    for (const id of spellings.slice(0, -1))
      expect((await preauth(tenant, { id, pay_to: GOOD })).status, id).toBeGreaterThanOrEqual(402)
    const other = await richTenant(world)
    const policy = { identity_type: 'merchant', identity_id: 'evil.example', constraints: { allowed_hours_utc: [] } }
    await create(other, '/api/policies', policy)
    for (const id of spellings.slice(0, -1)) expect((await preauth(other, { id, pay_to: GOOD })).status, id).toBe(422)
  })

  test('what is answered and signed is the id as it was sent', async () => {
    const tenant = await richTenant(world)
    const { body } = await preauth(tenant, { id: 'https://maps.example/pay', pay_to: GOOD })
    const claims = JSON.parse(Buffer.from(body.token.split('.')[1], 'base64url').toString())
    expect(claims.aud).toBe('https://maps.example/pay')
  })

  test('countersign in capitals is this service, and cannot be paid elsewhere', async () => {
    const tenant = await richTenant(world)
    await create(tenant, '/api/policies', { constraints: { allowed_merchants: ['countersign'] } })
    const response = await preauth(tenant, { id: 'COUNTERSIGN', pay_to: EVIL })
    expect(response.status).toBe(400)
    expect(response.body.message).toContain('body/merchant/pay_to must be 0x')
  })
})

describe('a name with what nobody sees is 400', () => {
  const run = (tenant: Tenant, body: Body) =>
    world.post('/api/run', { task: 'A joke.', payment: { wallet_id: tenant.walletId }, ...body }, tenant.headers)
  const send = (path: string, body: Body) => (tenant: Tenant) => world.post(path, body, tenant.headers)
  const doors: Record<string, (name: string) => (tenant: Tenant) => Promise<{ status: number; text: string }>> = {
    'spender of a run': (name) => (tenant) => run(tenant, { spender: name }),
    'tag of a run': (name) => (tenant) => run(tenant, { tags: { project: name } }),
    'agent of a pre-authorisation': (name) => (tenant) => preauth(tenant, { id: 'shop' }, { agent_id: name }),
    'merchant of a pre-authorisation': (name) => (tenant) => preauth(tenant, { id: name }),
    'agent of a trade': (name) => (tenant) => spend(tenant, 'shop-9', { agent_id: name }),
    'merchant of a spend': (name) => (tenant) => spend(tenant, name),
    'spender of a key': (name) => send('/api/keys', { name: 'k', scopes: ['run'], spender: name }),
    'team of a key': (name) => send('/api/keys', { name: 'k', scopes: ['run'], team: name }),
    'identity of a policy': (name) =>
      send('/api/policies', { name: 'p', identity_type: 'spender', identity_id: name, constraints: {} }),
    'agent of a policy': (name) => send('/api/policies', { name: 'p', agent_id: name, constraints: {} }),
    'list of a policy': (name) => send('/api/policies', { name: 'p', constraints: { allowed_agents: [name] } }),
    'value of a rule': (name) =>
      send('/api/policies', { name: 'p', rules: [{ field: 'spender', op: 'eq', value: name, effect: 'deny' }] }),
    'agent of a mandate': (name) => send('/api/mandates', { name: 'm', agent_id: name, constraints: [] }),
    'payee of a mandate': (name) =>
      send('/api/mandates', { name: 'm', constraints: [{ type: 'payment.allowed_payees', allowed: [name] }] }),
    'scope of a budget': (name) =>
      send('/api/budgets', { budget_id: 'b', scope: { type: 'spender', id: name }, limit_usdc: 1 }),
  }
  test.each(Object.keys(doors))('%s', async (door) => {
    const tenant = await richTenant(world)
    for (const name of [
      'fleet-7 ',
      ' fleet-7',
      'fleet-7\n',
      'fleet\u200b-7',
      'fleet\u00a07',
      'fleet  7',
      'fleet\u20287',
    ]) {
      const response = await doors[door]!(name)(tenant)
      expect(response.status, `${JSON.stringify(name)} ${response.text}`).toBe(400)
      expect(response.text).toMatch(/white space|begin with 'key:'/)
    }
    const plain = await doors[door]!('fleet 7')(tenant)
    expect(plain.text).not.toContain('white space')
  })

  test('an agent whose name differs in capitals is another agent for lists as for freezes', async () => {
    const tenant = await richTenant(world)
    await create(tenant, '/api/policies', { constraints: { allowed_agents: ['fleet.v1'] } })
    expect((await preauth(tenant, { id: 'shop' }, { agent_id: 'Fleet.V1' })).status).toBe(422)
    expect((await preauth(tenant, { id: 'shop' }, { agent_id: 'fleet.v1' })).status).toBe(201)
  })
})

describe('a rule that can never match is 400', () => {
  const rule = (field: string, value: unknown, op = 'eq') => ({ rules: [{ field, op, value, effect: 'deny' }] })
  test.each<[Body, string]>([
    [{ constraints: { denied_instruments: ['options'] } }, 'equity, perp, crypto, rwa, earn, spend'],
    [{ constraints: { allowed_instruments: ['perp', 'perps'] } }, 'allowed_instruments/1'],
    [{ constraints: { allowed_networks: ['base'] } }, 'eip155:8453'],
    [rule('instrument', 'option'), 'equity, perp, crypto, rwa, earn, spend'],
    [rule('hour_utc', 25), '0 to 23'],
    [rule('hour_utc', 24, 'lt'), '0 to 23'],
    [rule('hour_utc', 9.5), '0 to 23'],
    [rule('action', 'payment'), 'run, loop, pre-auth, trade'],
    [rule('action', ['run', 'Run'], 'in'), 'run, loop, pre-auth, trade'],
    [rule('network', 'base'), 'eip155:8453'],
  ])('%j', async (policy, words) => {
    const tenant = await richTenant(world)
    const response = await world.post('/api/policies', { name: 'p', ...policy }, tenant.headers)
    expect(response.status, response.text).toBe(400)
    expect(response.body.message).toContain(words)
  })

  test('instruments are compared without regard to case', async () => {
    for (const policy of [
      { constraints: { denied_instruments: ['Crypto'] } },
      { constraints: { denied_instruments: ['btc-usd'] } },
      rule('instrument', 'CRYPTO'),
    ]) {
      const tenant = await richTenant(world)
      await create(tenant, '/api/policies', policy)
      const trade = { instrument_type: 'crypto', price_limit: undefined, quantity: 0.001 }
      expect((await spend(tenant, 'BTC-USD', trade)).status, JSON.stringify(policy)).toBe(422)
    }
  })
})
