import { sql } from 'kysely'
import { beforeAll, expect, test, vi } from 'vitest'
import { ledgerCheck } from '../../src/commands/ledger-check.ts'
import { checkBooks, checkBooksIn } from '../../src/modules/ledger/check-books.ts'
import { checkChain } from '../../src/modules/payments/check-chain.ts'
import { failing, type World } from './world.ts'

/** A world with some of everything in it; then one thing is changed at a time, and the check must say which. */
export function ledgerCheckTests(use: () => World) {
  let world: World
  beforeAll(async () => {
    world = use()
    const [one, other] = [await world.tenantWithWallet(0.5), await world.tenantWithWallet(0.1)]
    const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
    await world.pay(one.payer, '/api/run', joke, one.headers)
    await world.pay(one.payer, '/api/loop', { input: 'hello' })
    await world.post('/api/run', { ...joke, payment: { wallet_id: one.walletId } }, one.headers)
    await world.post('/api/run', { ...joke, payment: { wallet_id: one.walletId, escrow: true } }, one.headers)
    await world.post(
      `/api/wallets/${one.walletId}/escrow`,
      { amount: '70000', to_wallet_id: other.walletId },
      one.headers,
    )
    await world.post(
      `/api/admin/wallets/${one.walletId}/withdraw`,
      { to: one.payer.address, amount: '10000' },
      world.admin,
    )
    world.behave(failing)
    await world.pay(one.payer, '/api/run', joke, one.headers)
    world.behave(undefined)
    await world.service.ledger.sweepBalances()
  })

  const pause = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds / 50))
  async function check() {
    const { reader, asset, payTo } = world.service.chain
    const checks = [
      ...(await checkBooks(world.db)),
      ...(await checkChain({ db: world.db, chain: reader!, asset, payTo, pause })),
    ]
    return Object.fromEntries(
      checks.filter(({ differences }) => differences.length > 0).map(({ name, differences }) => [name, differences]),
    )
  }

  test('everything agrees', async () => {
    expect(await check()).toEqual({})
  })

  /** What a person with the database's password could do, and what would give it away. */
  const tampering: { what: string; by: string; seen: string[] }[] = [
    {
      what: 'an entry is raised',
      by: `update ledger_entries set amount_micro = amount_micro + 1 where ctid = (select ctid from ledger_entries where layer = 'posted' and amount_micro > 0 limit 1)`,
      seen: ['transactions'],
    },
    {
      what: 'both sides of a posting are raised',
      by: `update ledger_entries set amount_micro = amount_micro * 2 where layer = 'posted' and transaction_id = (select z.id from ledger_transactions z where z.kind = 'post' and z.code = 'topup' limit 1)`,
      seen: ['resolutions', 'wallets', 'balances', 'chain: balance'],
    },
    {
      what: 'the entries of a transaction are deleted',
      by: `delete from ledger_entries where transaction_id = (select id from ledger_transactions where kind = 'post' limit 1)`,
      seen: ['transactions'],
    },
    {
      what: 'a guard is switched off',
      by: 'alter table ledger_entries disable trigger ledger_entries_immutable',
      seen: ['guards'],
    },
    {
      what: 'a wallet is given a unit',
      by: `update wallets set available_micro = available_micro + 1 where id = (select id from wallets limit 1)`,
      seen: ['wallets'],
    },
    {
      what: 'a price is changed',
      by: `update runs set price_micro = price_micro + 1 where id = (select id from runs where state = 'completed' and kind = 'run' limit 1)`,
      seen: ['runs', 'settlements', 'receipts'],
    },
    {
      what: 'a failed payment is called settled',
      by: `update settlements set state = 'settled', transaction = '0x' || id where state = 'failed'`,
      seen: ['settlements', 'chain: settlements'],
    },
    {
      what: 'a settled payment is called failed',
      by: `update settlements set state = 'failed' where id = (select id from settlements where state = 'settled' and method = 'x402' limit 1)`,
      seen: ['settlements', 'chain: settlements'],
    },
    {
      what: 'a payment is ascribed to another transaction',
      by: `update settlements set transaction = '0x' || repeat('1', 64) where id = (select id from settlements where state = 'settled' and method = 'x402' limit 1)`,
      seen: ['receipts', 'chain: settlements'],
    },
    {
      what: 'a receipt is altered',
      by: `update receipts set body = replace(body, '"charged":true', '"charged":false') where id = (select id from receipts where kind = 'run' limit 1)`,
      seen: ['receipts'],
    },
    {
      what: 'a receipt is ascribed to another run',
      by: `update receipts set run_id = 'run_0' where id = (select id from receipts where kind = 'failure' limit 1)`,
      seen: ['receipts'],
    },
    {
      what: 'a payout is told to have gone elsewhere',
      by: `update payouts set to_address = '0x0000000000000000000000000000000000000001' where state = 'paid'`,
      seen: ['chain: payouts'],
    },
    {
      what: 'a limit is loosened',
      by: `update limits set limit_micro = limit_micro + 5, reserved_micro = reserved_micro + 5`,
      seen: ['limits'],
    },
    {
      what: 'a kept balance is wrong',
      by: `update ledger_balances set balance_micro = balance_micro - 1 where account = 'assets:chain:usdc'`,
      seen: ['balances'],
    },
    {
      what: 'money is booked that never came',
      by: `select ledger_direct('{"id": "ltx_0", "tenant_id": null, "code": "gift", "ref": "x", "created_at": "2026-01-01", "asset": "USDC", "entries": [{"account": "assets:chain:usdc", "amount_micro": 5}, {"account": "revenue:orchestration", "amount_micro": -5}]}')`,
      seen: ['chain: balance'],
    },
  ]

  test.each(tampering)('$what: $seen', async ({ by, seen }) => {
    const undo = Object.assign(new Error('undo'), { names: [] as string[] })
    const tamper = world.db.transaction().execute(async (tx) => {
      // As the owner of the tables could: with the guards out of the way for a moment.
      const guarded = ['ledger_entries', 'ledger_transactions', 'receipts']
      for (const table of guarded) await sql.raw(`alter table ${table} disable trigger user`).execute(tx)
      await sql.raw(by).execute(tx)
      if (!by.startsWith('alter'))
        for (const table of guarded) await sql.raw(`alter table ${table} enable trigger user`).execute(tx)
      const { reader, asset, payTo } = world.service.chain
      const checks = [
        ...(await checkBooksIn(tx)),
        ...(await checkChain({ db: tx, chain: reader!, asset, payTo, pause })),
      ]
      undo.names = checks.filter(({ differences }) => differences.length > 0).map(({ name }) => name)
      throw undo
    })
    await expect(tamper).rejects.toBe(undo)
    const found = undo.names
    expect(found).toEqual(expect.arrayContaining(seen))
  })

  test('the command says so in its exit code', async () => {
    const said = vi.spyOn(console, 'log').mockImplementation(() => {})
    const run = async (...args: string[]) => {
      said.mockClear()
      return { code: await ledgerCheck(world.service.config, args), output: String(said.mock.calls[0]) }
    }
    try {
      const good = await run()
      expect(good, good.output).toMatchObject({ code: 0 })
      expect(good.output).toMatch(/Everything agrees\.$/)
      await world.post('/api/dev/faucet', { address: await world.payee(), amount_usdc: 0.000007 })
      const bad = await run('--json')
      expect(bad.code, bad.output).toBe(1)
      const { ok, checks } = JSON.parse(bad.output)
      expect(ok).toBe(false)
      const { differences } = checks.find((one: { name: string }) => one.name === 'chain: balance')
      expect(differences[0].found).toMatch(/more by 7$/)
      expect((await run('--allow-surplus')).code).toBe(0)
      await expect(run('--fast')).rejects.toThrow("does not know '--fast'")
    } finally {
      said.mockRestore()
    }
  })
}
