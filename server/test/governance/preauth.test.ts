import { verifyPreauthToken, verifyReceipt, verifyStatement } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readJson } from '../harness.ts'
import { anotherKey, counterFaults, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
let jwks: { keys: never[] }
beforeAll(async () => {
  world = await openWorld()
  jwks = (await world.get('/.well-known/jwks.json')).body
})
afterAll(() => world?.close())

const shop = { id: 'shop', url: 'https://shop.example/pay', pay_to: `0x${'ab'.repeat(20)}` }
const ask = (tenant: Tenant, body: Record<string, unknown> = {}, headers = {}) =>
  world.post(
    '/api/pre-auth',
    { agent_id: 'buyer', merchant: shop, amount_usdc: 5, ...body },
    { ...tenant.headers, ...headers },
  )
const close = (tenant: Tenant, body: Record<string, unknown>) => world.post('/api/pre-auth/close', body, tenant.headers)
const budget = (tenant: Tenant, body: Record<string, unknown>) => world.post('/api/budgets', body, tenant.headers)
const figures = async (tenant: Tenant) => {
  const { body } = await world.get('/api/budgets', tenant.headers)
  const { spent_usdc, reserved_usdc, remaining_usdc } = body.budgets[0]
  return [spent_usdc, reserved_usdc, remaining_usdc]
}

// First of all, while the clock is still the payer's own.
test('the chain is asked first: a reported payment that is there is believed, one that is not is escalated', async () => {
  const tenant = await richTenant(world)
  const payer = await world.payer(1)
  const response = await payer.fetch(`${world.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task: 'joke', agent_id: 'comedian-v1' }),
  })
  const paid = await readJson(response)
  const { transaction } = paid.settlement
  const payTo = world.service.chain.payTo
  const merchant = { id: 'countersign-elsewhere', pay_to: payTo }
  const make = async (amount_usdc: number) => (await ask(tenant, { merchant, amount_usdc })).body.preauth_id
  const good = await make(0.02)
  const wrong = await close(tenant, { preauth_id: good, outcome: 'settled', actual_amount_usdc: 0.015, transaction })
  expect(wrong.status, wrong.text).toBe(409)
  const lied = await close(tenant, { preauth_id: good, outcome: 'voided', transaction })
  expect(lied.status).toBe(409)
  const right = await close(tenant, { preauth_id: good, outcome: 'settled', actual_amount_usdc: 0.01, transaction })
  expect(right.body).toMatchObject({ charged: '10000', verified_onchain: true })
  const twice = await make(0.02)
  expect(
    (await close(tenant, { preauth_id: twice, outcome: 'settled', actual_amount_usdc: 0.01, transaction })).status,
  ).toBe(409)
  const unknown = await make(0.02)
  const nowhere = await close(tenant, {
    preauth_id: unknown,
    outcome: 'settled',
    transaction: `0x${'12'.repeat(32)}`,
  })
  expect(nowhere.body).toMatchObject({ verified_onchain: false })
  expect(
    (await close(tenant, { preauth_id: await make(0.02), outcome: 'settled', transaction: 'not-a-hash' })).status,
  ).toBe(400)

  const other = await world.payer(1)
  const second = await readJson(
    await other.fetch(`${world.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task: 'joke', agent_id: 'comedian-v1' }),
    }),
  )
  const found = await make(0.02)
  expect(
    (await close(tenant, { preauth_id: found, outcome: 'settled', transaction: second.settlement.transaction })).status,
  ).toBe(409)
  world.clock.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${found}`, tenant.headers)).body).toMatchObject({
    status: 'closed',
    closed: { outcome: 'settled', charged: '10000', late: true, verified_onchain: true },
  })
  expect((await world.get(`/api/pre-auth/${twice}`, tenant.headers)).body.status).toBe('escalated')

  // A transaction that already stands for another payment is no reason to keep silent about this one.
  const late = await make(0.02)
  expect((await close(tenant, { preauth_id: late, outcome: 'settled', transaction })).status).toBe(409)
  world.clock.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${late}`, tenant.headers)).body).toMatchObject({
    status: 'escalated',
    reserved: '20000',
  })
})

