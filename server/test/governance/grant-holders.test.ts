import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readChallenge, signPayment } from '../harness.ts'
import { openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

type Headers = Record<string, string>
type OwnKey = { headers: Headers; keyId: string }

async function makeKey(maker: { headers: Headers }, scopes: string[], bonds = {}): Promise<OwnKey> {
  const { body } = await world.post('/api/keys', { name: 'k', scopes, ...bonds }, maker.headers)
  return { headers: { 'x-api-key': body.api_key }, keyId: body.key_id }
}

async function rotate(maker: { headers: Headers }, keyId: string): Promise<OwnKey> {
  const { body } = await world.post(`/api/keys/${keyId}/rotate`, {}, maker.headers)
  return { headers: { 'x-api-key': body.api_key }, keyId: body.key_id }
}

const AGENT = ['read', 'run']
const OFFICER = ['read', 'run', 'control', 'mandate']

const decide = (headers: Headers, approval_id: string) =>
  world.post('/api/approvals', { approval_id, decision: 'approve' }, headers)
const balanceOf = async (tenant: Tenant) =>
  (await world.get(`/api/wallets/${tenant.walletId}`, tenant.headers)).body.balance.available as string
const expectForbidden = ({ status, body }: { status: number; body: Record<string, unknown> }) =>
  expect([status, body.code], String(body.message)).toEqual([403, 'forbidden'])

/** A tenant whose runs need an approval, unless its policy says otherwise, with two agents and an officer who approves. */
async function reviewedTenant(constraints: Record<string, unknown> = { require_approval_above_usdc: 0 }) {
  const tenant = await richTenant(world)
  const policy = { name: 'Review', constraints }
  expect((await world.post('/api/policies', policy, tenant.headers)).status).toBe(201)
  return {
    tenant,
    asker: await makeKey(tenant, AGENT, { spender: 'fleet-7' }),
    other: await makeKey(tenant, AGENT, { spender: 'evil' }),
    unbound: await makeKey(tenant, AGENT),
    officer: await makeKey(tenant, OFFICER),
  }
}

let task = 0
const nextTask = () => ({ task: `Joke ${++task}.` })

describe('an approval is for whoever asked', () => {
  test('paid from a wallet: another spender, an unbound key and the approver get 403, nothing is charged, and the asker uses it', async () => {
    const { tenant, asker, other, unbound, officer } = await reviewedTenant()
    const body = nextTask()
    const { approval_id } = (await run(world, tenant, body, asker.headers)).body
    const before = await balanceOf(tenant)
    for (const { headers } of [other, unbound, officer])
      expectForbidden(await run(world, tenant, { ...body, approval_id }, headers))
    expect((await decide(officer.headers, approval_id)).status).toBe(200)
    for (const { headers } of [other, unbound, officer])
      expectForbidden(await run(world, tenant, { ...body, approval_id }, headers))
    expect(await balanceOf(tenant)).toBe(before)
    expect((await world.get(`/api/approvals/${approval_id}`, tenant.headers)).body.used_at).toBeNull()
    const completed = await run(world, tenant, { ...body, approval_id }, asker.headers)
    expect([completed.status, completed.text]).toEqual([200, completed.text])
    // The answer of the run that used it is the asker's too.
    for (const { headers } of [other, unbound, officer])
      expectForbidden(await run(world, tenant, { ...body, approval_id }, headers))
    expect((await run(world, tenant, { ...body, approval_id }, asker.headers)).text).toBe(completed.text)
  })

  test('paid by x402: neither a challenge nor a payment is taken from another identity', async () => {
    const { asker, other, officer } = await reviewedTenant()
    const body = { ...nextTask(), agent_id: 'comedian-v1' }
    const { approval_id } = (await world.post('/api/run', body, asker.headers)).body
    await decide(officer.headers, approval_id)
    const sent = { ...body, approval_id }
    for (const { headers } of [other, officer]) expectForbidden(await world.post('/api/run', sent, headers))
    const challenge = await world.post('/api/run', sent, asker.headers)
    expect(challenge.status).toBe(402)
    const payment = await signPayment(await world.payer(1), readChallenge(challenge.headers))
    for (const { headers } of [other, officer])
      expectForbidden(await world.post('/api/run', sent, { ...headers, ...payment }))
    expect((await world.post('/api/run', sent, { ...asker.headers, ...payment })).status).toBe(200)
  })

  test('a loop is no other', async () => {
    const { tenant, asker, other, officer } = await reviewedTenant()
    const body = { input: `Joke ${++task}.`, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
    const asked = await world.post('/api/loop', body, asker.headers)
    expect(asked.body.approval_id, asked.text).toBeTruthy()
    await decide(officer.headers, asked.body.approval_id)
    const sent = { ...body, approval_id: asked.body.approval_id }
    for (const { headers } of [other, officer]) expectForbidden(await world.post('/api/loop', sent, headers))
    expect((await world.post('/api/loop', sent, asker.headers)).status).toBe(200)
  })

  test('the key that replaced the asker, its maker and a key of the same spender are the asker', async () => {
    const { tenant, asker, officer } = await reviewedTenant()
    const sameSpender = await makeKey(tenant, AGENT, { spender: 'fleet-7' })
    const bodies = [nextTask(), nextTask(), nextTask()]
    const approvals: string[] = []
    for (const body of bodies) approvals.push((await run(world, tenant, body, asker.headers)).body.approval_id)
    const successor = await rotate(tenant, asker.keyId)
    for (const [index, { headers }] of [sameSpender, successor, tenant].entries()) {
      await decide(officer.headers, approvals[index]!)
      const used = await run(world, tenant, { ...bodies[index], approval_id: approvals[index] }, headers)
      expect([used.status, index]).toEqual([200, index])
    }
  })

  test('a tenant with a single key asks, approves and uses', async () => {
    const tenant = await richTenant(world)
    const policy = { name: 'Review', constraints: { require_approval_above_usdc: 0 } }
    await world.post('/api/policies', policy, tenant.headers)
    const { approval_id } = (await run(world, tenant)).body
    expect((await decide(tenant.headers, approval_id)).body.self_approved).toBe(true)
    expect((await run(world, tenant, { approval_id })).status).toBe(200)
  })

  test('the same request of another identity waits for an approval of its own, that of the same identity for the first', async () => {
    const { tenant, asker, other, officer } = await reviewedTenant()
    const sameSpender = await makeKey(tenant, AGENT, { spender: 'fleet-7' })
    const body = nextTask()
    const ask = async ({ headers }: OwnKey) => (await run(world, tenant, body, headers)).body
    const [first, repeated, second] = [await ask(asker), await ask(sameSpender), await ask(other)]
    expect([repeated.approval_id, repeated.run_id]).toEqual([first.approval_id, first.run_id])
    expect(second.approval_id).not.toBe(first.approval_id)
    expect(second.run_id).not.toBe(first.run_id)
    expect((await ask(asker)).approval_id).toBe(first.approval_id)
    expect((await ask(other)).approval_id).toBe(second.approval_id)
    for (const { approval_id } of [first, second])
      expect((await world.get(`/api/approvals/${approval_id}`, tenant.headers)).body.status).toBe('pending')
    await decide(officer.headers, first.approval_id)
    expect((await world.get(`/api/approvals/${second.approval_id}`, tenant.headers)).body.status).toBe('pending')
    expectForbidden(await run(world, tenant, { ...body, approval_id: first.approval_id }, other.headers))
    expect((await run(world, tenant, { ...body, approval_id: first.approval_id }, asker.headers)).status).toBe(200)
  })

  test('of the same request sent at once by two identities, each gets its own approval', async () => {
    const { tenant, asker, other } = await reviewedTenant()
    const body = nextTask()
    const answers = await Promise.all(
      [asker, other, asker, other, asker, other].map(({ headers }) => run(world, tenant, body, headers)),
    )
    const ids = answers.map((answer) => answer.body.approval_id)
    expect(new Set([ids[0], ids[2], ids[4]]).size).toBe(1)
    expect(new Set([ids[1], ids[3], ids[5]]).size).toBe(1)
    expect(new Set(ids).size).toBe(2)
  })

  test("a key made by the approver does not run on what somebody else's request was approved for", async () => {
    const { tenant, asker } = await reviewedTenant()
    const approver = await makeKey(tenant, [...OFFICER, 'keys'])
    const child = await makeKey(approver, AGENT)
    const body = nextTask()
    const first = (await run(world, tenant, body, asker.headers)).body
    const own = (await run(world, tenant, body, child.headers)).body
    expect((await decide(approver.headers, first.approval_id)).status).toBe(200)
    expectForbidden(await decide(approver.headers, own.approval_id))
    expectForbidden(await run(world, tenant, { ...body, approval_id: first.approval_id }, child.headers))
  })
})

describe('an override is for whoever was denied', () => {
  test('on a pre-authorisation: another spender, and a key that is bound to none, get 403 and leave it unused', async () => {
    const { tenant, asker, other, unbound, officer } = await reviewedTenant({ max_per_run_usdc: 0.005 })
    const body = { agent_id: 'comedian-v1', merchant: { id: 'shop.example' }, amount_usdc: 0.01 }
    const denied = await world.post('/api/pre-auth', body, asker.headers)
    expect([denied.status, denied.body.outcome]).toEqual([422, 'rejected'])
    const override = await world.post(
      '/api/authorize',
      {
        agent_id: 'comedian-v1',
        amount_usdc: 0.01,
        merchant: 'shop.example',
        reason: 'r',
        denied_decision_id: denied.body.decision_id,
      },
      officer.headers,
    )
    expect(override.status, override.text).toBe(200)
    const sent = { ...body, override_token: override.body.token }
    for (const { headers } of [other, unbound, officer])
      expectForbidden(await world.post('/api/pre-auth', sent, headers))
    const successor = await rotate(tenant, asker.keyId)
    expect((await world.post('/api/pre-auth', sent, successor.headers)).status).toBe(201)
  })

  test('on a run: another identity gets 403, nothing is charged, and whoever was denied uses it', async () => {
    const tenant = await richTenant(world)
    const [asker, other, officer] = [
      await makeKey(tenant, AGENT),
      await makeKey(tenant, AGENT),
      await makeKey(tenant, OFFICER),
    ]
    await world.post('/api/policies', { name: 'No', constraints: { denied_agents: ['comedian-v1'] } }, tenant.headers)
    const denied = (await run(world, tenant, {}, asker.headers)).body
    const authorized = await world.post(
      '/api/authorize',
      {
        agent_id: 'comedian-v1',
        amount_usdc: 0.01,
        merchant: 'countersign',
        reason: 'r',
        denied_decision_id: denied.decision_id,
      },
      officer.headers,
    )
    expect(authorized.status, authorized.text).toBe(200)
    const before = await balanceOf(tenant)
    const sent = { override_token: authorized.body.token }
    for (const { headers } of [other, officer]) expectForbidden(await run(world, tenant, sent, headers))
    expect(await balanceOf(tenant)).toBe(before)
    expect((await run(world, tenant, sent, asker.headers)).status).toBe(200)
  })
})
