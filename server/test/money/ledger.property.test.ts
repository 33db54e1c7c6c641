import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'

/** Random sequences of money movements, with ids in random order, compared with a simple model. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let openedDatabase: Database
let client: pg.Client
const TENANT = 'ten_property'
const wallets = ['wal_a', 'wal_b', 'wal_c']

beforeAll(async () => {
  database = await createTestDatabase()
  openedDatabase = database.open(1)
  client = await openedDatabase.connect()
  await client.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ($1, 'x', 'x@example.com', now(), now())`,
    [TENANT],
  )
  for (const id of wallets)
    await client.query(`insert into wallets (id, tenant_id, name, created_at) values ($1, $2, 'x', now())`, [
      id,
      TENANT,
    ])
  // Enough earlier transactions for snapshots, so that the random ones fall between them.
  const pastTransfer = (
    serial: string,
  ) => `jsonb_build_object('id', 'ltx_' || ${serial}, 'tenant_id', $1::text, 'code', 'past', 'ref', 'past', 'created_at', now(), 'asset', 'USDC',
    'entries', '[{"account": "assets:chain:usdc", "amount_micro": 3}, {"account": "revenue:lane:default", "amount_micro": -3}]'::jsonb)`
  await client.query(
    `select ledger_direct(${pastTransfer("lpad((n * 7919 % 10000)::text, 4, '0') || 'past' || n")}) from generate_series(1, 600) n`,
    [TENANT],
  )
  await client.query('select count_ledger(300)')
})
afterAll(async () => {
  await client.end()
  await openedDatabase.close()
  await database.drop()
})

type WalletModel = { available: bigint; reserved: bigint; incoming: bigint; escrowed: bigint }
type OpenTransfer = {
  kind: 'topup' | 'run' | 'payout' | 'escrow'
  id: string
  wallet: string
  amount: bigint
  ledger: string
}
const walletModels = new Map<string, WalletModel>(
  wallets.map((id) => [id, { available: 0n, reserved: 0n, incoming: 0n, escrowed: 0n }]),
)
const openTransfers: OpenTransfer[] = []
let serial = 0

/** Ids are not in order of creation: a transaction may commit long after one with a later id. */
const nextId = (prefix: string, shuffle: number) =>
  `${prefix}_${String(shuffle).padStart(4, '0')}${String(serial++).padStart(8, '0')}`

