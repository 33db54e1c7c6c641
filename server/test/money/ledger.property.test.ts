import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { stringifyWithBigints } from '../../src/platform/json.ts'
import { createTestDatabase } from '../harness.ts'
import { buildAdmission, buildCompletion, buildFailure, callSet, countLedger, type RunItem } from './run-items.ts'

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
  await countLedger(client, 300)
})
afterAll(async () => {
  await client.end()
  await openedDatabase.close()
  await database.drop()
})

type WalletModel = { available: bigint; reserved: bigint; incoming: bigint; escrowed: bigint }
/** `ledger` is the id of its entries while they are pending. */
type OpenTransfer = {
  kind: 'topup' | 'run' | 'payout' | 'escrow'
  id: string
  wallet: string
  amount: bigint
  ledger: string
}
const toRunItem = ({ id, kind, wallet, amount, ledger }: OpenTransfer): RunItem => ({
  id,
  kind: kind as 'topup' | 'run',
  tenantId: TENANT,
  walletId: wallet,
  priceMicro: amount,
  pendingId: ledger,
})
const walletModels = new Map<string, WalletModel>(
  wallets.map((id) => [id, { available: 0n, reserved: 0n, incoming: 0n, escrowed: 0n }]),
)
const openTransfers: OpenTransfer[] = []
const endedRuns: OpenTransfer[] = []
let serial = 0

/** Ids are not in order of creation: a transaction may commit long after one with a later id. */
const nextId = (prefix: string, shuffle: number) =>
  `${prefix}_${String(shuffle).padStart(4, '0')}${String(serial++).padStart(8, '0')}`

const at = '2026-11-16T15:00:00Z'
const call = (name: string, item: unknown) => client.query(`select ${name}($1::jsonb)`, [stringifyWithBigints(item)])
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

type Command = {
  kind: string
  wallet: string
  amount: bigint
  pick: number
  shuffle: number
  succeeds: boolean
  others: { kind: 'topup' | 'run'; wallet: string; amount: bigint; shuffle: number }[]
}

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
    'admit batch',
    'admit batch',
    'finish batch',
    'finish batch',
  ),
  wallet: fc.constantFrom(...wallets),
  amount: fc.bigInt({ min: 1n, max: 5_000n }),
  pick: fc.nat(1_000),
  shuffle: fc.nat(9_999),
  succeeds: fc.boolean(),
  others: fc.array(
    fc.record({
      kind: fc.constantFrom('topup', 'run', 'run'),
      wallet: fc.constantFrom(...wallets),
      amount: fc.bigInt({ min: 1n, max: 5_000n }),
      shuffle: fc.nat(9_999),
    }),
    { minLength: 1, maxLength: 8 },
  ),
})

async function begin({ kind, wallet, amount, shuffle }: Command) {
  const model = walletModels.get(wallet)!
  const transfer = { id: nextId('op', shuffle), ledger: nextId('ltx', shuffle), wallet, amount, kind } as OpenTransfer
  const { id, ledger } = transfer
  const walletAccount = `liabilities:wallet:${wallet}`
  const hasFunds = kind === 'topup' || model.available >= amount
  if (kind === 'topup' || kind === 'run') return admit([transfer])
  const committed = await runTransaction(async () => {
    if (kind === 'payout')
      await call('request_payout', {
        id,
        kind: 'withdrawal',
        tenant_id: TENANT,
        wallet_id: wallet,
        to_address: '0x0',
        amount_micro: amount,
        method: 'manual',
        requested_by: 'operator',
        at,
        ledger: buildTransfer(ledger, 'withdrawal', walletAccount, 'assets:chain:usdc', amount),
      })
    else
      await call('hold_escrow', {
        id,
        tenant_id: TENANT,
        wallet_id: wallet,
        amount_micro: amount,
        expires_at: at,
        created_at: at,
        ledger: buildTransfer(ledger, 'escrow_held', walletAccount, `liabilities:escrow:${wallet}`, amount),
      })
  })
  expect(committed, `${kind} of ${amount} with ${model.available} available`).toBe(hasFunds)
  if (!committed) return
  openTransfers.push(transfer)
  model.available -= amount
  if (kind === 'escrow') model.escrowed += amount
  else model.reserved += amount
}

