import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Payer } from '../harness.ts'
import { startWorld, type World } from '../money/world.ts'

type Tenant = { headers: Record<string, string> }

let world: World
let payTo: string

beforeAll(async () => {
  world = await startWorld()
  payTo = await world.payee()
}, 120_000)

afterAll(() => world?.close())

async function openPreauth(tenant: Tenant, terms: Record<string, unknown> = {}) {
  const body = { agent_id: 'buyer', merchant: { id: 'shop', pay_to: payTo }, amount_usdc: 0.01, ...terms }
  const { status, body: preauth, text } = await world.post('/api/pre-auth', body, tenant.headers)
  expect(status, text).toBe(201)
  return preauth.preauth_id as string
}

const close = (tenant: Tenant, preauth_id: string, transaction: string) =>
  world.post('/api/pre-auth/close', { preauth_id, outcome: 'settled', transaction }, tenant.headers)

/** A transfer of 0.01 USDC from this payer to the merchant. */
async function transferFrom(payer: Payer, headers: Record<string, string> = {}): Promise<string> {
  const { answer } = await world.pay(payer, '/api/run', { task: 'joke', agent_id: 'comedian-v1' }, headers)
  return answer.body.settlement.transaction
}

test('a transfer from another payer than the named one closes nothing and claims nothing: its owner closes with it', async () => {
  const [owner, stranger] = [await world.onboard(), await world.onboard()]
  const [payer, otherPayer] = [await world.payer(1), await world.payer(1)]
  const transaction = await transferFrom(payer)
  const foreign = await openPreauth(stranger, { payer: otherPayer.address })
  const refused = await close(stranger, foreign, transaction)
  expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
  expect(refused.body.message).toContain(payer.address.toLowerCase())
  expect((await world.get(`/api/pre-auth/${foreign}`, stranger.headers)).body).toMatchObject({
    status: 'open',
    payer: otherPayer.address.toLowerCase(),
  })

  const own = await openPreauth(owner, { payer: payer.address })
  const closed = await close(owner, own, transaction)
  expect(closed.body).toMatchObject({ status: 'closed', charged: '10000', verified_onchain: true })
  expect(closed.body.receipt.settlement).toMatchObject({ asserted_by: 'chain', payer: payer.address.toLowerCase() })
  // Its own payer made no transfer in that transaction, also not when the sweep looks.
  world.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${foreign}`, stranger.headers)).body.status).toBe('escalated')
  world.advance(-600_000)
})

test('without a named payer, a faucet transfer and the payment of another tenant close nothing', async () => {
  const [owner, stranger] = [await world.onboard(), await world.onboard()]
  const { body: minted } = await world.post('/api/dev/faucet', { address: payTo, amount_usdc: 0.01 })
  const preauth = await openPreauth(stranger)
  expect((await close(stranger, preauth, minted.transaction)).status).toBe(409)

  const payer = await world.payer(1)
  const paid = await transferFrom(payer, owner.headers)
  for (const terms of [{}, { payer: payer.address }])
    expect((await close(stranger, await openPreauth(stranger, terms), paid)).status).toBe(409)
  const closed = await close(owner, await openPreauth(owner), paid)
  expect(closed.body).toMatchObject({ status: 'closed', verified_onchain: true })
})

test('a tenant that reports a transfer of nobody it knows does not keep its owner from closing with it', async () => {
  const [owner, stranger] = [await world.onboard(), await world.onboard()]
  const payer = await world.payer(1)
  const transaction = await transferFrom(payer)
  await close(stranger, await openPreauth(stranger), transaction)
  const closed = await close(owner, await openPreauth(owner), transaction)
  expect(closed.body).toMatchObject({ status: 'closed', verified_onchain: true })
  // Within a tenant a transfer is still one payment.
  expect((await close(owner, await openPreauth(owner), transaction)).status).toBe(409)
})

test('a payer must be an address on the network of the payment', async () => {
  const tenant = await world.onboard()
  const body = { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.01, payer: 'somebody' }
  const { status, body: problem } = await world.post('/api/pre-auth', body, tenant.headers)
  expect([status, problem.error]).toEqual([400, 'invalid_request'])
})
