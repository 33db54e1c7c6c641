import { verifyPreauthToken, verifyReceipt, verifyStatement } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readJson } from '../harness.ts'
import { readEvents } from '../journal.ts'
import { anotherKey, counterFaults, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
let jwks: { keys: never[] }
beforeAll(async () => {
  world = await openWorld()
  jwks = (await world.get('/.well-known/jwks.json')).body
})
afterAll(() => world?.close())

const shop = { id: 'shop', url: 'https://shop.example/pay', pay_to: `0x${'ab'.repeat(20)}` }
const createPreauth = (tenant: Tenant, body: Record<string, unknown> = {}, headers = {}) =>
  world.post(
    '/api/pre-auth',
    { agent_id: 'buyer', merchant: shop, amount_usdc: 5, ...body },
    { ...tenant.headers, ...headers },
  )
const close = (tenant: Tenant, body: Record<string, unknown>) => world.post('/api/pre-auth/close', body, tenant.headers)
const budget = (tenant: Tenant, body: Record<string, unknown>) => world.post('/api/budgets', body, tenant.headers)
const budgetFigures = async (tenant: Tenant) => {
  const { body } = await world.get('/api/budgets', tenant.headers)
  const { spent_usdc, reserved_usdc, remaining_usdc } = body.budgets[0]
  return [spent_usdc, reserved_usdc, remaining_usdc]
}

// First in the file: the payer signs with real time, and later tests move the service's clock.
test('a reported transaction is checked on the chain: a found payment closes the pre-authorisation, others are escalated', async () => {
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
  const make = async (amount_usdc: number) => (await createPreauth(tenant, { merchant, amount_usdc })).body.preauth_id
  const preauthId = await make(0.02)
  const wrongAmount = await close(tenant, {
    preauth_id: preauthId,
    outcome: 'settled',
    actual_amount_usdc: 0.015,
    transaction,
  })
  expect(wrongAmount.status, wrongAmount.text).toBe(409)
  const falselyVoided = await close(tenant, { preauth_id: preauthId, outcome: 'voided', transaction })
  expect(falselyVoided.status).toBe(409)
  const correct = await close(tenant, {
    preauth_id: preauthId,
    outcome: 'settled',
    actual_amount_usdc: 0.01,
    transaction,
  })
  expect(correct.body).toMatchObject({ charged: '10000', verified_onchain: true })
  const reusedTransaction = await make(0.02)
  expect(
    (await close(tenant, { preauth_id: reusedTransaction, outcome: 'settled', actual_amount_usdc: 0.01, transaction }))
      .status,
  ).toBe(409)
  const unknownTransaction = await make(0.02)
  const notFound = await close(tenant, {
    preauth_id: unknownTransaction,
    outcome: 'settled',
    transaction: `0x${'12'.repeat(32)}`,
  })
  expect([notFound.status, notFound.body.code]).toEqual([409, 'conflict'])
  expect(
    (await close(tenant, { preauth_id: await make(0.02), outcome: 'settled', transaction: 'not-a-hash' })).status,
  ).toBe(400)

  const otherPayer = await world.payer(1)
  const second = await readJson(
    await otherPayer.fetch(`${world.url}/api/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ task: 'joke', agent_id: 'comedian-v1' }),
    }),
  )
  const reportedRefused = await make(0.02)
  expect(
    (
      await close(tenant, {
        preauth_id: reportedRefused,
        outcome: 'settled',
        transaction: second.settlement.transaction,
      })
    ).status,
  ).toBe(409)
  world.clock.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${reportedRefused}`, tenant.headers)).body).toMatchObject({
    status: 'closed',
    closed: { outcome: 'settled', charged: '10000', late: true, verified_onchain: true },
  })
  expect((await world.get(`/api/pre-auth/${reusedTransaction}`, tenant.headers)).body.status).toBe('escalated')

  // A transaction that was already used for another payment does not prevent the escalation of this one.
  const late = await make(0.02)
  expect((await close(tenant, { preauth_id: late, outcome: 'settled', transaction })).status).toBe(409)
  world.clock.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${late}`, tenant.headers)).body).toMatchObject({
    status: 'escalated',
    reserved: '20000',
  })
})

describe('create and close', () => {
  test('the token verifies with the public key set, the amount is held, and closing spends the charged amount', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 8 })
    const createResponse = await createPreauth(tenant, { purpose: 'shoes', ttl_seconds: 120 })
    expect(createResponse.status, createResponse.text).toBe(201)
    expect(createResponse.body).toMatchObject({
      decision: 'approved',
      status: 'open',
      reserved: '5000000',
      remaining: '3000000',
    })
    expect(createResponse.body.policy_results).toMatchObject([{ rule: 'limit_usdc', outcome: 'pass' }])
    const now = world.clock.now()
    expect(new Date(createResponse.body.close_by).getTime() - now.getTime()).toBe(600_000)
    const verified = verifyPreauthToken(createResponse.body.token, {
      jwks,
      now,
      expect: { aud: 'shop', sub: 'buyer', pay_to: shop.pay_to, jti: createResponse.body.preauth_id },
      charge: 5_000_000n,
    })
    expect(verified).toMatchObject({ ok: true, claims: { amount: '5000000', network: 'eip155:8453' } })
    expect(await budgetFigures(tenant)).toEqual([0, 5, 3])

    const viewer = await anotherKey(world, tenant, ['read'])
    expect((await world.get(`/api/pre-auth/${createResponse.body.preauth_id}`, viewer)).body).toMatchObject({
      status: 'open',
      token: null,
    })
    expect((await world.get('/api/pre-auth', viewer)).body.preauths).toMatchObject([{ token: null }])
    expect((await world.get('/api/pre-auth', tenant.headers)).body.preauths).toMatchObject([
      { token: createResponse.body.token },
    ])
    expect(
      (
        await close(tenant, {
          preauth_id: createResponse.body.preauth_id,
          outcome: 'settled',
          actual_amount: '5000001',
        })
      ).status,
    ).toBe(409)
    expect(await budgetFigures(tenant)).toEqual([0, 5, 3])
    const closeResponse = await close(tenant, {
      token: createResponse.body.token,
      outcome: 'settled',
      actual_amount_usdc: 3.5,
    })
    expect(closeResponse.body).toMatchObject({
      status: 'closed',
      charged: '3500000',
      released: '1500000',
      late: false,
      verified_onchain: null,
    })
    expect(verifyReceipt(closeResponse.body.receipt, { jwks })).toMatchObject({ ok: true })
    expect(closeResponse.body.receipt).toMatchObject({
      kind: 'preauth',
      governance: { preauth_id: createResponse.body.preauth_id },
      settlement: { amount: '3500000', status: 'reported', asserted_by: 'reported' },
    })
    expect(await budgetFigures(tenant)).toEqual([3.5, 0, 4.5])
    expect((await close(tenant, { preauth_id: createResponse.body.preauth_id, outcome: 'voided' })).status).toBe(409)
    const read = await world.get(`/api/pre-auth/${createResponse.body.preauth_id}`, tenant.headers)
    expect(read.body).toMatchObject({
      status: 'closed',
      token: null,
      closed: { outcome: 'reported', charged: '3500000', late: false, verified_onchain: null },
    })
    expect((await world.get('/api/runs?action=pre-auth', tenant.headers)).body.runs).toMatchObject([
      { run_id: createResponse.body.run_id, outcome: 'completed', receipt_url: closeResponse.body.receipt_url },
    ])
    expect(await counterFaults(world)).toEqual([])
  })

  test('a failed or voided payment releases the whole amount', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 5 })
    for (const outcome of ['failed', 'voided']) {
      const { body } = await createPreauth(tenant)
      expect((await createPreauth(tenant)).status).toBe(422)
      expect((await close(tenant, { preauth_id: body.preauth_id, outcome, actual_amount: '1' })).status).toBe(400)
      expect((await close(tenant, { preauth_id: body.preauth_id, outcome })).body).toMatchObject({
        charged: '0',
        released: '5000000',
      })
    }
    expect(await budgetFigures(tenant)).toEqual([0, 0, 5])
  })

  test('a rejection is recorded with the result of every rule, and a repeated idempotency key returns the stored response', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { allowed_merchants: ['shop.example'], max_per_run_usdc: 10 } },
      tenant.headers,
    )
    const refusal = await createPreauth(tenant, { merchant: { id: 'casino' }, amount_usdc: 20 })
    expect(refusal.status).toBe(422)
    expect(refusal.body).toMatchObject({ error: 'policy_blocked', decision: 'rejected', outcome: 'rejected' })
    expect(
      refusal.body.policy_results.map(({ rule, outcome }: { rule: string; outcome: string }) => [rule, outcome]),
    ).toEqual([
      ['max_per_run_usdc', 'blocked'],
      ['allowed_merchants', 'blocked'],
    ])
    expect((await world.get(`/api/pre-auth/${refusal.body.preauth_id}`, tenant.headers)).body).toMatchObject({
      status: 'rejected',
      decision: 'rejected',
    })
    expect((await world.get('/api/runs?outcome=blocked', tenant.headers)).body.runs).toHaveLength(1)
    const key = { 'idempotency-key': 'pay-1' }
    const first = await createPreauth(tenant, {}, key)
    const second = await createPreauth(tenant, {}, key)
    expect([first.status, second.text]).toEqual([201, first.text])
    expect((await createPreauth(tenant, { amount_usdc: 6 }, key)).status).toBe(409)
    const override = await world.post(
      '/api/authorize',
      { agent_id: 'buyer', amount_usdc: 20, merchant: 'casino', reason: 'birthday' },
      tenant.headers,
    )
    const overriddenPreauth = await createPreauth(tenant, {
      merchant: { id: 'casino' },
      amount_usdc: 20,
      override_token: override.body.token,
    })
    expect(overriddenPreauth.body).toMatchObject({ decision: 'approved', override_id: override.body.authorization_id })
  })

  test('a pre-authorisation that needs an approval has no token and no hold until it is approved', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/policies', { constraints: { require_approval_above_usdc: 1 } }, tenant.headers)
    await budget(tenant, { window: 'total', limit_usdc: 8 })
    const [first, second] = [await createPreauth(tenant), await createPreauth(tenant)]
    expect(first.body).toMatchObject({
      decision: 'review_required',
      status: 'pending_approval',
      token: null,
      reserved: '0',
    })
    expect(second.body.preauth_id).not.toBe(first.body.preauth_id)
    expect((await world.get(`/api/pre-auth/${first.body.preauth_id}`, tenant.headers)).body).toMatchObject({
      decision: 'review_required',
      token: null,
      approval_id: first.body.approval_id,
    })
    expect(await budgetFigures(tenant)).toEqual([0, 0, 8])
    const approve = (approval_id: string) =>
      world.post('/api/approvals', { approval_id, decision: 'approve' }, tenant.headers)
    expect((await approve(first.body.approval_id)).body).toMatchObject({
      approval: { status: 'approved' },
      run: { run_id: first.body.run_id, outcome: 'approved', action: 'pre-auth' },
    })
    const read = await world.get(`/api/pre-auth/${first.body.preauth_id}`, tenant.headers)
    expect(verifyPreauthToken(read.body.token, { jwks, now: world.clock.now() }).ok).toBe(true)
    expect(await budgetFigures(tenant)).toEqual([0, 5, 3])
    expect((await approve(second.body.approval_id)).status).toBe(409)
    expect(await budgetFigures(tenant)).toEqual([0, 5, 3])
    await close(tenant, { preauth_id: first.body.preauth_id, outcome: 'voided' })
    expect((await approve(second.body.approval_id)).status).toBe(200)
  })
})

describe('merchant names', () => {
  const [honestAddress, evilAddress] = [`0x${'aA'.repeat(20)}`, `0x${'eE'.repeat(20)}`]

  test('a merchant name cannot be the address of another merchant', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/policies', { constraints: { allowed_merchants: [honestAddress] } }, tenant.headers)
    expect((await createPreauth(tenant, { merchant: { id: honestAddress, pay_to: evilAddress } })).status).toBe(400)
    expect((await createPreauth(tenant, { merchant: { id: 'countersign', pay_to: evilAddress } })).status).toBe(400)
    expect((await createPreauth(tenant, { merchant: { id: 'shop', pay_to: evilAddress } })).status).toBe(422)
    const createResponse = await createPreauth(tenant, { merchant: { id: honestAddress.toLowerCase() } })
    expect(createResponse.status, createResponse.text).toBe(201)
    // An id that is an address is also the address that is paid.
    const expected = { jwks, now: world.clock.now(), expect: { pay_to: honestAddress.toLowerCase() } }
    expect(verifyPreauthToken(createResponse.body.token, expected)).toMatchObject({ ok: true })
  })

  test('a rule or mandate that names one merchant name matches the merchant under every other name', async () => {
    const tenant = await richTenant(world)
    const rules = [{ field: 'merchant', op: 'eq', value: evilAddress, effect: 'deny' }]
    await world.post('/api/policies', { name: 'Never there', rules }, tenant.headers)
    expect((await createPreauth(tenant, { merchant: { id: 'shop', pay_to: evilAddress.toLowerCase() } })).status).toBe(
      422,
    )
    await world.post('/api/policies', { constraints: { denied_merchants: ['Casino.example'] } }, tenant.headers)
    for (const url of ['https://casino.example/', 'http://CASINO.example:8443/x', 'https://casino.example./'])
      expect((await createPreauth(tenant, { merchant: { id: 'shop', url } })).status, url).toBe(422)
    const constraints = [
      { type: 'payment.allowed_payees', allowed: [{ id: honestAddress }, { website: 'Market.example' }] },
    ]
    const mandate = await world.post('/api/mandates', { name: 'm', constraints }, tenant.headers)
    const { mandate_id } = mandate.body
    expect(
      (await createPreauth(tenant, { mandate_id, merchant: { id: 'a', pay_to: honestAddress.toLowerCase() } })).status,
    ).toBe(201)
    expect(
      (
        await createPreauth(tenant, {
          mandate_id,
          merchant: { id: 'b', url: 'https://market.example/', pay_to: honestAddress },
        })
      ).status,
    ).toBe(201)
    // A rule names an address, so the address that is paid cannot be left out.
    expect(
      (await createPreauth(tenant, { mandate_id, merchant: { id: 'b', url: 'https://market.example/' } })).body,
    ).toMatchObject({ error: 'policy_blocked', code: 'field_required', field_required: 'merchant.pay_to' })
    expect(
      (await createPreauth(tenant, { mandate_id, merchant: { id: 'c', url: 'https://other.example/' } })).status,
    ).toBe(422)
  })

  test('an override is bound to the address and host of the denied merchant, not only to its id (M9)', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { max_per_run_usdc: 1, denied_merchants: [evilAddress] } },
      tenant.headers,
    )
    const merchant = { id: 'shop', pay_to: honestAddress }
    expect((await createPreauth(tenant, { merchant })).status).toBe(422)
    const { body } = await world.post(
      '/api/authorize',
      { agent_id: 'buyer', amount_usdc: 5, merchant: 'shop', reason: 'once' },
      tenant.headers,
    )
    const override_token = body.token
    expect(
      (await createPreauth(tenant, { merchant: { id: 'shop', pay_to: evilAddress }, override_token })).status,
    ).toBe(400)
    expect((await createPreauth(tenant, { merchant: { id: 'shop' }, override_token })).status).toBe(400)
    const otherMerchant = { ...merchant, url: 'https://evil.example' }
    expect((await createPreauth(tenant, { merchant: otherMerchant, override_token })).status).toBe(400)
    expect((await createPreauth(tenant, { merchant, override_token })).status).toBe(201)
  })
})

describe('a run with a pre-authorisation token', () => {
  const servicePayment = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.02 }

  test('takes over the hold, spends its price, and closes the pre-authorisation', async () => {
    const tenant = await richTenant(world)
    await world.post(
      '/api/policies',
      { constraints: { require_preauth: true, max_runs_per_minute: 1 } },
      tenant.headers,
    )
    await budget(tenant, { window: 'total', limit_usdc: 0.02 })
    const withoutPreauth = await run(world, tenant)
    expect(withoutPreauth.body).toMatchObject({ error: 'policy_blocked', decided_by: { rule: 'require_preauth' } })
    const createResponse = await createPreauth(tenant, servicePayment)
    expect(createResponse.status, createResponse.text).toBe(201)
    expect(await budgetFigures(tenant)).toEqual([0, 0.02, 0])
    const completedResponse = await run(world, tenant, { preauth_token: createResponse.body.token })
    expect(completedResponse.status, completedResponse.text).toBe(200)
    expect(completedResponse.body).toMatchObject({
      run_id: createResponse.body.run_id,
      receipt: { governance: { preauth_id: createResponse.body.preauth_id } },
    })
    expect(await budgetFigures(tenant)).toEqual([0.01, 0, 0.01])
    const read = await world.get(`/api/pre-auth/${createResponse.body.preauth_id}`, tenant.headers)
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
    expect((await run(world, tenant, { preauth_token: createResponse.body.token })).status).toBe(409)
    expect((await close(tenant, { preauth_id: createResponse.body.preauth_id, outcome: 'voided' })).status).toBe(409)
    expect((await world.get('/api/runs?outcome=completed', tenant.headers)).body.runs).toHaveLength(1)
    expect(await counterFaults(world)).toEqual([])
  })

  test('a failed run closes it uncharged; mismatching, forged, foreign and expired tokens are refused and keep the hold', async () => {
    const [tenant, stranger] = [await richTenant(world), await richTenant(world)]
    await budget(tenant, { window: 'total', limit_usdc: 1 })
    const { body } = await createPreauth(tenant, servicePayment)
    const token: string = body.token
    const statusWith = async (preauth_token: string, changes = {}, payer = tenant) =>
      (await run(world, payer, { preauth_token, ...changes })).status
    expect(await statusWith(token, { agent_id: 'writer-v1' })).toBe(400)
    expect(await statusWith(`${token.slice(0, -4)}AAAA`)).toBe(400)
    expect(await statusWith('nonsense')).toBe(400)
    const [header, payload, signature] = token.split('.')
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString())
    const forgedPayload = Buffer.from(JSON.stringify({ ...claims, amount: '99000000' })).toString('base64url')
    expect(await statusWith(`${header}.${forgedPayload}.${signature}`)).toBe(400)
    expect(await statusWith(token, {}, stranger)).toBe(400)
    const tooSmall = await createPreauth(tenant, { ...servicePayment, amount_usdc: 0.005 })
    expect(await statusWith(tooSmall.body.token)).toBe(400)
    const otherMerchant = await createPreauth(tenant, { ...servicePayment, merchant: { id: 'shop' } })
    expect(await statusWith(otherMerchant.body.token)).toBe(400)
    const otherRequest = await createPreauth(tenant, { ...servicePayment, request_hash: `sha256:${'1'.repeat(64)}` })
    expect(await statusWith(otherRequest.body.token)).toBe(400)
    expect(await budgetFigures(tenant)).toEqual([0, 0.065, 0.935])
    world.lane.failing = true
    expect(await statusWith(token)).toBe(500)
    world.lane.failing = false
    expect((await world.get(`/api/pre-auth/${body.preauth_id}`, tenant.headers)).body).toMatchObject({
      status: 'closed',
      closed: { outcome: 'failed', charged: '0' },
    })
    expect(await budgetFigures(tenant)).toEqual([0, 0.045, 0.955])
    const late = await createPreauth(tenant, { ...servicePayment, ttl_seconds: 5 })
    world.clock.advance(5_000)
    expect(await statusWith(late.body.token)).toBe(410)
  })

  test('of twenty concurrent runs with one token only one is executed', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 1 })
    const { body } = await createPreauth(tenant, servicePayment)
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        run(world, tenant, { task: `Joke ${index}`, preauth_token: body.token }),
      ),
    )
    expect(all.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
    expect(await budgetFigures(tenant)).toEqual([0.01, 0, 0.99])
  })
})

describe('mandates', () => {
  test('a mandate budget counts across all merchants, and the signed remaining statement verifies', async () => {
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
    const first = await createPreauth(tenant, { mandate_id })
    expect(first.status, first.text).toBe(201)
    await close(tenant, { preauth_id: first.body.preauth_id, outcome: 'settled', actual_amount: '4000000' })
    const second = await createPreauth(tenant, {
      mandate_id,
      amount_usdc: 3,
      merchant: { id: 'm', url: 'https://market.example/x' },
    })
    expect(second.status, second.text).toBe(201)
    const remainingResponse = await world.get(`/api/mandates/${mandate_id}/remaining`, tenant.headers)
    expect(remainingResponse.body).toMatchObject({
      schema: 'mandate-remaining/v1',
      limit_usdc: 10,
      spent_usdc: 4,
      reserved_usdc: 3,
      remaining_usdc: 3,
      remaining: '3000000',
      status: 'active',
    })
    expect(verifyStatement(remainingResponse.body, { jwks, schema: 'mandate-remaining/v1' })).toMatchObject({
      ok: true,
    })
    expect(verifyStatement({ ...remainingResponse.body, remaining_usdc: 30 }, { jwks }).ok).toBe(false)
    const refusals = [
      [{ amount_usdc: 3.000001 }, 'payment.budget'],
      [{ amount_usdc: 7 }, 'payment.amount_range'],
      [{ amount_usdc: 0.5 }, 'payment.amount_range'],
      [{ amount_usdc: 2, merchant: { id: 'casino' } }, 'payment.allowed_payees'],
      [{ amount_usdc: 2, agent_id: 'thief' }, 'mandate'],
    ] as const
    for (const [body, rule] of refusals) {
      const refusal = await createPreauth(tenant, { mandate_id, ...body })
      expect([refusal.status, refusal.body.error]).toEqual([422, 'policy_blocked'])
      expect(
        refusal.body.policy_results
          .filter((result: { outcome: string }) => result.outcome === 'blocked')
          .map((result: { rule: string }) => result.rule),
      ).toContain(rule)
    }
    expect(
      (await world.post(`/api/mandates/${mandate_id}/revoke`, { reason: 'over' }, tenant.headers)).body.status,
    ).toBe('revoked')
    expect((await world.post(`/api/mandates/${mandate_id}/revoke`, {}, tenant.headers)).status).toBe(409)
    expect((await createPreauth(tenant, { mandate_id, amount_usdc: 2 })).status).toBe(422)
    expect(await counterFaults(world)).toEqual([])
  })

  test('recurrence, holder key, start date and mandate budgets are enforced', async () => {
    const tenant = await richTenant(world)
    const holder = await anotherKey(world, tenant)
    const holderKey = (await world.get('/api/me', holder)).body.key_id
    const create = async (body: Record<string, unknown>) =>
      (await world.post('/api/mandates', { name: 'm', constraints: [], ...body }, tenant.headers)).body.mandate_id
    const dailyMandate = await create({
      constraints: [{ type: 'payment.agent_recurrence', frequency: 'DAILY', max_occurrences: 2 }],
    })
    expect((await createPreauth(tenant, { mandate_id: dailyMandate })).status).toBe(201)
    expect((await createPreauth(tenant, { mandate_id: dailyMandate })).status).toBe(422)
    world.clock.advance(86_400_000)
    expect((await createPreauth(tenant, { mandate_id: dailyMandate })).status).toBe(201)
    world.clock.advance(86_400_000)
    expect((await createPreauth(tenant, { mandate_id: dailyMandate })).status).toBe(422)
    expect((await world.get(`/api/mandates/${dailyMandate}/remaining`, tenant.headers)).body).toMatchObject({
      remaining: null,
      occurrences: { limit: 2, used: 2, remaining: 0 },
    })
    const heldMandate = await create({ holder_key_id: holderKey })
    expect((await createPreauth(tenant, { mandate_id: heldMandate })).status).toBe(422)
    expect((await createPreauth(tenant, { mandate_id: heldMandate }, holder)).status).toBe(201)
    const laterMandate = await create({ starts_at: new Date(world.clock.now().getTime() + 1000).toISOString() })
    expect((await createPreauth(tenant, { mandate_id: laterMandate })).status).toBe(422)
    const cappedMandate = await create({})
    await budget(tenant, {
      budget_id: 'of-mandate',
      scope: { type: 'mandate', id: cappedMandate },
      window: 'total',
      limit_usdc: 5,
    })
    expect((await createPreauth(tenant, { mandate_id: cappedMandate })).status).toBe(201)
    expect((await createPreauth(tenant, { mandate_id: cappedMandate })).body).toMatchObject({
      error: 'budget_exceeded',
    })
    // A mandate binds whether it is named or not: the only one that fits is this one, and its budget is spent.
    expect((await createPreauth(tenant)).body).toMatchObject({ error: 'budget_exceeded' })
    const keyWithoutMandate = await anotherKey(world, tenant, ['read', 'run', 'control'])
    expect((await world.post('/api/mandates', { name: 'm', constraints: [] }, keyWithoutMandate)).status).toBe(403)
  })
})

describe('orphaned pre-authorisations', () => {
  test('a pre-authorisation that is not closed in ten minutes is escalated once, keeps its hold, and closes as late (M10)', async () => {
    const tenant = await richTenant(world)
    await budget(tenant, { window: 'total', limit_usdc: 10 })
    const [closedInTime, orphan] = [(await createPreauth(tenant)).body, (await createPreauth(tenant)).body]
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
    expect(await budgetFigures(tenant)).toEqual([5, 5, 0])
    const eventsOfTenant = await readEvents(world.db, tenant.tenantId)
    expect(eventsOfTenant.filter((event) => event.type === 'preauth.escalated')).toHaveLength(1)
    const alerts = await world.db
      .selectFrom('alerts')
      .select(['severity', 'type'])
      .where('tenant_id', '=', tenant.tenantId)
      .where('type', '=', 'preauth_orphaned')
      .execute()
    expect(alerts).toEqual([{ severity: 'critical', type: 'preauth_orphaned' }])
    const late = await close(tenant, { preauth_id: orphan.preauth_id, outcome: 'voided' })
    expect(late.body).toMatchObject({ status: 'closed', late: true, released: '5000000' })
    expect(await budgetFigures(tenant)).toEqual([5, 0, 5])
  })
})

test('concurrent closes and escalations end a pre-authorisation and its hold once (M10)', async () => {
  const tenant = await richTenant(world)
  await budget(tenant, { window: 'total', limit_usdc: 100 })
  const created = await Promise.all(Array.from({ length: 10 }, () => createPreauth(tenant)))
  world.clock.advance(600_000)
  const { sweepOrphanedPreauths } = world.service.governance
  const ends = created.flatMap(({ body }) => [
    close(tenant, { preauth_id: body.preauth_id, outcome: 'settled', actual_amount: '1000000' }),
    close(tenant, { preauth_id: body.preauth_id, outcome: 'voided' }),
  ])
  const [answers] = await Promise.all([Promise.all(ends), sweepOrphanedPreauths(), sweepOrphanedPreauths()])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10)
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(10)
  for (const { body } of answers.filter(({ status }) => status === 200)) expect(body.late).toBe(true)
  const settled = answers.filter(({ body }) => body.outcome === 'reported').length
  expect(await budgetFigures(tenant)).toEqual([settled, 0, 100 - settled])
  expect(await counterFaults(world)).toEqual([])
})

describe('invalid input', () => {
  test.each([
    ['a negative amount', { amount_usdc: -1 }],
    ['seven decimals', { amount_usdc: 0.0000001 }],
    ['a zero amount', { amount_usdc: 0 }],
    ['no amount', { amount_usdc: undefined }],
    ['an amount that is a number', { amount: 5 }],
    ['amounts that differ', { amount: '4000000' }],
    ['another currency', { asset: 'EURC' }],
    ['another token', { asset: `0x${'00'.repeat(20)}` }],
    ['an invalid network', { network: 'base' }],
    ['a ttl above the maximum', { ttl_seconds: 601 }],
    ['an invalid address', { merchant: { id: 'x', pay_to: 'nobody' } }],
    ['an unknown mandate', { mandate_id: 'man_none' }],
    ['an unknown property', { tip: 1 }],
    ['a forged override', { override_token: 'ovt_forged' }],
  ])('a pre-authorisation with %s is a 400', async (_, body) => {
    const tenant = await richTenant(world)
    const answer = await createPreauth(tenant, body)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test.each([
    ['an unknown constraint', { constraints: { max_fun: 1 } }],
    ['negative money', { constraints: { max_per_run_usdc: -1 } }],
    ['seven decimals', { constraints: { max_per_day_usdc: 0.0000001 } }],
    ['money that is not finite', '{"constraints":{"max_per_run_usdc":1e400}}'],
    ['a text for money', { constraints: { max_per_run_usdc: '1' } }],
    ['neither rules nor constraints', { name: 'x' }],
    ['rules without a name', { rules: [] }],
    ['an unknown field', { name: 'x', rules: [{ field: 'mood', op: 'eq', value: 'x', effect: 'deny' }] }],
    ['an unknown operator', { name: 'x', rules: [{ field: 'agent_id', op: 'like', value: 'x', effect: 'deny' }] }],
    [
      'a text field compared by size',
      { name: 'x', rules: [{ field: 'agent_id', op: '>', value: 'x', effect: 'deny' }] },
    ],
    [
      'a list where one value is expected',
      { name: 'x', rules: [{ field: 'agent_id', op: 'eq', value: ['x'], effect: 'deny' }] },
    ],
    ['an agent policy without its agent', { identity_type: 'agent', constraints: {} }],
    ['an unknown key', { api_key: 'csk_nobody', constraints: {} }],
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
    ['a threshold above 100', { limit_usdc: 1, alert_thresholds: [101] }],
    ['an invalid id', { limit_usdc: 1, budget_id: 'a b' }],
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
    ['a type that is an object without a text form', [{ type: { toString: 'text' } }]],
    ['a payee without a name', [{ type: 'payment.allowed_payees', allowed: [{}] }]],
    ['an invalid date', [{ type: 'payment.execution_date', not_before: 'soon' }]],
    ['a number as a date', [{ type: 'payment.execution_date', not_before: '1' }]],
    ['a day that does not exist', [{ type: 'payment.execution_date', not_after: '2030-02-30' }]],
    ['a time without its zone', [{ type: 'payment.execution_date', not_after: '2030-01-31T12:00:00' }]],
    [
      'an end before its start',
      [{ type: 'payment.execution_date', not_before: '2030-02-01', not_after: '2030-01-31' }],
    ],
  ])('a mandate with %s is a 400', async (_, constraints) => {
    const tenant = await richTenant(world)
    const answer = await world.post('/api/mandates', { name: 'm', constraints }, tenant.headers)
    expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request'])
  })

  test('the error of an invalid mandate constraint refers to its type', async () => {
    const tenant = await richTenant(world)
    const errorMessage = async (constraint: unknown) =>
      (await world.post('/api/mandates', { name: 'm', constraints: [constraint] }, tenant.headers)).body.message
    expect(await errorMessage({ type: 'payment.forever' })).toBe(
      "body/constraints/0/type 'payment.forever' is unknown.",
    )
    expect(await errorMessage({ type: 'payment.budget', currency: 'USDC' })).toMatch(/required property 'max'/)
    expect(await errorMessage({ type: 'payment.budget', currency: 'USDC', max: 1, per: 'day' })).toMatch(
      /unknown property 'per'/,
    )
    expect(await errorMessage({ max: 1 })).toMatch(/required property 'type'/)
  })

  test('resources of another tenant are not found', async () => {
    const [tenant, stranger] = [await richTenant(world), await richTenant(world)]
    const preauth = (await createPreauth(tenant)).body.preauth_id
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
    expect((await createPreauth(stranger, { mandate_id: mandate })).status).toBe(400)
    expect(
      (await world.post('/api/approvals', { approval_id: 'apr_none', decision: 'approve' }, stranger.headers)).status,
    ).toBe(404)
    expect((await world.get(`/api/pre-auth/${preauth}`, tenant.headers)).body.status).toBe('open')
  })
})

// Last in the file: from here on the background work sweeps by itself.
test('background work escalates overdue pre-authorisations and rejects expired approvals', async () => {
  const tenant = await richTenant(world)
  const overdue = await createPreauth(tenant, { amount_usdc: 1 })
  await world.post('/api/policies', { constraints: { require_approval_above_usdc: 1 } }, tenant.headers)
  const pendingResponse = await createPreauth(tenant)
  world.service.governance.start()
  world.clock.advance(86_400_000)
  await vi.waitFor(async () => {
    const { body } = await world.get('/api/pre-auth', tenant.headers)
    expect(body.preauths).toMatchObject([
      { preauth_id: pendingResponse.body.preauth_id, status: 'rejected' },
      { preauth_id: overdue.body.preauth_id, status: 'escalated' },
    ])
  }, 20_000)
})
