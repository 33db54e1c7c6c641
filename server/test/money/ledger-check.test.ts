import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { ledgerCheck } from '../../src/commands/ledger-check.ts'
import { checkBooks, checkBooksIn } from '../../src/modules/ledger/check-books.ts'
import { checkChain } from '../../src/modules/payments/check-chain-balance.ts'
import { failingLane, startWorld, type World } from './world.ts'

/** A ledger with one of every kind of transaction; each test tampers with one row, and the check must find it. */
let world: World
let openRuns: Promise<unknown>
let endOpenRuns = () => {}
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
  // Two runs stay open: their entries are pending and the limit on the payer counts one of them.
  const mayEnd = new Promise<void>((resolve) => {
    endOpenRuns = resolve
  })
  world.setLane(async () => {
    await mayEnd
    return undefined
  })
  openRuns = Promise.all([
    world.post('/api/run', { ...joke, payment: { wallet_id: tenant.walletId } }, tenant.headers),
    world.pay(tenant.payer, '/api/run', joke, tenant.headers),
  ])
  const countOpenRuns = () => sql<{ id: string }>`select id from open_runs where state = 'executing'`.execute(world.db)
  await vi.waitFor(async () => expect((await countOpenRuns()).rows).toHaveLength(2), 20_000)
  await world.service.sequencer.runOnce()
})
afterAll(async () => {
  endOpenRuns()
  await openRuns
  await world.close()
})

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

/** The owner of the table can drop its constraints too. */
const WITHOUT_CONSTRAINTS = `do $$
  declare
    name text;
  begin
    for name in select conname from pg_constraint where conrelid = 'ledger'::regclass and contype = 'c' loop
      execute format('alter table ledger drop constraint %I', name);
    end loop;
  end $$`

