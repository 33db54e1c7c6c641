import { verifyReceipt } from '@countersign/proof'
import { encodeFunctionData, parseAbi } from 'viem'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startWorld, type World } from '../money/world.ts'

/** A close without a transaction: the sweep looks for the transfer itself, and claims only what is nobody else's. */
const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913'
type Tenant = { tenantId: string; headers: Record<string, string> }
type Payer = Awaited<ReturnType<World['payer']>>

let world: World
beforeAll(async () => {
  world = await startWorld()
}, 120_000)
afterAll(() => world?.close())

let shops = 0
/** A merchant of its own for each test. */
const newShop = () => `0x${(++shops).toString(16).padStart(40, 'a')}`
const nonces = new Map<string, number>()

async function transfer(payer: Payer, to: string, micro: bigint): Promise<string> {
  // Blocks have whole seconds, and a payment of the same second might be older than the pre-authorisation.
  world.advance(2_000)
  const nonce = nonces.get(payer.address) ?? 0
  nonces.set(payer.address, nonce + 1)
  const data = encodeFunctionData({
    abi: parseAbi(['function transfer(address,uint256)']),
    args: [to as `0x${string}`, micro],
  })
  const raw = await payer.signTransaction({
    type: 'eip1559',
    chainId: 8453,
    nonce,
    to: USDC,
    data,
    gas: 200_000n,
    maxFeePerGas: 0n,
  })
  return (await world.rpc('eth_sendRawTransaction', [raw])) as string
}

async function open(tenant: Tenant, payer: Payer | null, payTo: string | null, terms: Record<string, unknown> = {}) {
  const merchant = { id: 'shop', ...(payTo && { pay_to: payTo }) }
  const body = { agent_id: 'buyer', merchant, amount: '10000', ...(payer && { payer: payer.address }), ...terms }
  const { status, body: preauth, text } = await world.post('/api/pre-auth', body, tenant.headers)
  expect(status, text).toBe(201)
  return preauth.preauth_id as string
}
const close = async (tenant: Tenant, preauth_id: string, report: Record<string, unknown> = {}) => {
  const closed = await world.post('/api/pre-auth/close', { preauth_id, outcome: 'settled', ...report }, tenant.headers)
  return closed
}
const read = async (tenant: Tenant, id: string) => (await world.get(`/api/pre-auth/${id}`, tenant.headers)).body
const sweep = async (afterMs = 120_000) => {
  world.advance(afterMs)
  await world.service.governance.sweepReportedCloses()
}

test('the matching transfer is found, and a second receipt settles the close with it', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const id = await open(tenant, payer, shop)
  const transaction = await transfer(payer, shop, 9_000n)
  const closed = await close(tenant, id, { actual_amount: '9000' })
  expect(closed.body).toMatchObject({ outcome: 'reported', settlement: { status: 'reported', transaction: null } })
  await sweep()
  const record = await read(tenant, id)
  expect(record.settlement).toMatchObject({ status: 'settled', asserted_by: 'chain', transaction })
  const receipt = (await world.get(record.settlement.receipt_url)).body
  expect(receipt).toMatchObject({
    kind: 'correction',
    charged: true,
    settlement: { status: 'settled', transaction, payer: payer.address.toLowerCase(), amount: '9000' },
  })
  const jwks = (await world.get('/.well-known/jwks.json')).body
  expect(verifyReceipt(receipt, { jwks })).toMatchObject({ ok: true })
  // What was claimed closes nothing else.
  const other = await open(tenant, payer, shop)
  expect((await close(tenant, other, { actual_amount: '9000', transaction })).status).toBe(409)
})

