import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'

/** Random histories of money, in random order of their ids, against a model that a child could check. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let open: Database
let client: pg.Client
const TENANT = 'ten_property'
const wallets = ['wal_a', 'wal_b', 'wal_c']

beforeAll(async () => {
  database = await createTestDatabase()
  open = database.open(1)
  client = await open.connect()
  await client.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ($1, 'x', 'x@example.com', now(), now())`,
    [TENANT],
  )
  for (const id of wallets)
    await client.query(`insert into wallets (id, tenant_id, name, created_at) values ($1, $2, 'x', now())`, [
      id,
      TENANT,
    ])
  // A past that is long enough for snapshots, for the histories to fall in the midst of.
  const past = (
    serial: string,
  ) => `jsonb_build_object('id', 'ltx_' || ${serial}, 'tenant_id', $1::text, 'code', 'past', 'ref', 'past', 'created_at', now(), 'asset', 'USDC',
    'entries', '[{"account": "assets:chain:usdc", "amount_micro": 3}, {"account": "revenue:lane:default", "amount_micro": -3}]'::jsonb)`
  await client.query(
    `select ledger_direct(${past("lpad((n * 7919 % 10000)::text, 4, '0') || 'past' || n")}) from generate_series(1, 600) n`,
    [TENANT],
  )
  await client.query('select count_ledger(300)')
})
afterAll(async () => {
  await client.end()
  await open.close()
  await database.drop()
})

type Purse = { available: bigint; reserved: bigint; incoming: bigint; escrowed: bigint }
type Open = { kind: 'topup' | 'run' | 'payout' | 'escrow'; id: string; wallet: string; amount: bigint; ledger: string }
const purses = new Map<string, Purse>(
  wallets.map((id) => [id, { available: 0n, reserved: 0n, incoming: 0n, escrowed: 0n }]),
)
const openOnes: Open[] = []
let serial = 0

/** Not in the order of their making: a transaction may be committed long after one with a later id. */
const nextId = (prefix: string, shuffle: number) =>
  `${prefix}_${String(shuffle).padStart(4, '0')}${String(serial++).padStart(8, '0')}`

const at = '2026-11-16T15:00:00Z'
const text = (value: unknown) => JSON.stringify(value, (_, one) => (typeof one === 'bigint' ? one.toString() : one))
const call = (name: string, item: unknown) => client.query(`select ${name}($1::jsonb)`, [text(item)])
const ledger = (
  id: string,
  code: string,
  from: string,
  to: string,
  amount: bigint,
  tenant: string | null = TENANT,
) => ({
  id,
  tenant_id: tenant,
  code,
  ref: id,
  created_at: at,
  asset: 'USDC',
  entries: [
    { account: from, amount_micro: amount },
    { account: to, amount_micro: -amount },
  ],
})
const move = (wallet: string, ...deltas: bigint[]) =>
  client.query('select move_in_wallet($1, $2, $3, $4, $5)', [wallet, ...deltas.map(String)])

/** One business transaction: all of it or nothing. */
async function together(work: () => Promise<unknown>): Promise<boolean> {
  await client.query('begin')
  try {
    await work()
    await client.query('commit')
    return true
  } catch (error) {
    await client.query('rollback')
    if (/^CS|^23/.test((error as { code?: string }).code ?? '') || /immutable|balance/.test((error as Error).message))
      return false
    throw error
  }
}

type Command = { what: string; wallet: string; amount: bigint; pick: number; shuffle: number; good: boolean }

const commands = fc.record({
  what: fc.constantFrom(
    'topup',
    'run',
    'payout',
    'escrow',
    'finish',
    'finish',
    'finish',
    'count',
    'twice',
    'crooked',
    'guest',
  ),
  wallet: fc.constantFrom(...wallets),
  amount: fc.bigInt({ min: 1n, max: 5_000n }),
  pick: fc.nat(1_000),
  shuffle: fc.nat(9_999),
  good: fc.boolean(),
})

