import { beforeAll, describe, expect, test } from 'vitest'
import type { World } from './world.ts'

export function escrowTests(use: () => World) {
  let world: World
  beforeAll(() => {
    world = use()
  })

  type Tenant = Awaited<ReturnType<World['tenantWithWallet']>>

  const hold = async (from: Tenant, body: Record<string, unknown>) => {
    const held = await world.post(`/api/wallets/${from.walletId}/escrow`, body, from.headers)
    expect(held.status, held.text).toBe(201)
    return held.body
  }
  const end = (tenant: Tenant, id: string, how: string, body: unknown = {}) =>
    world.post(`/api/escrow/${id}/${how}`, body, tenant.headers)
  const booksOf = async (tenant: Tenant) => (await world.get('/api/ledger', tenant.headers)).body

  describe('money in escrow', () => {
    test('goes to another tenant when released, once, and both books balance', async () => {
      const [buyer, seller] = [await world.tenantWithWallet(0.3), await world.tenantWithWallet(0)]
      const escrow = await hold(buyer, { amount_usdc: 0.2, to_wallet_id: seller.walletId, memo: 'A report' })
      expect(escrow).toMatchObject({ status: 'held', amount: '200000', to_wallet_id: seller.walletId })
      expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '200000' })
      expect((await end(seller, escrow.escrow_id, 'release')).status).toBe(403)
      expect((await end(buyer, escrow.escrow_id, 'refund')).status).toBe(403)
      const races = await Promise.all(Array.from({ length: 8 }, () => end(buyer, escrow.escrow_id, 'release')))
      expect(races.map((answer) => answer.status).sort()).toEqual([200, 409, 409, 409, 409, 409, 409, 409])
      expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '0' })
      expect(await world.balanceOf(seller)).toMatchObject({ available: '200000' })
      expect((await world.get(`/api/escrow/${escrow.escrow_id}`, seller.headers)).body.status).toBe('released')
      for (const tenant of [buyer, seller]) {
        expect((await booksOf(tenant)).invariants).toEqual({ balanced: true, wallets_match: true })
        expect((await world.events(tenant.tenantId)).map((event) => event.type)).toContain('escrow.released')
      }
      const stranger = await world.tenantWithWallet(0)
      expect((await end(stranger, escrow.escrow_id, 'release')).status).toBe(404)
    })

    test('is given back by whom it was for; more than there is cannot be held', async () => {
      const [buyer, seller] = [await world.tenantWithWallet(0.1), await world.tenantWithWallet(0)]
      const escrow = await hold(buyer, { amount: '60000', to_wallet_id: seller.walletId })
      const tooMuch = await world.post(`/api/wallets/${buyer.walletId}/escrow`, { amount: '40001' }, buyer.headers)
      expect(tooMuch.status).toBe(409)
      expect(tooMuch.body.message).toMatch(/0\.04 USDC available/)
      const back = await end(seller, escrow.escrow_id, 'refund', { reason: 'Cannot deliver.' })
      expect(back.body).toMatchObject({ status: 'refunded', reason: 'Cannot deliver.' })
      expect(await world.balanceOf(buyer)).toMatchObject({ available: '100000', escrowed: '0' })
      // Held for the service itself, it is the owner's to release or to take back.
      const own = await hold(buyer, { amount: '1000' })
      expect((await end(buyer, own.escrow_id, 'refund')).body.status).toBe('refunded')
    })

    test('waits for the operator when disputed, and comes back by itself when not', async () => {
      const [buyer, seller] = [await world.tenantWithWallet(0.1), await world.tenantWithWallet(0)]
      const quarrel = await hold(buyer, { amount: '30000', to_wallet_id: seller.walletId, expires_in_seconds: 60 })
      const forgotten = await hold(buyer, { amount: '20000', to_wallet_id: seller.walletId, expires_in_seconds: 60 })
      expect((await end(seller, quarrel.escrow_id, 'dispute', { reason: 'It was delivered.' })).body.status).toBe(
        'disputed',
      )
      world.advance(61_000)
      // Whether the sweep has come by or not, its time is over.
      const late = await end(buyer, forgotten.escrow_id, 'release')
      expect([409, 410]).toContain(late.status)
      await world.service.escrow.sweepExpired()
      expect((await world.get(`/api/escrow/${forgotten.escrow_id}`, buyer.headers)).body.status).toBe('expired')
      expect((await world.get(`/api/escrow/${quarrel.escrow_id}`, buyer.headers)).body.status).toBe('disputed')
      const resolve = (headers: Record<string, string>) =>
        world.post(
          `/api/admin/escrow/${quarrel.escrow_id}/resolve`,
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
    test('is paged with running balances that add up, whatever has been counted', async () => {
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
      await world.service.ledger.sweepBalances()
      expect(await pages('')).toEqual(before)
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
}
