import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ledgerCheck } from '../../src/commands/ledger-check.ts'
import { checkBooks, checkBooksIn } from '../../src/modules/ledger/check-books.ts'
import { checkChain } from '../../src/modules/payments/check-chain-balance.ts'
import { failingLane, startWorld, type World } from './world.ts'

/** A ledger with one of every kind of transaction; each test tampers with one row, and the check must find it. */
let world: World
beforeAll(async () => {
  world = await startWorld()
  const [tenant, recipient] = [await world.tenantWithWallet(0.5), await world.tenantWithWallet(0.1)]
  const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
  await world.pay(tenant.payer, '/api/run', joke, tenant.headers)
  await world.pay(tenant.payer, '/api/loop', { input: 'hello' })
  await world.post('/api/run', { ...joke, payment: { wallet_id: tenant.walletId } }, tenant.headers)
  await world.post('/api/run', { ...joke, payment: { wallet_id: tenant.walletId, escrow: true } }, tenant.headers)
  await world.post(
    `/api/wallets/${tenant.walletId}/escrow`,
    { amount: '70000', to_wallet_id: recipient.walletId },
    tenant.headers,
  )
  await world.post(
    `/api/admin/wallets/${tenant.walletId}/withdraw`,
    { to: tenant.payer.address, amount: '10000' },
    world.admin,
  )
  world.setLane(failingLane)
  await world.pay(tenant.payer, '/api/run', joke, tenant.headers)
  world.setLane(undefined)
  await world.service.sequencer.runOnce()
})
afterAll(() => world.close())

const pause = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds / 50))
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

test('an untouched ledger passes every check', async () => {
  expect(await check()).toEqual({})
})

/** Changes that are possible with database access, and the checks that must report them. */
const tampering: { change: string; statement: string; reportedBy: string[] }[] = [
  {
    change: 'an entry is raised',
    statement: `update ledger_entries set amount_micro = amount_micro + 1 where ctid = (select ctid from ledger_entries where layer = 'posted' and amount_micro > 0 limit 1)`,
    reportedBy: ['transactions'],
  },
  {
    change: 'both sides of a posting are raised',
    statement: `update ledger_entries set amount_micro = amount_micro * 2 where layer = 'posted' and transaction_id = (select z.id from ledger_transactions z where z.kind = 'post' and z.code = 'topup' limit 1)`,
    reportedBy: ['resolutions', 'wallets', 'balances', 'chain: balance'],
  },
  {
    change: 'the entries of a transaction are deleted',
    statement: `delete from ledger_entries where transaction_id = (select id from ledger_transactions where kind = 'post' limit 1)`,
    reportedBy: ['transactions'],
  },
  {
    change: 'a guard is switched off',
    statement: 'alter table ledger_entries disable trigger ledger_entries_immutable',
    reportedBy: ['guards'],
  },
  {
    change: 'a wallet is given a unit',
    statement: `update wallets set available_micro = available_micro + 1 where id = (select id from wallets limit 1)`,
    reportedBy: ['wallets'],
  },
  {
    change: 'a price is changed',
    statement: `update runs set price_micro = price_micro + 1 where id = (select id from runs where state = 'completed' and kind = 'run' limit 1)`,
    reportedBy: ['runs', 'settlements', 'receipts'],
  },
  {
    change: 'a failed payment is marked settled',
    statement: `update settlements set state = 'settled', transaction = '0x' || id where state = 'failed'`,
    reportedBy: ['settlements', 'chain: settlements'],
  },
  {
    change: 'a settled payment is marked failed',
    statement: `update settlements set state = 'failed' where id = (select id from settlements where state = 'settled' and method = 'x402' limit 1)`,
    reportedBy: ['settlements', 'chain: settlements'],
  },
  {
    change: 'a payment is assigned to another transaction',
    statement: `update settlements set transaction = '0x' || repeat('1', 64) where id = (select id from settlements where state = 'settled' and method = 'x402' limit 1)`,
    reportedBy: ['receipts', 'chain: settlements'],
  },
  {
    change: 'a receipt is altered',
    statement: `update receipts set body = replace(body, '"charged":true', '"charged":false') where id = (select id from receipts where kind = 'run' limit 1)`,
    reportedBy: ['receipts'],
  },
  {
    change: 'a receipt is assigned to another run',
    statement: `update receipts set run_id = 'run_0' where id = (select id from receipts where kind = 'failure' limit 1)`,
    reportedBy: ['receipts'],
  },
  {
    change: 'the address of a payout is changed',
    statement: `update payouts set to_address = '0x0000000000000000000000000000000000000001' where state = 'paid'`,
    reportedBy: ['chain: payouts'],
  },
  {
    change: 'a limit is loosened',
    statement: `update limits set limit_micro = limit_micro + 5, reserved_micro = reserved_micro + 5`,
    reportedBy: ['limits'],
  },
  {
    change: 'a stored balance is changed',
    statement: `update ledger_balances set balance_micro = balance_micro - 1 where account = 'assets:chain:usdc'`,
    reportedBy: ['balances'],
  },
  {
    change: 'money is booked that never arrived',
    statement: `select ledger_direct('{"id": "ltx_0", "tenant_id": null, "code": "gift", "ref": "x", "created_at": "2026-01-01", "asset": "USDC", "entries": [{"account": "assets:chain:usdc", "amount_micro": 5}, {"account": "revenue:orchestration", "amount_micro": -5}]}')`,
    reportedBy: ['chain: balance'],
  },
]