describe('pre-authorise, execute, close', () => {
  test('the token verifies with the public key set alone, the money is held, and closing spends what was charged', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 8 })
    const made = await ask(tenant, { purpose: 'shoes', ttl_seconds: 120 })
    expect(made.status, made.text).toBe(201)
    expect(made.body).toMatchObject({ decision: 'approved', status: 'open', reserved: '5000000', remaining: '3000000' })
    expect(made.body.policy_results).toMatchObject([{ rule: 'limit_usdc', outcome: 'pass' }])
    const now = world.clock.now()
    expect(new Date(made.body.close_by).getTime() - now.getTime()).toBe(600_000)
    const verified = verifyPreauthToken(made.body.token, {
      jwks,
      now,
      expect: { aud: 'shop', sub: 'buyer', pay_to: shop.pay_to, jti: made.body.preauth_id },
      charge: 5_000_000n,
    })
    expect(verified).toMatchObject({ ok: true, claims: { amount: '5000000', network: 'eip155:8453' } })
    expect(await figures(tenant)).toEqual([0, 5, 3])

    const viewer = await anotherKey(world, tenant, ['read'])
    expect((await world.get(`/api/pre-auth/${made.body.preauth_id}`, viewer)).body).toMatchObject({
      status: 'open',
      token: null,
    })
    expect((await world.get('/api/pre-auth', viewer)).body.preauths).toMatchObject([{ token: null }])
    expect((await world.get('/api/pre-auth', tenant.headers)).body.preauths).toMatchObject([{ token: made.body.token }])
    expect(
      (await close(tenant, { preauth_id: made.body.preauth_id, outcome: 'settled', actual_amount: '5000001' })).status,
    ).toBe(409)
    expect(await figures(tenant)).toEqual([0, 5, 3])
    const closed = await close(tenant, { token: made.body.token, outcome: 'settled', actual_amount_usdc: 3.5 })
    expect(closed.body).toMatchObject({
      status: 'closed',
      charged: '3500000',
      released: '1500000',
      late: false,
      verified_onchain: null,
    })
    expect(verifyReceipt(closed.body.receipt, { jwks })).toMatchObject({ ok: true })
    expect(closed.body.receipt).toMatchObject({
      kind: 'preauth',
      charged: true,
      governance: { preauth_id: made.body.preauth_id },
      settlement: { amount: '3500000' },
    })
    expect(await figures(tenant)).toEqual([3.5, 0, 4.5])
    expect((await close(tenant, { preauth_id: made.body.preauth_id, outcome: 'voided' })).status).toBe(409)
    const read = await world.get(`/api/pre-auth/${made.body.preauth_id}`, tenant.headers)
    expect(read.body).toMatchObject({
      status: 'closed',
      token: null,
      closed: { outcome: 'settled', charged: '3500000', late: false, verified_onchain: null },
    })
    expect((await world.get('/api/runs?action=pre-auth', tenant.headers)).body.runs).toMatchObject([
      { run_id: made.body.run_id, outcome: 'completed', receipt_url: closed.body.receipt_url },
    ])
    expect(await counterFaults(world)).toEqual([])
  })

  test('a failed or voided payment gives everything back', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 5 })
    for (const outcome of ['failed', 'voided']) {
      const { body } = await ask(tenant)
      expect((await ask(tenant)).status).toBe(422)
      expect((await close(tenant, { preauth_id: body.preauth_id, outcome, actual_amount: '1' })).status).toBe(400)
      expect((await close(tenant, { preauth_id: body.preauth_id, outcome })).body).toMatchObject({
        charged: '0',
        released: '5000000',
      })
    }
    expect(await figures(tenant)).toEqual([0, 0, 5])
  })

  test('a rejection says why, rule by rule, and leaves a row; the same key and body give the same answer', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { allowed_merchants: ['shop.example'], max_per_run_usdc: 10 } },
      tenant.headers,
    )
    const refused = await ask(tenant, { merchant: { id: 'casino' }, amount_usdc: 20 })
    expect(refused.status).toBe(422)
    expect(refused.body).toMatchObject({ error: 'policy_blocked', decision: 'rejected', outcome: 'rejected' })
    expect(
      refused.body.policy_results.map((one: { rule: string; outcome: string }) => [one.rule, one.outcome]),
    ).toEqual([
      ['max_per_run_usdc', 'blocked'],
      ['allowed_merchants', 'blocked'],
    ])
    expect((await world.get(`/api/pre-auth/${refused.body.preauth_id}`, tenant.headers)).body).toMatchObject({
      status: 'rejected',
      decision: 'rejected',
    })
    expect((await world.get('/api/runs?outcome=blocked', tenant.headers)).body.runs).toHaveLength(1)
    const key = { 'idempotency-key': 'pay-1' }
    const first = await ask(tenant, {}, key)
    const second = await ask(tenant, {}, key)
    expect([first.status, second.text]).toEqual([201, first.text])
    expect((await ask(tenant, { amount_usdc: 6 }, key)).status).toBe(409)
    const overridden = await world.post(
      '/api/authorize',
      { agent_id: 'buyer', amount_usdc: 20, merchant: 'casino', reason: 'birthday' },
      tenant.headers,
    )
    const passed = await ask(tenant, {
      merchant: { id: 'casino' },
      amount_usdc: 20,
      override_token: overridden.body.token,
    })
    expect(passed.body).toMatchObject({ decision: 'approved', override_id: overridden.body.authorization_id })
  })

  test('one that wants a person has no token until it is approved, and holds nothing before', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/policies', { constraints: { require_approval_above_usdc: 1 } }, tenant.headers)
    await budget(tenant, { window: 'total', limit_usdc: 8 })
    const [one, two] = [await ask(tenant), await ask(tenant)]
    expect(one.body).toMatchObject({
      decision: 'review_required',
      status: 'pending_approval',
      token: null,
      reserved: '0',
    })
    expect(two.body.preauth_id).not.toBe(one.body.preauth_id)
    expect((await world.get(`/api/pre-auth/${one.body.preauth_id}`, tenant.headers)).body).toMatchObject({
      decision: 'review_required',
      token: null,
      approval_id: one.body.approval_id,
    })
    expect(await figures(tenant)).toEqual([0, 0, 8])
    const approve = (approval_id: string) =>
      world.post('/api/approvals', { approval_id, decision: 'approve' }, tenant.headers)
    expect((await approve(one.body.approval_id)).body).toMatchObject({
      approval: { status: 'approved' },
      run: { run_id: one.body.run_id, outcome: 'approved', action: 'pre-auth' },
    })
    const read = await world.get(`/api/pre-auth/${one.body.preauth_id}`, tenant.headers)
    expect(verifyPreauthToken(read.body.token, { jwks, now: world.clock.now() }).ok).toBe(true)
    expect(await figures(tenant)).toEqual([0, 5, 3])
    expect((await approve(two.body.approval_id)).status).toBe(409)
    expect(await figures(tenant)).toEqual([0, 5, 3])
    await close(tenant, { preauth_id: one.body.preauth_id, outcome: 'voided' })
    expect((await approve(two.body.approval_id)).status).toBe(200)
  })
})

