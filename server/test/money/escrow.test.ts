import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

type Tenant = Awaited<ReturnType<World['tenantWithWallet']>>

const holdEscrow = async (buyer: Tenant, body: Record<string, unknown>) => {
  const response = await world.post(`/api/wallets/${buyer.walletId}/escrow`, body, buyer.headers)
  expect(response.status, response.text).toBe(201)
  return response.body
}
const endEscrow = (tenant: Tenant, id: string, action: string, body: unknown = {}) =>
  world.post(`/api/escrow/${id}/${action}`, body, tenant.headers)
const readLedger = async (tenant: Tenant) => (await world.get('/api/ledger', tenant.headers)).body

describe('money in escrow', () => {
  test('is paid to the other tenant once when it is released, and both ledgers balance', async () => {
    const [buyer, seller] = [await world.tenantWithWallet(0.3), await world.tenantWithWallet(0)]
    const escrow = await holdEscrow(buyer, { amount_usdc: 0.2, to_wallet_id: seller.walletId, memo: 'A report' })
    expect(escrow).toMatchObject({ status: 'held', amount: '200000', to_wallet_id: seller.walletId })
    expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '200000' })
    expect((await endEscrow(seller, escrow.escrow_id, 'release')).status).toBe(403)
    expect((await endEscrow(buyer, escrow.escrow_id, 'refund')).status).toBe(403)
    const releases = await Promise.all(Array.from({ length: 8 }, () => endEscrow(buyer, escrow.escrow_id, 'release')))
    expect(releases.map((answer) => answer.status).sort()).toEqual([200, 409, 409, 409, 409, 409, 409, 409])
    expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '0' })
    expect(await world.balanceOf(seller)).toMatchObject({ available: '200000' })
    expect((await world.get(`/api/escrow/${escrow.escrow_id}`, seller.headers)).body.status).toBe('released')
    for (const tenant of [buyer, seller]) {
      expect((await readLedger(tenant)).invariants).toEqual({ balanced: true, wallets_match: true })
      expect((await world.events(tenant.tenantId)).map((event) => event.type)).toContain('escrow.released')
    }
    const stranger = await world.tenantWithWallet(0)
    expect((await endEscrow(stranger, escrow.escrow_id, 'release')).status).toBe(404)
  })

  test('can be refunded by its recipient, and cannot exceed the available balance', async () => {
    const [buyer, seller] = [await world.tenantWithWallet(0.1), await world.tenantWithWallet(0)]
    const escrow = await holdEscrow(buyer, { amount: '60000', to_wallet_id: seller.walletId })
    const tooMuch = await world.post(`/api/wallets/${buyer.walletId}/escrow`, { amount: '40001' }, buyer.headers)
    expect(tooMuch.status).toBe(409)
    expect(tooMuch.body.message).toMatch(/0\.04 USDC available/)
    const refund = await endEscrow(seller, escrow.escrow_id, 'refund', { reason: 'Cannot deliver.' })
    expect(refund.body).toMatchObject({ status: 'refunded', reason: 'Cannot deliver.' })
    expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '0' })
    // Without a recipient the owner can release it or take it back.
    const withoutRecipient = await holdEscrow(buyer, { amount: '1000' })
    expect((await endEscrow(buyer, withoutRecipient.escrow_id, 'refund')).body.status).toBe('refunded')
  })

  test('is listed for both sides, and for nobody else', async () => {
    const [buyer, seller] = [await world.tenantWithWallet(0.1), await world.tenantWithWallet(0)]
    const list = async (tenant: Tenant, query = '') => {
      const { status, body } = await world.get(`/api/escrow${query}`, tenant.headers)
      expect(status).toBe(200)
      return body
    }
    const { body: other } = await world.post('/api/wallets', {}, buyer.headers)
    const toSeller = await holdEscrow(buyer, { amount: '10000', to_wallet_id: seller.walletId })
    const toItself = await holdEscrow(buyer, { amount: '20000', to_wallet_id: other.wallet_id })
    const toService = await holdEscrow(buyer, { amount: '30000' })
    await endEscrow(buyer, toService.escrow_id, 'release')
    const ids = (body: { escrows: { escrow_id: string }[] }) => body.escrows.map(({ escrow_id }) => escrow_id)
    expect(ids(await list(buyer))).toEqual([toService.escrow_id, toItself.escrow_id, toSeller.escrow_id])
    expect(ids(await list(buyer, '?side=sent&state=held'))).toEqual([toItself.escrow_id, toSeller.escrow_id])
    expect(ids(await list(buyer, '?side=received'))).toEqual([toItself.escrow_id])
    expect(ids(await list(seller))).toEqual([toSeller.escrow_id])
    expect(ids(await list(seller, '?side=sent'))).toEqual([])
    const first = await list(buyer, '?limit=2')
    expect([first.has_more, ids(await list(buyer, `?limit=2&cursor=${first.next_cursor}`))]).toEqual([
      true,
      [toSeller.escrow_id],
    ])
    expect(ids(await list(await world.tenantWithWallet(0)))).toEqual([])
  })

  test('waits for the operator when disputed, and is otherwise returned on expiry', async () => {
    const [buyer, seller] = [await world.tenantWithWallet(0.1), await world.tenantWithWallet(0)]
    const disputed = await holdEscrow(buyer, { amount: '30000', to_wallet_id: seller.walletId, expires_in_seconds: 60 })
    const undisputed = await holdEscrow(buyer, {
      amount: '20000',
      to_wallet_id: seller.walletId,
      expires_in_seconds: 60,
    })
    expect((await endEscrow(seller, disputed.escrow_id, 'dispute', { reason: 'It was delivered.' })).body.status).toBe(
      'disputed',
    )
    world.advance(61_000)
    // It has expired, although the sweep has not returned the money yet.
    const late = await endEscrow(buyer, undisputed.escrow_id, 'release')
    expect(late.status, late.text).toBe(410)
    await world.service.escrow.sweepExpired()
    expect((await world.get(`/api/escrow/${undisputed.escrow_id}`, buyer.headers)).body.status).toBe('expired')
    expect((await world.get(`/api/escrow/${disputed.escrow_id}`, buyer.headers)).body.status).toBe('disputed')
    const resolve = (headers: Record<string, string>) =>
      world.post(
        `/api/admin/escrow/${disputed.escrow_id}/resolve`,
        { outcome: 'release', reason: 'Delivered.' },
        headers,
      )
    expect((await resolve(buyer.headers)).status).toBe(401)
    expect((await resolve(world.admin)).body.status).toBe('released')
    expect(await world.balanceOf(buyer)).toMatchObject({ available: '70000', escrowed: '0' })
    expect(await world.balanceOf(seller)).toMatchObject({ available: '30000' })
  })
})