/** Admits runs and top-ups in one call. The model admits them one after the other. */
async function admit(transfers: OpenTransfer[]) {
  const expected = transfers.map(({ kind, wallet, amount }) => {
    const model = walletModels.get(wallet)!
    if (kind === 'topup') model.incoming += amount
    else if (model.available < amount) return 'wallet_balance'
    else {
      model.available -= amount
      model.reserved += amount
    }
    return { ruling: null, holds: [] }
  })
  expect(
    await callAsOneAndOneByOne(
      'admit_runs',
      transfers.map((transfer) => buildAdmission(toRunItem(transfer))),
    ),
  ).toEqual(expected)
  openTransfers.push(...transfers.filter((_, index) => typeof expected[index] === 'object'))
}

/** Ends runs and top-ups in one call. `repeated` ones have ended before, or are twice in the batch: nothing happens to them. */
async function endRuns(transfers: OpenTransfer[], succeeds: boolean, shuffle: number) {
  const endedIds = new Set(endedRuns.map(({ id }) => id))
  const expected = transfers.map(({ kind, id, wallet, amount }) => {
    if (endedIds.has(id)) return { first: false }
    endedIds.add(id)
    const model = walletModels.get(wallet)!
    if (kind === 'topup') model.incoming -= amount
    else model.reserved -= amount
    if ((kind === 'topup') === succeeds) model.available += amount
    return { first: true }
  })
  const items = transfers.map((transfer) =>
    succeeds ? buildCompletion(toRunItem(transfer), nextId('ltx', shuffle)) : buildFailure(toRunItem(transfer)),
  )
  expect(await callAsOneAndOneByOne(succeeds ? 'complete_runs' : 'abandon_runs', items)).toEqual(expected)
  endedRuns.push(...transfers.filter((_, index) => expected[index]!.first))
}

/** A batch must leave the same rows and give the same answers as its inputs one by one. */
async function callAsOneAndOneByOne(step: string, items: ({ id: string } | { run_id: string })[]) {
  const ids = items.map((item) => ('id' in item ? item.id : item.run_id))
  const list = (table: string, column: string) =>
    `(select jsonb_agg(to_jsonb(stored) - 'decided_seq' - 'ended_seq' order by stored.id) from ${table} stored where ${column} = any($1))`
  const snapshot = () =>
    rows(
      `select (select jsonb_agg(wallet order by wallet.id) from wallets wallet) as wallets, (select array_agg(ledger_id order by ledger_id) from journal where ledger_id is not null) as uncounted,
         ${list('open_runs', 'id')} as open, ${list('ended_runs', 'id')} as ended, ${list('ledger', 'ref')} as ledger, ${list('receipts', 'run_id')} as receipts,
         ${list('settlement_records', 'run_id')} as settlements, (select array_agg(nonce order by nonce) from nonces where run_id = any($1)) as nonces`,
      [ids],
    )
  if (items.length === 1) return callSet(client, step, items)
  await client.query('begin')
  const answers: unknown[] = []
  for (const item of items) answers.push(...(await callSet(client, step, [item])))
  const afterOneByOne = await snapshot()
  await client.query('rollback')
  await client.query('begin')
  expect(await callSet(client, step, items)).toEqual(answers)
  expect(await snapshot()).toEqual(afterOneByOne)
  await client.query('commit')
  return answers
}

const takeOpenTransfer = (pick: number) => openTransfers.splice(pick % openTransfers.length, 1)[0]!

async function finish({ pick, shuffle, succeeds }: Command) {
  if (openTransfers.length === 0) return
  const transfer = takeOpenTransfer(pick)
  const { kind, id, wallet, amount } = transfer
  if (kind === 'topup' || kind === 'run') {
    await endRuns([transfer], succeeds, shuffle)
    // A run ends only once, and the other way neither.
    await endRuns([transfer], succeeds, shuffle)
    return endRuns([transfer], !succeeds, shuffle)
  }
  const model = walletModels.get(wallet)!
  const endingId = nextId('ltx', shuffle)
  const end = async () => {
    if (kind === 'payout')
      return call('end_payout', {
        id,
        state: succeeds ? 'paid' : 'cancelled',
        transaction: succeeds ? `0x1${id}` : null,
        at,
        ledger_id: endingId,
      })
    const to = succeeds ? 'revenue:escrow' : `liabilities:wallet:${wallet}`
    return call('end_escrow', {
      id,
      from: ['held'],
      state: succeeds ? 'released' : 'refunded',
      at,
      ledger: [buildTransfer(endingId, 'escrow_ended', `liabilities:escrow:${wallet}`, to, amount)],
      events: [],
      audits: [],
    })
  }
  expect(await runTransaction(end)).toBe(true)
  if (kind === 'escrow') model.escrowed -= amount
  else model.reserved -= amount
  if (!succeeds) model.available += amount
  // A payout and an escrow end only once.
  if (kind === 'escrow') expect(await runTransaction(end)).toBe(false)
  else expect((await end()).rows).toEqual([{ end_payout: false }])
}