describe('a merchant has several names', () => {
  const [good, evil] = [`0x${'aA'.repeat(20)}`, `0x${'eE'.repeat(20)}`]

  test('none of them can be the address of another', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/policies', { constraints: { allowed_merchants: [good] } }, tenant.headers)
    expect((await ask(tenant, { merchant: { id: good, pay_to: evil } })).status).toBe(400)
    expect((await ask(tenant, { merchant: { id: 'countersign', pay_to: evil } })).status).toBe(400)
    expect((await ask(tenant, { merchant: { id: 'shop', pay_to: evil } })).status).toBe(422)
    const made = await ask(tenant, { merchant: { id: good.toLowerCase() } })
    expect(made.status, made.text).toBe(201)
    // Where it is paid is known by its name, and is what the chain will be asked about.
    const expected = { jwks, now: world.clock.now(), expect: { pay_to: good.toLowerCase() } }
    expect(verifyPreauthToken(made.body.token, expected)).toMatchObject({ ok: true })
  })

  test('a rule that denies one of them denies it under every other; a mandate allows it in any case', async () => {
    const tenant = await richTenant(world)
    const rules = [{ field: 'merchant', op: 'eq', value: evil, effect: 'deny' }]
    await world.post('/api/policies', { name: 'Never there', rules }, tenant.headers)
    expect((await ask(tenant, { merchant: { id: 'shop', pay_to: evil.toLowerCase() } })).status).toBe(422)
    await world.post('/api/policies', { constraints: { denied_merchants: ['Casino.example'] } }, tenant.headers)
    for (const url of ['https://casino.example/', 'http://CASINO.example:8443/x', 'https://casino.example./'])
      expect((await ask(tenant, { merchant: { id: 'shop', url } })).status, url).toBe(422)
    const constraints = [{ type: 'payment.allowed_payees', allowed: [{ id: good }, { website: 'Market.example' }] }]
    const mandate = await world.post('/api/mandates', { name: 'm', constraints }, tenant.headers)
    const { mandate_id } = mandate.body
    expect((await ask(tenant, { mandate_id, merchant: { id: 'a', pay_to: good.toLowerCase() } })).status).toBe(201)
    expect((await ask(tenant, { mandate_id, merchant: { id: 'b', url: 'https://market.example/' } })).status).toBe(201)
    expect((await ask(tenant, { mandate_id, merchant: { id: 'c', url: 'https://other.example/' } })).status).toBe(422)
  })

  test('an override of a denial is for the merchant that was denied, not for its name paid elsewhere (M9)', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { max_per_run_usdc: 1, denied_merchants: [evil] } },
      tenant.headers,
    )
    const merchant = { id: 'shop', pay_to: good }
    expect((await ask(tenant, { merchant })).status).toBe(422)
    const { body } = await world.post(
      '/api/authorize',
      { agent_id: 'buyer', amount_usdc: 5, merchant: 'shop', reason: 'once' },
      tenant.headers,
    )
    const override_token = body.token
    expect((await ask(tenant, { merchant: { id: 'shop', pay_to: evil }, override_token })).status).toBe(400)
    expect((await ask(tenant, { merchant: { id: 'shop' }, override_token })).status).toBe(400)
    const other = { ...merchant, url: 'https://evil.example' }
    expect((await ask(tenant, { merchant: other, override_token })).status).toBe(400)
    expect((await ask(tenant, { merchant, override_token })).status).toBe(201)
  })
})

