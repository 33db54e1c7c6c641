import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

const AGENT = ['read', 'run']
const SHOP = { id: 'shop.example' }
const expectForbidden = ({ status, body }: { status: number; body: Record<string, unknown> }) =>
  expect([status, body.code], String(body.message)).toEqual([403, 'forbidden'])

async function fleet(): Promise<{ tenant: Tenant; own: OwnKey; evil: OwnKey; unbound: OwnKey; officer: OwnKey }> {
  const tenant = await richTenant(world)
  return {
    tenant,
    own: await makeKey(tenant, AGENT, { spender: 'fleet-7' }),
    evil: await makeKey(tenant, AGENT, { spender: 'evil' }),
    unbound: await makeKey(tenant, AGENT),
    officer: await makeKey(tenant, [...AGENT, 'control']),
  }
}

const open = async (headers: Headers, terms: Record<string, unknown> = {}) => {
  const body = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.01, ...terms }
  const { status, body: preauth, text } = await world.post('/api/pre-auth', body, headers)
  expect(status, text).toBe(201)
  return preauth as { preauth_id: string; token: string }
}
const close = (headers: Headers, preauth_id: string) =>
  world.post('/api/pre-auth/close', { preauth_id, outcome: 'voided' }, headers)

describe('the token of a pre-authorisation', () => {
  test('is shown to whoever opened it, keys of its identity, keys of its spender and keys with control, and null to others', async () => {
    const { tenant, own, evil, unbound, officer } = await fleet()
    const sameSpender = await makeKey(tenant, AGENT, { spender: 'fleet-7' })
    const readToken = async (headers: Headers, id: string) => {
      const single = (await world.get(`/api/pre-auth/${id}`, headers)).body
      const { preauths } = (await world.get('/api/pre-auth', headers)).body
      const listed = preauths.find((item: { preauth_id: string }) => item.preauth_id === id)
      expect(listed.token).toBe(single.token)
      return single.token
    }
    const ofFleet = await open(own.headers)
    for (const { headers } of [own, sameSpender, officer, tenant])
      expect(await readToken(headers, ofFleet.preauth_id)).toBe(ofFleet.token)
    for (const { headers } of [evil, unbound]) expect(await readToken(headers, ofFleet.preauth_id)).toBeNull()
    // Opened for the fleet by a key that is bound to nobody.
    const forFleet = await open(unbound.headers, { spender: 'fleet-7' })
    for (const { headers } of [own, unbound, officer])
      expect(await readToken(headers, forFleet.preauth_id)).toBe(forFleet.token)
    expect(await readToken(evil.headers, forFleet.preauth_id)).toBeNull()
  })

  test('is not in the stored answer that another key gets by sending the request again with its idempotency key', async () => {
    const { own, evil, unbound, officer, tenant } = await fleet()
    const sameSpender = await makeKey(tenant, AGENT, { spender: 'fleet-7' })
    const body = { agent_id: 'comedian-v1', merchant: { id: 'countersign' }, amount_usdc: 0.01 }
    const send = ({ headers }: { headers: Headers }) =>
      world.post('/api/pre-auth', body, { ...headers, 'idempotency-key': 'the-same' })
    const first = await send(own)
    expect(first.body.token, first.text).toBeTruthy()
    for (const key of [evil, unbound]) {
      const again = await send(key)
      expect([again.status, again.body.preauth_id, again.body.token]).toEqual([201, first.body.preauth_id, null])
    }
    for (const key of [own, sameSpender, officer]) expect((await send(key)).body).toEqual(first.body)
  })

  test('whoever does not see it cannot close the pre-authorisation either', async () => {
    const { tenant, own, evil, unbound, officer } = await fleet()
    const preauth = await open(own.headers, { merchant: SHOP })
    for (const { headers } of [evil, unbound]) {
      expectForbidden(await close(headers, preauth.preauth_id))
      expectForbidden(await world.post('/api/pre-auth/close', { token: preauth.token, outcome: 'voided' }, headers))
    }
    expect((await world.get(`/api/pre-auth/${preauth.preauth_id}`, tenant.headers)).body.status).toBe('open')
    expect((await close(own.headers, preauth.preauth_id)).status).toBe(200)
    for (const { headers } of [officer, tenant])
      expect((await close(headers, (await open(own.headers, { merchant: SHOP })).preauth_id)).status).toBe(200)
  })

  test('a key bound to another spender cannot run with it, nor can a run name another spender', async () => {
    const { tenant, own, evil, unbound } = await fleet()
    const { token, preauth_id } = await open(own.headers)
    expectForbidden(await run(world, tenant, { preauth_token: token }, evil.headers))
    expectForbidden(await run(world, tenant, { preauth_token: token, spender: 'evil' }, unbound.headers))
    const loop = { input: 'joke', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
    expectForbidden(await world.post('/api/loop', { ...loop, preauth_token: token }, evil.headers))
    expect((await world.get(`/api/pre-auth/${preauth_id}`, tenant.headers)).body.status).toBe('open')
    expect((await run(world, tenant, { preauth_token: token }, own.headers)).status).toBe(200)
  })

  test('a token that names a lane and no spender is used by the bound key that it is given to', async () => {
    const { tenant, own, unbound } = await fleet()
    const { token } = await open(unbound.headers)
    const used = await run(world, tenant, { preauth_token: token }, own.headers)
    expect(used.status, used.text).toBe(200)
  })

  test('freeze, rules and budgets of its spender bind a run of an unbound key, and the run is that spender’s', async () => {
    const { tenant, own, unbound } = await fleet()
    const spent = await run(world, tenant, { preauth_token: (await open(own.headers)).token }, unbound.headers)
    expect(spent.status, spent.text).toBe(200)
    expect(spent.body.receipt.governance.spender).toBe('fleet-7')
    const { token } = await open(own.headers)
    const { token: another } = await open(own.headers)
    const rule = { field: 'spender', op: '=', value: 'fleet-7', effect: 'deny' }
    const policy = await world.post('/api/policies', { name: 'No fleet', rules: [rule] }, tenant.headers)
    expect(policy.status, policy.text).toBe(201)
    expect((await run(world, tenant, { preauth_token: token }, unbound.headers)).status).toBe(429)
    await world.call('DELETE', `/api/policies/${policy.body.id}`, undefined, tenant.headers)
    const freeze = { action: 'freeze', agent_id: 'fleet-7', reason: 'stolen' }
    expect((await world.post('/api/control-tower', freeze, tenant.headers)).status).toBe(200)
    const frozen = await run(world, tenant, { preauth_token: another }, unbound.headers)
    expect([frozen.status, frozen.body.message]).toEqual([429, "The agent 'fleet-7' is frozen: stolen"])
  })
})

describe('a key that was revoked while its request waited', () => {
  const INACTIVE = 'This can no longer be approved. The key that made the request is not active any more.'

  test('gets no pre-authorisation and no trade by an approval; a rotated key does', async () => {
    const { tenant, own, officer } = await fleet()
    const policy = { name: 'Review', constraints: { require_approval_above_usdc: 0.5 } }
    await world.post('/api/policies', policy, tenant.headers)
    const rotated = await makeKey(tenant, AGENT, { spender: 'fleet-8' })
    const ask = async ({ headers }: OwnKey, agent_id: string) => ({
      preauth: (await world.post('/api/pre-auth', { agent_id, merchant: SHOP, amount_usdc: 1 }, headers)).body,
      trade: (
        await world.post(
          '/api/rh/run',
          { tenant_id: tenant.tenantId, symbol: 'acme', instrument_type: 'spend', side: 'buy', quantity: 1500 },
          headers,
        )
      ).body,
    })
    const [ofRevoked, ofRotated] = [await ask(own, 'fleet-7'), await ask(rotated, 'fleet-8')]
    expect([ofRevoked.preauth.status, ofRevoked.trade.status]).toEqual(['pending_approval', 'pending_approval'])
    await world.post(`/api/keys/${rotated.keyId}/rotate`, { overlap_seconds: 0 }, tenant.headers)
    await world.call('DELETE', `/api/keys/${own.keyId}`, undefined, tenant.headers)
    const approve = (approval_id: string) =>
      world.post('/api/approvals', { approval_id, decision: 'approve' }, officer.headers)
    const approveTrade = (run_id: string) => world.post('/api/rh/approve', { run_id }, officer.headers)
    for (const refused of [await approve(ofRevoked.preauth.approval_id), await approveTrade(ofRevoked.trade.run_id)])
      expect([refused.status, refused.body.message]).toEqual([409, INACTIVE])
    const { body } = await world.get(`/api/pre-auth/${ofRevoked.preauth.preauth_id}`, tenant.headers)
    expect([body.status, body.token]).toEqual(['pending_approval', null])
    const { body: waiting } = await world.get(`/api/rh/runs/${ofRevoked.trade.run_id}`, tenant.headers)
    expect(waiting.status).toBe('pending_approval')
    expect((await approve(ofRotated.preauth.approval_id)).status).toBe(200)
    expect((await approveTrade(ofRotated.trade.run_id)).status).toBe(200)
  })
})