async function begin({ what, wallet, amount, shuffle }: Command) {
  const purse = purses.get(wallet)!
  const id = nextId('op', shuffle)
  const pending = nextId('ltx', shuffle)
  const owed = `liabilities:wallet:${wallet}`
  const enough = what === 'topup' || purse.available >= amount
  const done = await together(async () => {
    if (what === 'topup') {
      await call('ledger_pend', ledger(pending, 'topup', 'assets:chain:usdc', owed, amount))
      await move(wallet, 0n, 0n, amount, 0n)
    } else if (what === 'run') {
      await move(wallet, -amount, amount, 0n, 0n)
      await call('ledger_pend', ledger(pending, 'run', owed, 'revenue:lane:default', amount))
    } else if (what === 'payout') {
      const row = {
        id,
        kind: 'withdrawal',
        tenant_id: TENANT,
        wallet_id: wallet,
        to_address: '0x0',
        amount_micro: amount,
        method: 'manual',
        requested_by: 'operator',
        at,
      }
      await call('request_payout', { ...row, ledger: ledger(pending, 'withdrawal', owed, 'assets:chain:usdc', amount) })
    } else {
      const row = { id, tenant_id: TENANT, wallet_id: wallet, amount_micro: amount, expires_at: at, created_at: at }
      await call('hold_escrow', {
        ...row,
        ledger: ledger(pending, 'escrow_held', owed, `liabilities:escrow:${wallet}`, amount),
      })
    }
  })
  expect(done, `${what} of ${amount} with ${purse.available} available`).toBe(enough)
  if (!done) return
  openOnes.push({ kind: what as Open['kind'], id, wallet, amount, ledger: pending })
  if (what === 'topup') purse.incoming += amount
  else purse.available -= amount
  if (what === 'escrow') purse.escrowed += amount
  if (what === 'run' || what === 'payout') purse.reserved += amount
}

async function finish({ pick, shuffle, good }: Command) {
  if (openOnes.length === 0) return
  const [one] = openOnes.splice(pick % openOnes.length, 1)
  const { kind, id, wallet, amount } = one!
  const purse = purses.get(wallet)!
  const ending = nextId('ltx', shuffle)
  const resolve = () =>
    call(good ? 'ledger_post' : 'ledger_void', { id: ending, pending_id: one!.ledger, created_at: at })
  const done = await together(async () => {
    if (kind === 'payout')
      return call('end_payout', {
        id,
        state: good ? 'paid' : 'cancelled',
        transaction: good ? `0x1${id}` : null,
        at,
        ledger_id: ending,
      })
    if (kind === 'escrow') {
      const to = good ? 'revenue:escrow' : `liabilities:wallet:${wallet}`
      const moved = [ledger(ending, 'escrow_ended', `liabilities:escrow:${wallet}`, to, amount)]
      return call('end_escrow', {
        id,
        from: ['held'],
        state: good ? 'released' : 'refunded',
        at,
        ledger: moved,
        events: [],
        audits: [],
      })
    }
    await resolve()
    if (kind === 'topup') return move(wallet, good ? amount : 0n, 0n, -amount, 0n)
    return move(wallet, good ? 0n : amount, -amount, 0n, 0n)
  })
  expect(done).toBe(true)
  if (kind === 'topup') purse.incoming -= amount
  if (kind === 'escrow') purse.escrowed -= amount
  if (kind === 'run' || kind === 'payout') purse.reserved -= amount
  if ((kind === 'topup') === good) purse.available += amount
  // A pending transfer is resolved once, whatever comes after.
  if (kind !== 'escrow')
    expect(
      await together(() =>
        call('ledger_void', { id: nextId('ltx', shuffle), pending_id: one!.ledger, created_at: at }),
      ),
    ).toBe(false)
}