describe('a run that brings a token', () => {
  const own = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.02 }

  test('takes over the hold, spends its price, and closes it', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { require_preauth: true, max_runs_per_minute: 1 } },
      tenant.headers,
    )
    await budget(tenant, { window: 'total', limit_usdc: 0.02 })
    const without = await run(world, tenant)
    expect(without.body).toMatchObject({ error: 'policy_blocked', decided_by: { rule: 'require_preauth' } })
    const made = await ask(tenant, own)
    expect(made.status, made.text).toBe(201)
    expect(await figures(tenant)).toEqual([0, 0.02, 0])
    const ran = await run(world, tenant, { preauth_token: made.body.token })
    expect(ran.status, ran.text).toBe(200)
    expect(ran.body).toMatchObject({
      run_id: made.body.run_id,
      receipt: { governance: { preauth_id: made.body.preauth_id } },
    })
    expect(await figures(tenant)).toEqual([0.01, 0, 0.01])
    const read = await world.get(`/api/pre-auth/${made.body.preauth_id}`, tenant.headers)
    expect(read.body).toMatchObject({
      status: 'closed',
      closed: {
        outcome: 'settled',
        charged: '10000',
        released: '10000',
        transaction: null,
        verified_onchain: null,
      },
    })
    expect((await run(world, tenant, { preauth_token: made.body.token })).status).toBe(409)
    expect((await close(tenant, { preauth_id: made.body.preauth_id, outcome: 'voided' })).status).toBe(409)
    expect((await world.get('/api/runs?outcome=completed', tenant.headers)).body.runs).toHaveLength(1)
    expect(await counterFaults(world)).toEqual([])
  })

  test('a failed run closes it uncharged; wrong, forged, foreign and late tokens are refused and leave the hold alone', async () => {
    const [tenant, stranger] = [await richTenant(world), await richTenant(world)]
    await budget(tenant, { window: 'total', limit_usdc: 1 })
    const { body } = await ask(tenant, own)
    const token: string = body.token
    const statusWith = async (preauth_token: string, more = {}, who = tenant) =>
      (await run(world, who, { preauth_token, ...more })).status
    expect(await statusWith(token, { agent_id: 'writer-v1' })).toBe(400)
    expect(await statusWith(`${token.slice(0, -4)}AAAA`)).toBe(400)
    expect(await statusWith('nonsense')).toBe(400)
    const [header, payload, signature] = token.split('.')
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString())
    const richer = Buffer.from(JSON.stringify({ ...claims, amount: '99000000' })).toString('base64url')
    expect(await statusWith(`${header}.${richer}.${signature}`)).toBe(400)
    expect(await statusWith(token, {}, stranger)).toBe(400)
    const small = await ask(tenant, { ...own, amount_usdc: 0.005 })
    expect(await statusWith(small.body.token)).toBe(400)
    const elsewhere = await ask(tenant, { ...own, merchant: { id: 'shop' } })
    expect(await statusWith(elsewhere.body.token)).toBe(400)
    const bound = await ask(tenant, { ...own, request_hash: `sha256:${'1'.repeat(64)}` })
    expect(await statusWith(bound.body.token)).toBe(400)
    expect(await figures(tenant)).toEqual([0, 0.065, 0.935])
    world.lane.failing = true
    expect(await statusWith(token)).toBe(500)
    world.lane.failing = false
    expect((await world.get(`/api/pre-auth/${body.preauth_id}`, tenant.headers)).body).toMatchObject({
      status: 'closed',
      closed: { outcome: 'failed', charged: '0' },
    })
    expect(await figures(tenant)).toEqual([0, 0.045, 0.955])
    const late = await ask(tenant, { ...own, ttl_seconds: 5 })
    world.clock.advance(5_000)
    expect(await statusWith(late.body.token)).toBe(410)
  })

  test('twenty runs race for one token: one wins', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 1 })
    const { body } = await ask(tenant, own)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        run(world, tenant, { task: `Joke ${index}`, preauth_token: body.token }),
      ),
    )
    expect(all.map((one) => one.status).sort()).toEqual([200, ...Array(19).fill(409)])
    expect(await figures(tenant)).toEqual([0.01, 0, 0.99])
  })
})