test.each([
  ['of another amount', async (payer: Payer, shop: string) => transfer(payer, shop, 9_999n)],
  ['to another address', async (payer: Payer) => transfer(payer, newShop(), 10_000n)],
  ['of another payer', async (_: Payer, shop: string) => transfer(await world.payer(1), shop, 10_000n)],
  ['of nobody', async () => undefined],
])('a transfer %s is not claimed: the close stays reported, without an alert', async (_, pay) => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const id = await open(tenant, payer, shop)
  await pay(payer, shop)
  await close(tenant, id)
  await sweep()
  await sweep(26 * 3_600_000)
  await sweep(26 * 3_600_000)
  expect((await read(tenant, id)).settlement).toMatchObject({ status: 'reported', transaction: null })
  expect(await world.db.selectFrom('alerts').selectAll().where('tenant_id', '=', tenant.tenantId).execute()).toEqual([])
  const row = await world.db
    .selectFrom('preauths')
    .select('settlement_check_at')
    .where('id', '=', id)
    .executeTakeFirst()
  expect(row!.settlement_check_at, 'nobody looks for ever').toBeNull()
})

test('a transfer from before the pre-authorisation is not claimed', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  await transfer(payer, shop, 10_000n)
  world.advance(5_000)
  const id = await open(tenant, payer, shop)
  await close(tenant, id)
  await sweep()
  expect((await read(tenant, id)).settlement).toMatchObject({ status: 'reported', transaction: null })
})

test('without a payer or an address nothing is looked for', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const ids = [await open(tenant, null, shop), await open(tenant, payer, null)]
  await transfer(payer, shop, 10_000n)
  const spy = vi.spyOn(world.service.chain.reader!, 'findTransfers')
  for (const id of ids) await close(tenant, id)
  await sweep()
  expect(
    spy.mock.calls.filter(([sought]) => sought.to === shop || sought.from === payer.address.toLowerCase()),
  ).toEqual([])
  spy.mockRestore()
  for (const id of ids) expect((await read(tenant, id)).settlement.status).toBe('reported')
})

test('one transfer settles one of two closes, and two transfers both', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const ids = [await open(tenant, payer, shop), await open(tenant, payer, shop)]
  await transfer(payer, shop, 10_000n)
  for (const id of ids) await close(tenant, id)
  await sweep()
  const statuses = async () =>
    (await Promise.all(ids.map((id) => read(tenant, id)))).map(({ settlement }) => settlement.status).sort()
  expect(await statuses()).toEqual(['reported', 'settled'])
  await transfer(payer, shop, 10_000n)
  await sweep(600_000)
  expect(await statuses()).toEqual(['settled', 'settled'])
  const used = (await Promise.all(ids.map((id) => read(tenant, id)))).map(({ settlement }) => settlement.transaction)
  expect(new Set(used).size).toBe(2)
})

test('a transfer that another pre-authorisation has named is not claimed, whoever named it', async () => {
  const [owner, tenant] = [await world.onboard(), await world.onboard()]
  const [payer, shop] = [await world.payer(1), newShop()]
  const named = await open(owner, payer, shop)
  const id = await open(tenant, payer, shop)
  const transaction = await transfer(payer, shop, 10_000n)
  expect((await close(owner, named, { transaction })).body.settlement.status).toBe('settled')
  await close(tenant, id)
  await sweep()
  expect((await read(tenant, id)).settlement).toMatchObject({ status: 'reported', transaction: null })
})

test('while another one is open that could be paid by the transfer, it is left to that one', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const [reported, other] = [await open(tenant, payer, shop), await open(tenant, payer, shop)]
  const transaction = await transfer(payer, shop, 10_000n)
  await close(tenant, reported)
  await sweep(60_000)
  expect((await read(tenant, reported)).settlement.status).toBe('reported')
  expect((await close(tenant, other, { transaction })).body.settlement.status).toBe('settled')
})

test('a chain that does not answer changes nothing, and is asked again', async () => {
  const tenant = await world.onboard()
  const [payer, shop] = [await world.payer(1), newShop()]
  const id = await open(tenant, payer, shop)
  await transfer(payer, shop, 10_000n)
  await close(tenant, id)
  const spy = vi.spyOn(world.service.chain.reader!, 'findTransfers').mockRejectedValue(new Error('no answer'))
  await sweep()
  expect(spy).toHaveBeenCalled()
  spy.mockRestore()
  expect((await read(tenant, id)).settlement.status).toBe('reported')
  await sweep(600_000)
  expect((await read(tenant, id)).settlement.status).toBe('settled')
})