test.each(tampering)('$change: reported by $reportedBy', async ({ statement, reportedBy }) => {
  const rollback = Object.assign(new Error('rollback'), { names: [] as string[] })
  const tamper = world.db.transaction().execute(async (tx) => {
    // The owner of the tables can disable the triggers for a moment.
    const guardedTables = ['ledger_entries', 'ledger_transactions', 'receipts']
    for (const table of guardedTables) await sql.raw(`alter table ${table} disable trigger user`).execute(tx)
    await sql.raw(statement).execute(tx)
    if (!statement.startsWith('alter'))
      for (const table of guardedTables) await sql.raw(`alter table ${table} enable trigger user`).execute(tx)
    const { reader, asset, payTo } = world.service.chain
    const checks = [...(await checkBooksIn(tx)), ...(await checkChain({ db: tx, chain: reader!, asset, payTo, pause }))]
    rollback.names = checks.filter(({ differences }) => differences.length > 0).map(({ name }) => name)
    throw rollback
  })
  await expect(tamper).rejects.toBe(rollback)
  expect(rollback.names).toEqual(expect.arrayContaining(reportedBy))
})

test('the command reports differences by its exit code', async () => {
  const consoleLog = vi.spyOn(console, 'log').mockImplementation(() => {})
  const run = async (...args: string[]) => {
    consoleLog.mockClear()
    return { code: await ledgerCheck(world.service.config, args), output: String(consoleLog.mock.calls[0]) }
  }
  try {
    const passingResult = await run()
    expect(passingResult, passingResult.output).toMatchObject({ code: 0 })
    expect(passingResult.output).toMatch(/No differences\.$/)
    await world.post('/api/dev/faucet', { address: await world.payee(), amount_usdc: 0.000007 })
    const failingResult = await run('--json')
    expect(failingResult.code, failingResult.output).toBe(1)
    const { ok, checks } = JSON.parse(failingResult.output)
    expect(ok).toBe(false)
    const { differences } = checks.find((entry: { name: string }) => entry.name === 'chain: balance')
    expect(differences[0].found).toMatch(/more by 7$/)
    expect((await run('--allow-surplus')).code).toBe(0)
    await expect(run('--fast')).rejects.toThrow("Unknown option '--fast'")
  } finally {
    consoleLog.mockRestore()
  }
})