describe('mandates', () => {
  test('a budget counts over all merchants, and anyone can verify what is left', async () => {
    const tenant = await richTenant(world)
    const mandate = await world.post(
      '/api/mandates',
      {
        name: 'Groceries',
        agent_id: 'buyer',
        constraints: [
          { type: 'payment.amount_range', currency: 'USDC', min: 1, max: 6 },
          { type: 'payment.budget', currency: 'USDC', max: 10 },
          {
            type: 'payment.allowed_payees',
            allowed: [{ id: 'shop' }, { name: 'Market', website: 'https://market.example' }],
          },
          { type: 'payment.execution_date', not_before: '2020-01-01', not_after: '2099-12-31' },
        ],
      },
      tenant.headers,
    )
    expect(mandate.status, mandate.text).toBe(201)
    const { mandate_id } = mandate.body
    const one = await ask(tenant, { mandate_id })
    expect(one.status, one.text).toBe(201)
    await close(tenant, { preauth_id: one.body.preauth_id, outcome: 'settled', actual_amount: '4000000' })
    const two = await ask(tenant, {
      mandate_id,
      amount_usdc: 3,
      merchant: { id: 'm', url: 'https://market.example/x' },
    })
    expect(two.status, two.text).toBe(201)
    const remaining = await world.get(`/api/mandates/${mandate_id}/remaining`, tenant.headers)
    expect(remaining.body).toMatchObject({
      schema: 'mandate-remaining/v1',
      limit_usdc: 10,
      spent_usdc: 4,
      reserved_usdc: 3,
      remaining_usdc: 3,
      remaining: '3000000',
      status: 'active',
    })
    expect(verifyStatement(remaining.body, { jwks, schema: 'mandate-remaining/v1' })).toMatchObject({ ok: true })
    expect(verifyStatement({ ...remaining.body, remaining_usdc: 30 }, { jwks }).ok).toBe(false)
    const refusals = [
      [{ amount_usdc: 3.000001 }, 'payment.budget'],
      [{ amount_usdc: 7 }, 'payment.amount_range'],
      [{ amount_usdc: 0.5 }, 'payment.amount_range'],
      [{ amount_usdc: 2, merchant: { id: 'casino' } }, 'payment.allowed_payees'],
      [{ amount_usdc: 2, agent_id: 'thief' }, 'mandate'],
    ] as const
    for (const [body, rule] of refusals) {
      const refused = await ask(tenant, { mandate_id, ...body })
      expect([refused.status, refused.body.error]).toEqual([422, 'policy_blocked'])
      expect(
        refused.body.policy_results
          .filter((result: { outcome: string }) => result.outcome === 'blocked')
          .map((result: { rule: string }) => result.rule),
      ).toContain(rule)
    }
    expect(
      (await world.post(`/api/mandates/${mandate_id}/revoke`, { reason: 'over' }, tenant.headers)).body.status,
    ).toBe('revoked')
    expect((await world.post(`/api/mandates/${mandate_id}/revoke`, {}, tenant.headers)).status).toBe(409)
    expect((await ask(tenant, { mandate_id, amount_usdc: 2 })).status).toBe(422)
    expect(await counterFaults(world)).toEqual([])
  })

  test('recurrence, holder and period are kept; a mandate has budgets of its own', async () => {
    const tenant = await richTenant(world)
    const holder = await anotherKey(world, tenant)
    const holderKey = (await world.get('/api/me', holder)).body.key_id
    const create = async (body: Record<string, unknown>) =>
      (await world.post('/api/mandates', { name: 'm', constraints: [], ...body }, tenant.headers)).body.mandate_id
    const daily = await create({
      constraints: [{ type: 'payment.agent_recurrence', frequency: 'DAILY', max_occurrences: 2 }],
    })
    expect((await ask(tenant, { mandate_id: daily })).status).toBe(201)
    expect((await ask(tenant, { mandate_id: daily })).status).toBe(422)
    world.clock.advance(86_400_000)
    expect((await ask(tenant, { mandate_id: daily })).status).toBe(201)
    world.clock.advance(86_400_000)
    expect((await ask(tenant, { mandate_id: daily })).status).toBe(422)
    expect((await world.get(`/api/mandates/${daily}/remaining`, tenant.headers)).body).toMatchObject({
      remaining: null,
      occurrences: { limit: 2, used: 2, remaining: 0 },
    })
    const held = await create({ holder_key_id: holderKey })
    expect((await ask(tenant, { mandate_id: held })).status).toBe(422)
    expect((await ask(tenant, { mandate_id: held }, holder)).status).toBe(201)
    const later = await create({ starts_at: new Date(world.clock.now().getTime() + 1000).toISOString() })
    expect((await ask(tenant, { mandate_id: later })).status).toBe(422)
    const capped = await create({})
    await budget(tenant, {
      budget_id: 'of-mandate',
      scope: { type: 'mandate', id: capped },
      window: 'total',
      limit_usdc: 5,
    })
    expect((await ask(tenant, { mandate_id: capped })).status).toBe(201)
    expect((await ask(tenant, { mandate_id: capped })).body).toMatchObject({ error: 'budget_exceeded' })
    expect((await ask(tenant)).status).toBe(201)
    const weak = await anotherKey(world, tenant, ['read', 'run', 'control'])
    expect((await world.post('/api/mandates', { name: 'm', constraints: [] }, weak)).status).toBe(403)
  })
})