const at = '2026-11-16T15:00:00Z'
const toJson = (value: unknown) =>
  JSON.stringify(value, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
const call = (name: string, item: unknown) => client.query(`select ${name}($1::jsonb)`, [toJson(item)])
const buildTransfer = (
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
const moveInWallet = (wallet: string, ...deltas: bigint[]) =>
  client.query('select move_in_wallet($1, $2, $3, $4, $5)', [wallet, ...deltas.map(String)])

/** Runs the work in one transaction; false when the database refuses it. */
async function runTransaction(work: () => Promise<unknown>): Promise<boolean> {
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

type Command = { kind: string; wallet: string; amount: bigint; pick: number; shuffle: number; succeeds: boolean }

const commands = fc.record({
  kind: fc.constantFrom(
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
  succeeds: fc.boolean(),
})

async function begin({ kind, wallet, amount, shuffle }: Command) {
  const model = walletModels.get(wallet)!
  const id = nextId('op', shuffle)
  const pendingId = nextId('ltx', shuffle)
  const walletAccount = `liabilities:wallet:${wallet}`
  const hasFunds = kind === 'topup' || model.available >= amount
  const committed = await runTransaction(async () => {
    if (kind === 'topup') {
      await call('ledger_pend', buildTransfer(pendingId, 'topup', 'assets:chain:usdc', walletAccount, amount))
      await moveInWallet(wallet, 0n, 0n, amount, 0n)
    } else if (kind === 'run') {
      await moveInWallet(wallet, -amount, amount, 0n, 0n)
      await call('ledger_pend', buildTransfer(pendingId, 'run', walletAccount, 'revenue:lane:default', amount))
    } else if (kind === 'payout') {
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
      await call('request_payout', {
        ...row,
        ledger: buildTransfer(pendingId, 'withdrawal', walletAccount, 'assets:chain:usdc', amount),
      })
    } else {
      const row = { id, tenant_id: TENANT, wallet_id: wallet, amount_micro: amount, expires_at: at, created_at: at }
      await call('hold_escrow', {
        ...row,
        ledger: buildTransfer(pendingId, 'escrow_held', walletAccount, `liabilities:escrow:${wallet}`, amount),
      })
    }
  })
  expect(committed, `${kind} of ${amount} with ${model.available} available`).toBe(hasFunds)
  if (!committed) return
  openTransfers.push({ kind: kind as OpenTransfer['kind'], id, wallet, amount, ledger: pendingId })
  if (kind === 'topup') model.incoming += amount
  else model.available -= amount
  if (kind === 'escrow') model.escrowed += amount
  if (kind === 'run' || kind === 'payout') model.reserved += amount
}

async function finish({ pick, shuffle, succeeds }: Command) {
  if (openTransfers.length === 0) return
  const [transfer] = openTransfers.splice(pick % openTransfers.length, 1)
  const { kind, id, wallet, amount } = transfer!
  const model = walletModels.get(wallet)!
  const endingId = nextId('ltx', shuffle)
  const resolve = () =>
    call(succeeds ? 'ledger_post' : 'ledger_void', { id: endingId, pending_id: transfer!.ledger, created_at: at })
  const committed = await runTransaction(async () => {
    if (kind === 'payout')
      return call('end_payout', {
        id,
        state: succeeds ? 'paid' : 'cancelled',
        transaction: succeeds ? `0x1${id}` : null,
        at,
        ledger_id: endingId,
      })
    if (kind === 'escrow') {
      const to = succeeds ? 'revenue:escrow' : `liabilities:wallet:${wallet}`
      const ledgerTransfers = [buildTransfer(endingId, 'escrow_ended', `liabilities:escrow:${wallet}`, to, amount)]
      return call('end_escrow', {
        id,
        from: ['held'],
        state: succeeds ? 'released' : 'refunded',
        at,
        ledger: ledgerTransfers,
        events: [],
        audits: [],
      })
    }
    await resolve()
    if (kind === 'topup') return moveInWallet(wallet, succeeds ? amount : 0n, 0n, -amount, 0n)
    return moveInWallet(wallet, succeeds ? 0n : amount, -amount, 0n, 0n)
  })
  expect(committed).toBe(true)
  if (kind === 'topup') model.incoming -= amount
  if (kind === 'escrow') model.escrowed -= amount
  if (kind === 'run' || kind === 'payout') model.reserved -= amount
  if ((kind === 'topup') === succeeds) model.available += amount
  // A pending transfer is resolved only once.
  if (kind !== 'escrow')
    expect(
      await runTransaction(() =>
        call('ledger_void', { id: nextId('ltx', shuffle), pending_id: transfer!.ledger, created_at: at }),
      ),
    ).toBe(false)
}

async function step(command: Command) {
  const { kind, amount, shuffle } = command
  if (kind === 'finish') return finish(command)
  if (kind === 'count') return client.query('select count_ledger(40)')
  if (kind === 'guest')
    return call(
      'ledger_direct',
      buildTransfer(nextId('ltx', shuffle), 'run', 'assets:chain:usdc', 'revenue:lane:default', amount, null),
    )
  if (kind === 'twice') {
    const id = nextId('ltx', shuffle)
    await call('ledger_direct', buildTransfer(id, 'gift', 'assets:chain:usdc', 'revenue:lane:default', amount))
    expect(
      await runTransaction(() =>
        call('ledger_direct', buildTransfer(id, 'gift', 'assets:chain:usdc', 'revenue:lane:default', amount)),
      ),
    ).toBe(false)
    expect(
      await runTransaction(() =>
        client.query('update ledger_entries set amount_micro = 1 where transaction_id = $1', [id]),
      ),
    ).toBe(false)
    return expect(await runTransaction(() => client.query('delete from ledger_transactions where id = $1', [id]))).toBe(
      false,
    )
  }
  if (kind === 'crooked') {
    const unbalanced = buildTransfer(
      nextId('ltx', shuffle),
      'theft',
      'assets:chain:usdc',
      'revenue:lane:default',
      amount,
    )
    unbalanced.entries[1]!.amount_micro += 1n
    return expect(await runTransaction(() => call('ledger_direct', unbalanced))).toBe(false)
  }
  return begin(command)
}

const rows = async <T>(query: string, values: unknown[] = []): Promise<T[]> =>
  (await client.query(query, values)).rows as T[]

async function checkInvariants() {
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
  const walletRows = await rows<{ id: string } & Record<string, bigint>>('select * from wallets')
  for (const [id, model] of walletModels) {
    const row = walletRows.find((wallet) => wallet.id === id)!
    expect([row.available_micro, row.reserved_micro, row.incoming_micro, row.escrowed_micro]).toEqual([
      model.available,
      model.reserved,
      model.incoming,
      model.escrowed,
    ])
    expect(-(balances.get(`posted:liabilities:wallet:${id}`) ?? 0n)).toBe(model.available + model.reserved)
    expect(balances.get(`pending:liabilities:wallet:${id}`) ?? 0n).toBe(model.reserved - model.incoming)
    expect(-(balances.get(`posted:liabilities:escrow:${id}`) ?? 0n)).toBe(model.escrowed)
  }
  // The balance of an account at an entry is the sum of its entries up to that one.
  const mismatches = await rows(
    `select * from (
       select e.*, ledger_balance_at($1, account, 'USDC', transaction_id, line) as balance_at from (
         select account, transaction_id, line, sum(amount_micro) over (partition by account order by transaction_id, line) as running_sum
         from ledger_entries where tenant_id = $1 and layer = 'posted') e
       order by md5(transaction_id || $2) limit 100) sampled
     where balance_at <> running_sum`,
    [TENANT, String(serial)],
  )
  expect(mismatches).toEqual([])
  const accounts = await rows<{ account: string; balance_micro: bigint }>('select * from ledger_accounts_of($1)', [
    TENANT,
  ])
  for (const { account, balance_micro } of accounts) expect(balance_micro).toBe(balances.get(`posted:${account}`))
}

test('after any sequence of movements the ledger balances and every wallet matches its entries', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(commands, { minLength: 20, maxLength: 60 }), async (history) => {
      for (const command of history) await step(command)
      await checkInvariants()
    }),
    { numRuns: 15, seed: 4, endOnFailure: true },
  )
  const [{ snapshots }] = (await rows<{ snapshots: bigint }>('select count(*) as snapshots from ledger_snapshots')) as [
    { snapshots: bigint },
  ]
  expect(snapshots).toBeGreaterThan(0n)
})