/** Ends several open runs in one call, together with one that has ended before or is in the batch twice. */
async function finishBatch({ pick, shuffle, succeeds, others }: Command) {
  const batch: OpenTransfer[] = []
  for (const { shuffle: nextPick } of others) {
    const index = openTransfers.findIndex(
      ({ kind }, place) => place >= nextPick % 5 && (kind === 'topup' || kind === 'run'),
    )
    if (index >= 0) batch.push(...openTransfers.splice(index, 1))
  }
  if (batch.length === 0) return
  if (pick % 3 === 1 && endedRuns.length > 0) batch.push(endedRuns[pick % endedRuns.length]!)
  if (pick % 3 === 2) batch.push(batch[0]!)
  await endRuns(batch, succeeds, shuffle)
}

async function step(command: Command) {
  const { kind, amount, shuffle } = command
  if (kind === 'finish') return finish(command)
  if (kind === 'finish batch') return finishBatch(command)
  if (kind === 'admit batch')
    return admit(
      command.others.map((transfer) => ({
        ...transfer,
        id: nextId('op', transfer.shuffle),
        ledger: nextId('ltx', transfer.shuffle),
      })),
    )
  if (kind === 'count') return countLedger(client, 40)
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
    expect(await runTransaction(() => client.query('update ledger set amounts[1] = 1 where id = $1', [id]))).toBe(false)
    return expect(await runTransaction(() => client.query('delete from ledger where id = $1', [id]))).toBe(false)
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

const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)

async function checkInvariants() {
  expect(
    await rows('select 1 from ledger_entries group by transaction_id, asset, status having sum(amount_micro) <> 0'),
  ).toEqual([])
  const balances = new Map(
    (
      await rows<{ account: string; status: string; sum: bigint }>(
        `select account, status, sum(amount_micro)::bigint as sum from ledger_entries where tenant_id is not null group by 1, 2`,
      )
    ).map(({ account, status, sum }) => [`${status}:${account}`, sum]),
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
  // Every run is open or has ended, once, with its entries in one place and its settlement in the state that matches.
  const open = openTransfers.filter(({ kind }) => kind === 'topup' || kind === 'run').map(({ id }) => id)
  expect(await rows('select id from open_runs order by id')).toEqual(open.sort().map((id) => ({ id })))
  expect(await rows('select id from ended_runs order by id')).toEqual(endedRuns.map(({ id }) => ({ id })).sort(byId))
  expect(
    await rows(
      `select run.id from runs run left join ledger_entries entry on entry.ref = run.id left join settlements settlement on settlement.run_id = run.id
       group by run.id, run.state, run.price_micro having count(distinct entry.transaction_id) <> 1 or count(*) <> 2 or max(entry.amount_micro) <> run.price_micro
         or min(entry.status) || ' ' || min(settlement.state) <> case run.state when 'completed' then 'posted settled' when 'failed' then 'voided failed' else 'pending pending' end`,
    ),
  ).toEqual([])
  // The balance of an account at an entry is the sum of its entries up to that one, asked for alone or with others.
  const mismatches = await rows(
    `with sampled as materialized (
       select * from (
         select account, transaction_id, line, sum(amount_micro) over (partition by account order by transaction_id, line) as running_sum
         from ledger_entries where tenant_id = $1 and status = 'posted') entry
       order by md5(transaction_id || $2) limit 100
     ), together as (
       select row_number() over () as place, balance_micro from ledger_balances_at($1,
         (select array_agg(account order by transaction_id, line) from sampled), (select array_agg('USDC'::text) from sampled),
         (select array_agg(transaction_id order by transaction_id, line) from sampled), (select array_agg(line order by transaction_id, line) from sampled))
     ), alone as (
       select row_number() over (order by transaction_id, line) as place, sampled.*, ledger_balance_at($1, account, 'USDC', transaction_id, line) as balance_at from sampled
     )
     select * from alone left join together using (place) where balance_at <> running_sum or balance_micro is distinct from running_sum`,
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