async function step(command: Command) {
  const { what, amount, shuffle } = command
  if (what === 'finish') return finish(command)
  if (what === 'count') return client.query('select count_ledger(40)')
  if (what === 'guest')
    return call(
      'ledger_direct',
      ledger(nextId('ltx', shuffle), 'run', 'assets:chain:usdc', 'revenue:lane:default', amount, null),
    )
  if (what === 'twice') {
    const id = nextId('ltx', shuffle)
    await call('ledger_direct', ledger(id, 'gift', 'assets:chain:usdc', 'revenue:lane:default', amount))
    expect(
      await together(() =>
        call('ledger_direct', ledger(id, 'gift', 'assets:chain:usdc', 'revenue:lane:default', amount)),
      ),
    ).toBe(false)
    expect(
      await together(() => client.query('update ledger_entries set amount_micro = 1 where transaction_id = $1', [id])),
    ).toBe(false)
    return expect(await together(() => client.query('delete from ledger_transactions where id = $1', [id]))).toBe(false)
  }
  if (what === 'crooked') {
    const crooked = ledger(nextId('ltx', shuffle), 'theft', 'assets:chain:usdc', 'revenue:lane:default', amount)
    crooked.entries[1]!.amount_micro += 1n
    return expect(await together(() => call('ledger_direct', crooked))).toBe(false)
  }
  return begin(command)
}

const rows = async <T>(query: string, values: unknown[] = []): Promise<T[]> =>
  (await client.query(query, values)).rows as T[]

async function invariants() {
  expect(
    await rows('select 1 from ledger_entries group by transaction_id, asset, layer having sum(amount_micro) <> 0'),
  ).toEqual([])
  const balances = new Map(
    (
      await rows<{ account: string; layer: string; sum: bigint }>(
        `select account, layer, sum(amount_micro)::bigint as sum from ledger_entries where tenant_id is not null group by 1, 2`,
      )
    ).map(({ account, layer, sum }) => [`${layer}:${account}`, sum]),
  )
  const stored = await rows<{ id: string } & Record<string, bigint>>('select * from wallets')
  for (const [id, purse] of purses) {
    const row = stored.find((wallet) => wallet.id === id)!
    expect([row.available_micro, row.reserved_micro, row.incoming_micro, row.escrowed_micro]).toEqual([
      purse.available,
      purse.reserved,
      purse.incoming,
      purse.escrowed,
    ])
    expect(-(balances.get(`posted:liabilities:wallet:${id}`) ?? 0n)).toBe(purse.available + purse.reserved)
    expect(balances.get(`pending:liabilities:wallet:${id}`) ?? 0n).toBe(purse.reserved - purse.incoming)
    expect(-(balances.get(`posted:liabilities:escrow:${id}`) ?? 0n)).toBe(purse.escrowed)
  }
  // What an account is said to have stood at is the plain sum of its entries up to there.
  const wrong = await rows(
    `select * from (
       select e.*, ledger_balance_at($1, account, 'USDC', transaction_id, line) as told from (
         select account, transaction_id, line, sum(amount_micro) over (partition by account order by transaction_id, line) as counted
         from ledger_entries where tenant_id = $1 and layer = 'posted') e
       order by md5(transaction_id || $2) limit 100) sampled
     where told <> counted`,
    [TENANT, String(serial)],
  )
  expect(wrong).toEqual([])
  const accounts = await rows<{ account: string; balance_micro: bigint }>('select * from ledger_accounts_of($1)', [
    TENANT,
  ])
  for (const { account, balance_micro } of accounts) expect(balance_micro).toBe(balances.get(`posted:${account}`))
}

test('whatever happens, the books balance and every wallet is explained by its entries', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 20, maxLength: 60 }), async (history) => {
      for (const command of history) await step(command)
      await invariants()
    }),
    { numRuns: 15, seed: 4, endOnFailure: true },
  )
  const [{ snapshots }] = (await rows<{ snapshots: bigint }>('select count(*) as snapshots from ledger_snapshots')) as [
    { snapshots: bigint },
  ]
  expect(snapshots).toBeGreaterThan(0n)
})