/** Changes that are possible with database access, and the checks that must report them. */
const tampering: { change: string; statement: string; reportedBy: string[] }[] = [
  {
    change: 'an entry is raised',
    statement: `${WITHOUT_CONSTRAINTS}; update ledger set amounts[1] = amounts[1] + 1 where id = (select id from ledger where status = 'posted' limit 1)`,
    reportedBy: ['transactions'],
  },
  {
    change: 'a pending entry is raised',
    statement: `update open_runs set amounts[1] = amounts[1] + 1`,
    reportedBy: ['transactions', 'runs'],
  },
  {
    change: 'both sides of a posting are raised',
    statement: `update ledger set amounts = array(select 2 * amount from unnest(amounts) with ordinality as entry(amount, line) order by line) where id = (select id from ledger where status = 'posted' and code = 'topup' limit 1)`,
    reportedBy: ['runs', 'wallets', 'balances', 'chain: balance'],
  },
  {
    change: 'both sides of pending entries are raised',
    statement: `update open_runs set amounts = array(select 2 * amount from unnest(amounts) with ordinality as entry(amount, line) order by line)`,
    reportedBy: ['runs'],
  },
  {
    change: 'a posting is moved to another account',
    statement: `update ledger set accounts[2] = 'revenue:elsewhere' where id = (select id from ledger where status = 'posted' and code = 'run' and tenant_id is not null limit 1)`,
    reportedBy: ['balances'],
  },
  {
    change: 'a voided transaction is posted',
    statement: `update ledger set status = 'posted' where status = 'voided'`,
    reportedBy: ['runs', 'balances', 'chain: balance'],
  },
  {
    change: 'a posted transaction is voided',
    statement: `update ledger set status = 'voided' where id = (select id from ledger where status = 'posted' and code = 'run' limit 1)`,
    reportedBy: ['runs'],
  },
  {
    change: 'a run is posted twice',
    statement: `insert into ledger select id || '0', tenant_id, status, code, ref, asset, accounts, amounts, created_at from ledger where status = 'posted' and code = 'run' limit 1`,
    reportedBy: ['runs'],
  },
  {
    change: 'a transaction is deleted',
    statement: `delete from ledger where id = (select id from ledger where status = 'posted' and code = 'run' limit 1)`,
    reportedBy: ['runs'],
  },
  {
    change: 'the entries of a transaction are deleted',
    statement: `${WITHOUT_CONSTRAINTS}; update ledger set accounts = '{}', amounts = '{}' where id = (select id from ledger where status = 'posted' and code = 'run' limit 1)`,
    reportedBy: ['runs'],
  },
  {
    change: 'an open run is deleted',
    statement: 'delete from open_runs',
    reportedBy: ['settlements', 'wallets', 'limits'],
  },
  {
    change: 'a posting of a guest is moved to another account',
    statement: `update ledger set accounts[2] = 'revenue:lane:other' where id = (select id from ledger where tenant_id is null and status = 'posted' and code = 'loop' limit 1)`,
    reportedBy: ['runs'],
  },
  {
    change: 'a guard is switched off',
    statement: 'alter table ledger disable trigger ledger_immutable',
    reportedBy: ['guards'],
  },
  {
    change: 'a wallet is given a unit',
    statement: `update wallets set available_micro = available_micro + 1 where id = (select id from wallets limit 1)`,
    reportedBy: ['wallets'],
  },
  {
    change: 'a price is changed',
    statement: `update ended_runs set price_micro = price_micro + 1 where id = (select id from ended_runs where state = 'completed' and kind = 'run' and wallet_id is null limit 1)`,
    reportedBy: ['runs', 'settlements', 'receipts'],
  },
  {
    change: 'the price of a run paid from a wallet is changed',
    statement: `update ended_runs set price_micro = price_micro + 1 where id = (select id from ended_runs where state = 'completed' and kind = 'run' and wallet_id is not null limit 1)`,
    reportedBy: ['runs', 'receipts'],
  },
  {
    change: 'the price of an open run is changed',
    statement: 'update open_runs set price_micro = price_micro + 1',
    reportedBy: ['runs', 'wallets'],
  },
  {
    change: 'a failed payment is marked settled',
    statement: `update settlement_records set state = 'settled', transaction = '0x' || id where state = 'failed'`,
    reportedBy: ['settlements', 'chain: settlements'],
  },
  {
    change: 'a settled payment is marked failed',
    statement: `update settlement_records set state = 'failed' where id = (select id from settlement_records where state = 'settled' limit 1)`,
    reportedBy: ['settlements', 'chain: settlements'],
  },
  {
    change: 'a payment is assigned to another transaction',
    statement: `update settlement_records set transaction = '0x' || repeat('1', 64) where id = (select id from settlement_records where state = 'settled' limit 1)`,
    reportedBy: ['receipts', 'chain: settlements'],
  },
  {
    change: 'a settlement is deleted',
    statement: `delete from settlement_records where id = (select id from settlement_records where state = 'settled' limit 1)`,
    reportedBy: ['settlements'],
  },
  {
    change: 'a nonce is released',
    statement: 'delete from nonces where ctid = (select ctid from nonces limit 1)',
    reportedBy: ['settlements'],
  },
  {
    change: 'a hold is released without its counter',
    statement: `update open_runs set holds = '[]'`,
    reportedBy: ['limits'],
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
    const guardedTables = ['ledger', 'receipts']
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

test.each([
  ['entries that do not sum to zero', `accounts = '{a,b}', amounts = '{5,-4}'`],
  ['amounts that do not begin at 1', `accounts = '{a,b}', amounts = '[0:1]={5,-4}'`],
  ['one entry', `accounts = '{a}', amounts = '{0}'`],
  ['no entries', `accounts = '{}', amounts = '{}'`],
  ['an entry without an account', `accounts = '{a,null}', amounts = '{5,-5}'`],
  ['an account without an amount', `accounts = '{a,b,c}', amounts = '{5,-5}'`],
  ['an amount that is null', `accounts = '{a,b,c}', amounts = '{5,-5,null}'`],
  ['an amount of zero', `accounts = '{a,b,c}', amounts = '{5,-5,0}'`],
  ['five entries', `accounts = '{a,b,c,d,e}', amounts = '{1,1,1,1,-4}'`],
  ['a status other than posted and voided', `status = 'pending'`],
])('the table of the ledger refuses %s, even with its trigger disabled', async (_, change) => {
  const write = world.db.transaction().execute(async (tx) => {
    await sql.raw('alter table ledger disable trigger user').execute(tx)
    await sql.raw(`update ledger set ${change} where id = (select id from ledger limit 1)`).execute(tx)
  })
  await expect(write).rejects.toMatchObject({ code: '23514' })
})

test('the trigger refuses every change of a transaction', async () => {
  for (const change of ['update ledger set ref = ref', 'delete from ledger'])
    await expect(sql.raw(change).execute(world.db), change).rejects.toThrow(/immutable/)
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
