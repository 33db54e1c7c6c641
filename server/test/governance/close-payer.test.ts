import { afterAll, beforeAll, expect, test, vi } from 'vitest'
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

test('a transaction that was mined before the pre-authorisation was made, or was approved, closes nothing, also not by the sweep', async () => {
  const tenant = await world.onboard()
  const payer = await world.payer(1)
  const early = await transferFrom(payer)
  world.advance(60_000)
  const id = await openPreauth(tenant)
  const refused = await close(tenant, id, early)
  expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
  expect(refused.body.message).toContain('mined before')
  // A refused close is remembered, and the sweep of what is overdue asks the chain about it.
  world.advance(600_000)
  await world.service.governance.sweepOrphanedPreauths()
  expect((await world.get(`/api/pre-auth/${id}`, tenant.headers)).body.status).toBe('escalated')
  expect((await close(tenant, id, await transferFrom(payer))).body).toMatchObject({ verified_onchain: true })

  await world.post(
    '/api/policies',
    { name: 'Review', constraints: { require_approval_above_usdc: 0.001 } },
    tenant.headers,
  )
  const waiting = await world.post(
    '/api/pre-auth',
    { agent_id: 'buyer', merchant: { id: 'shop', pay_to: payTo }, amount_usdc: 0.01 },
    tenant.headers,
  )
  const beforeApproval = await transferFrom(payer)
  world.advance(60_000)
  const decision = { approval_id: waiting.body.approval_id, decision: 'approve' }
  expect((await world.post('/api/approvals', decision, tenant.headers)).status).toBe(200)
  expect((await close(tenant, waiting.body.preauth_id, beforeApproval)).status).toBe(409)
})

test('what was mined before is corrected to not found when it was reported while the chain could not be asked', async () => {
  const tenant = await world.onboard()
  const early = await transferFrom(await world.payer(1))
  world.advance(60_000)
  const id = await openPreauth(tenant)
  const node = vi.spyOn(world.service.chain.reader!, 'transfers').mockRejectedValue(new Error('No answer.'))
  expect((await close(tenant, id, early)).body.settlement.status).toBe('reported')
  node.mockRestore()
  world.advance(120_000)
  await world.service.governance.sweepReportedCloses()
  const record = (await world.get(`/api/pre-auth/${id}`, tenant.headers)).body
  expect(record.settlement).toMatchObject({ status: 'not_found', reason: 'no_such_transfer' })
})

test('the payment of a run or of a top-up closes no pre-authorisation for another merchant, and is counted once', async () => {
  const tenant = await world.tenantWithWallet(0)
  const named = { merchant: { id: 'shop' } }
  const [first, second] = [await openPreauth(tenant, named), await openPreauth(tenant, named)]
  const run = await transferFrom(tenant.payer, tenant.headers)
  const topUp = await world.pay(
    tenant.payer,
    `/api/wallets/${tenant.walletId}/topup`,
    { amount_usdc: 0.01 },
    tenant.headers,
  )
  for (const [id, transaction] of [
    [first, run],
    [second, topUp.answer.body.settlement.transaction],
  ] as const) {
    const refused = await close(tenant, id, transaction)
    expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
    expect(refused.body.message).toContain('run or a top-up')
  }
  expect((await world.get('/api/spend', tenant.headers)).body.totals.amount).toBe('10000')
})

test("another tenant's run closes nothing, though its payer has paid for both", async () => {
  const [owner, other] = [await world.onboard(), await world.tenantWithWallet(0.01)]
  const id = await openPreauth(other)
  const paid = await transferFrom(other.payer, owner.headers)
  const refused = await close(other, id, paid)
  expect([refused.status, refused.body.code]).toEqual([409, 'conflict'])
  expect(refused.body.message).toContain('another tenant')
})

test('a payer must be an address on the network of the payment', async () => {
  const tenant = await world.onboard()
  const body = { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.01, payer: 'somebody' }
  const { status, body: problem } = await world.post('/api/pre-auth', body, tenant.headers)
  expect([status, problem.error]).toEqual([400, 'invalid_request'])
})