describe('the ledger', () => {
  test('is paged with running balances that add up before and after the balance sweep', async () => {
    const tenant = await world.tenantWithWallet(0.1)
    await Promise.all(
      Array.from({ length: 4 }, () =>
        world.post('/api/loop', { input: 'hello', payment: { wallet_id: tenant.walletId } }, tenant.headers),
      ),
    )
    const pages = async (query: string) => {
      const entries: Record<string, string>[] = []
      for (let cursor = ''; ; ) {
        const { status, body } = await world.get(`/api/ledger?limit=3${query}${cursor}`, tenant.headers)
        expect(status).toBe(200)
        entries.push(...body.entries)
        if (!body.has_more) return entries
        cursor = `&cursor=${body.next_cursor}`
      }
    }
    const account = `liabilities:wallet:${tenant.walletId}`
    const before = await pages('')
    expect(before).toHaveLength(10)
    expect(new Set(before.map((entry) => entry.status))).toEqual(new Set(['posted']))
    const ofWallet = await pages(`&account=${account}`)
    expect(ofWallet.map((entry) => entry.balance_after)).toEqual(['80000', '85000', '90000', '95000', '100000'])
    expect(ofWallet.map((entry) => entry.direction)).toEqual(['debit', 'debit', 'debit', 'debit', 'credit'])
    // A page reads its balances from the newest entry back, those behind a cursor from the oldest one on.
    const inOnePage = async () => (await world.get('/api/ledger?limit=100', tenant.headers)).body.entries
    expect(await inOnePage()).toEqual(before)
    await world.service.sequencer.runOnce()
    expect(await pages('')).toEqual(before)
    expect(await inOnePage()).toEqual(before)
    const { body } = await world.get('/api/ledger', tenant.headers)
    expect(body.accounts).toContainEqual({ account, type: 'liability', asset: 'USDC', balance: '80000' })
    expect(body.accounts).toContainEqual({
      account: 'revenue:lane:default',
      type: 'revenue',
      asset: 'USDC',
      balance: '20000',
    })
    expect((await world.get('/api/ledger?cursor=ltx_none.1', tenant.headers)).status).toBe(400)
    expect((await world.get('/api/ledger')).status).toBe(401)
    const stranger = await world.onboard()
    expect((await world.get(`/api/ledger?account=${account}`, stranger.headers)).body.entries).toEqual([])
  })
})