describe('orphans', () => {
  test('ten minutes without a close escalate; the hold stays, and a late close is marked (M10)', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 10 })
    const [closedInTime, orphan] = [(await ask(tenant)).body, (await ask(tenant)).body]
    world.clock.advance(599_999)
    await world.service.governance.sweepOrphanedPreauths()
    expect((await world.get('/api/runs?outcome=escalated', tenant.headers)).body.runs).toEqual([])
    expect((await close(tenant, { preauth_id: closedInTime.preauth_id, outcome: 'settled' })).body.late).toBe(false)
    world.clock.advance(1)
    await world.service.governance.sweepOrphanedPreauths()
    await world.service.governance.sweepOrphanedPreauths()
    expect((await world.get('/api/runs?outcome=escalated', tenant.headers)).body.runs).toMatchObject([
      { run_id: orphan.run_id, action: 'pre-auth' },
    ])
    expect((await world.get(`/api/pre-auth/${orphan.preauth_id}`, tenant.headers)).body).toMatchObject({
      status: 'escalated',
      reserved: '5000000',
    })
    expect(await figures(tenant)).toEqual([5, 5, 0])
    const told = await world.db.selectFrom('events').select('type').where('tenant_id', '=', tenant.tenantId).execute()
    expect(told.filter((event) => event.type === 'preauth.escalated')).toHaveLength(1)
    const alerts = await world.db
      .selectFrom('alerts')
      .select(['severity', 'type'])
      .where('tenant_id', '=', tenant.tenantId)
      .where('type', '=', 'preauth_orphaned')
      .execute()
    expect(alerts).toEqual([{ severity: 'critical', type: 'preauth_orphaned' }])
    const late = await close(tenant, { preauth_id: orphan.preauth_id, outcome: 'voided' })
    expect(late.body).toMatchObject({ status: 'closed', late: true, released: '5000000' })
    expect(await figures(tenant)).toEqual([5, 0, 5])
  })
})

test('close, close and escalate race at the last millisecond: it ends once, and its hold with it (M10)', async () => {
  const tenant = await richTenant(world)
  await budget(tenant, { window: 'total', limit_usdc: 100 })
  const made = await Promise.all(Array.from({ length: 10 }, () => ask(tenant)))
  world.clock.advance(600_000)
  const { sweepOrphanedPreauths } = world.service.governance
  const ends = made.flatMap(({ body }) => [
    close(tenant, { preauth_id: body.preauth_id, outcome: 'settled', actual_amount: '1000000' }),
    close(tenant, { preauth_id: body.preauth_id, outcome: 'voided' }),
  ])
  const [answers] = await Promise.all([Promise.all(ends), sweepOrphanedPreauths(), sweepOrphanedPreauths()])
  expect(answers.filter((one) => one.status === 200)).toHaveLength(10)
  expect(answers.filter((one) => one.status === 409)).toHaveLength(10)
  for (const { body } of answers.filter((one) => one.status === 200)) expect(body.late).toBe(true)
  const settled = answers.filter((one) => one.body.outcome === 'settled').length
  expect(await figures(tenant)).toEqual([settled, 0, 100 - settled])
  expect(await counterFaults(world)).toEqual([])
})

describe('bad input', () => {
  test.each([
    ['a negative amount', { amount_usdc: -1 }],
    ['seven decimals', { amount_usdc: 0.0000001 }],
    ['nothing', { amount_usdc: 0 }],
    ['no amount', { amount_usdc: undefined }],
    ['an amount that is a number', { amount: 5 }],
    ['amounts that differ', { amount: '4000000' }],
    ['another currency', { asset: 'EURC' }],
    ['another token', { asset: `0x${'00'.repeat(20)}` }],
    ['a network that is none', { network: 'base' }],
    ['too long a life', { ttl_seconds: 601 }],
    ['an address that is none', { merchant: { id: 'x', pay_to: 'nobody' } }],
    ['an unknown mandate', { mandate_id: 'man_none' }],
    ['an unknown property', { tip: 1 }],
    ['a forged override', { override_token: 'ovt_forged' }],
  ])('a pre-authorisation with %s is a 400', async (_, body) => {
    const tenant = await richTenant(world)
    const answer = await ask(tenant, body)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['an unknown constraint', { constraints: { max_fun: 1 } }],
    ['negative money', { constraints: { max_per_run_usdc: -1 } }],
    ['seven decimals', { constraints: { max_per_day_usdc: 0.0000001 } }],
    ['money that is not finite', '{"constraints":{"max_per_run_usdc":1e400}}'],
    ['a text for money', { constraints: { max_per_run_usdc: '1' } }],
    ['nothing to say', { name: 'x' }],
    ['rules without a name', { rules: [] }],
    ['an unknown field', { name: 'x', rules: [{ field: 'mood', op: 'eq', value: 'x', effect: 'deny' }] }],
    ['an unknown sign', { name: 'x', rules: [{ field: 'agent_id', op: 'like', value: 'x', effect: 'deny' }] }],
    ['a text compared by size', { name: 'x', rules: [{ field: 'agent_id', op: '>', value: 'x', effect: 'deny' }] }],
    ['a list for one', { name: 'x', rules: [{ field: 'agent_id', op: 'eq', value: ['x'], effect: 'deny' }] }],
    ['an agent policy without its agent', { identity_type: 'agent', constraints: {} }],
    ['a key that is nobody’s', { api_key: 'csk_nobody', constraints: {} }],
    ['an unknown mode', { mode: 'maybe', constraints: {} }],
  ])('a policy with %s is a 400', async (_, body) => {
    const tenant = await richTenant(world)
    const answer = await world.post('/api/policies', body, tenant.headers)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['another currency', { limit_usdc: 1, currency: 'EUR' }],
    ['no limit', { window: 'day' }],
    ['a negative limit', { limit_usdc: -1 }],
    ['a soft limit above the hard one', { limit_usdc: 1, soft_limit_usdc: 2 }],
    ['another tenant', { limit_usdc: 1, scope: { type: 'tenant', id: 'ten_other' } }],
    ['an agent without a name', { limit_usdc: 1, scope: { type: 'agent' } }],
    ['an unknown mandate', { limit_usdc: 1, scope: { type: 'mandate', id: 'man_none' } }],
    ['a threshold above all', { limit_usdc: 1, alert_thresholds: [101] }],
    ['a strange id', { limit_usdc: 1, budget_id: 'a b' }],
  ])('a budget with %s is a 400', async (_, body) => {
    const tenant = await richTenant(world)
    const answer = await budget(tenant, body)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['an unknown type', [{ type: 'payment.fun' }]],
    ['another currency', [{ type: 'payment.budget', currency: 'USD', max: 1 }]],
    ['min above max', [{ type: 'payment.amount_range', currency: 'USDC', min: 2, max: 1 }]],
    [
      'the same type twice',
      [
        { type: 'payment.budget', currency: 'USDC', max: 1 },
        { type: 'payment.budget', currency: 'USDC', max: 2 },
      ],
    ],
    ['a payee without a name', [{ type: 'payment.allowed_payees', allowed: [{}] }]],
    ['a date that is none', [{ type: 'payment.execution_date', not_before: 'soon' }]],
    ['a date that only a program takes for one', [{ type: 'payment.execution_date', not_before: '1' }]],
    ['a day that no month has', [{ type: 'payment.execution_date', not_after: '2030-02-30' }]],
    ['a time without its zone', [{ type: 'payment.execution_date', not_after: '2030-01-31T12:00:00' }]],
    [
      'an end before its beginning',
      [{ type: 'payment.execution_date', not_before: '2030-02-01', not_after: '2030-01-31' }],
    ],
  ])('a mandate with %s is a 400', async (_, constraints) => {
    const tenant = await richTenant(world)
    const answer = await world.post('/api/mandates', { name: 'm', constraints }, tenant.headers)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test('a refused constraint of a mandate is told by its own type', async () => {
    const tenant = await richTenant(world)
    const told = async (one: unknown) =>
      (await world.post('/api/mandates', { name: 'm', constraints: [one] }, tenant.headers)).body.message
    expect(await told({ type: 'payment.forever' })).toBe("body/constraints/0/type 'payment.forever' is unknown.")
    expect(await told({ type: 'payment.budget', currency: 'USDC' })).toMatch(/required property 'max'/)
    expect(await told({ type: 'payment.budget', currency: 'USDC', max: 1, per: 'day' })).toMatch(
      /unknown property 'per'/,
    )
    expect(await told({ max: 1 })).toMatch(/type/)
  })

  test('what belongs to another tenant does not exist', async () => {
    const [tenant, stranger] = [await richTenant(world), await richTenant(world)]
    const preauth = (await ask(tenant)).body.preauth_id
    const policy = (await world.post('/api/policies', { constraints: {} }, tenant.headers)).body.id
    const mandate = (await world.post('/api/mandates', { name: 'm', constraints: [] }, tenant.headers)).body.id
    for (const path of [
      `/api/pre-auth/${preauth}`,
      `/api/policies/${policy}`,
      `/api/mandates/${mandate}`,
      `/api/mandates/${mandate}/remaining`,
      '/api/approvals/apr_none',
    ])
      expect((await world.get(path, stranger.headers)).status).toBe(404)
    expect((await close(stranger, { preauth_id: preauth, outcome: 'voided' })).status).toBe(404)
    expect((await ask(stranger, { mandate_id: mandate })).status).toBe(400)
    expect(
      (await world.post('/api/approvals', { approval_id: 'apr_none', decision: 'approve' }, stranger.headers)).status,
    ).toBe(404)
    expect((await world.get(`/api/pre-auth/${preauth}`, tenant.headers)).body.status).toBe('open')
  })
})
