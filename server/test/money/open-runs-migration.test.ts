import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import type { Database } from '../../src/platform/db.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { createTestDatabase, migrateUntil, type TestDatabase } from '../database.ts'
import { buildCompletion, buildFailure, callSet, countLedger, type RunItem } from './run-items.ts'

/** Rows as the release before 0060 stored them, in every state a run, a payment, a hold and a payout can have. */
let scratch: TestDatabase
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase({ empty: true })
  database = scratch.open(2)
  await migrateUntil(database, '0060')
  await seed()
  expect((await migrate(database)).applied).toContain('0060_open_runs.sql')
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const AT = '2026-11-16T15:00:00.000Z'
const TENANT = 'ten_1'
const PRICE = 10_000n
const query = async <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
  (await database.pool.query(text, values)).rows as Row[]
const hashOf = (body: string) => `sha256:${createHash('sha256').update(body).digest('hex')}`

type Seed = {
  name: string
  kind?: 'run' | 'topup'
  state: 'completed' | 'failed' | 'executing' | 'settling'
  method: 'wallet' | 'x402'
  settlement: 'pending' | 'unknown' | 'settled' | 'failed' | 'refunded'
  tenant?: string | null
  escrow?: boolean
  holds?: { scope: string; amount: bigint; state: 'open' | 'spent' | 'released' }[]
}
const seeds: Seed[] = [
  { name: 'topup-completed', kind: 'topup', state: 'completed', method: 'x402', settlement: 'settled' },
  { name: 'topup-settling', kind: 'topup', state: 'settling', method: 'x402', settlement: 'pending' },
  {
    name: 'x402-completed',
    state: 'completed',
    method: 'x402',
    settlement: 'settled',
    holds: [{ scope: 'budget', amount: PRICE, state: 'spent' }],
  },
  { name: 'guest-completed', state: 'completed', method: 'x402', settlement: 'settled', tenant: null },
  { name: 'wallet-completed', state: 'completed', method: 'wallet', settlement: 'settled' },
  {
    name: 'x402-failed',
    state: 'failed',
    method: 'x402',
    settlement: 'failed',
    holds: [{ scope: 'budget', amount: PRICE, state: 'released' }],
  },
  { name: 'wallet-failed', state: 'failed', method: 'wallet', settlement: 'failed' },
  { name: 'arrived', state: 'failed', method: 'x402', settlement: 'settled' },
  { name: 'refunded', state: 'failed', method: 'x402', settlement: 'refunded' },
  {
    name: 'wallet-executing',
    state: 'executing',
    method: 'wallet',
    settlement: 'pending',
    holds: [{ scope: 'budget', amount: PRICE, state: 'open' }],
  },
  { name: 'escrow-executing', state: 'executing', method: 'wallet', settlement: 'pending', escrow: true },
  {
    name: 'guest-executing',
    state: 'executing',
    method: 'x402',
    settlement: 'pending',
    tenant: null,
    holds: [{ scope: 'payer', amount: PRICE, state: 'open' }],
  },
  {
    name: 'x402-unknown',
    state: 'settling',
    method: 'x402',
    settlement: 'unknown',
    holds: [
      { scope: 'budget', amount: PRICE, state: 'open' },
      // Held by a pre-authorisation that the run took over, for more than the price.
      { scope: 'mandate', amount: 3n * PRICE, state: 'open' },
    ],
  },
]
const priceOf = ({ kind }: Seed) => (kind === 'topup' ? 20n * PRICE : PRICE)
const runItem = (seedRow: Seed): RunItem => ({
  id: `run_${seedRow.name}`,
  kind: seedRow.kind ?? 'run',
  tenantId: TENANT,
  walletId: 'wal_1',
  priceMicro: priceOf(seedRow),
  pendingId: `ltx_${seedRow.name}_pend`,
})

type Entries = [account: string, amount: bigint][]
const transfer = (from: string, to: string, amount: bigint): Entries => [
  [from, amount],
  [to, -amount],
]
async function writeLedger(
  id: string,
  tenant: string | null,
  kind: 'pend' | 'post' | 'void' | 'direct',
  code: string,
  ref: string,
  entries: Entries,
  pendingId: string | null = null,
) {
  await query(
    `insert into ledger_transactions (id, tenant_id, kind, pending_id, code, ref, created_at) values ($1, $2, $3, $4, $5, $6, $7)`,
    [id, tenant, kind, pendingId, code, ref, AT],
  )
  const lines: [number, string, string, bigint][] = []
  entries.forEach(([account, amount], index) => {
    const isPosted = kind === 'direct'
    if (kind === 'pend' || isPosted) lines.push([index + 1, account, isPosted ? 'posted' : 'pending', amount])
    if (kind === 'post' || kind === 'void') lines.push([index + 1, account, 'pending', -amount])
    if (kind === 'post') lines.push([1_001 + index, account, 'posted', amount])
  })
  await query(
    `insert into ledger_entries (transaction_id, line, account, layer, asset, amount_micro, tenant_id)
     select $1, line, account, layer, 'USDC', amount, $6 from unnest($2::int[], $3::text[], $4::text[], $5::bigint[]) as entry(line, account, layer, amount)`,
    [id, ...[0, 1, 2, 3].map((place) => lines.map((line) => `${line[place]}`)), tenant],
  )
  if (tenant && (kind === 'post' || kind === 'direct'))
    await query('insert into ledger_queue (transaction_id) values ($1)', [id])
}

async function writeReceipt(run: string, kind: string, amount: bigint, transaction: string | null, prevHash?: string) {
  const settlement = kind === 'failure' ? undefined : { amount: amount.toString(), transaction }
  const body = JSON.stringify({ run_id: run, kind, settlement })
  await query(
    `insert into receipts (id, run_id, kind, issued_at, body, hash, prev_hash) values ($1, $2, $3, $4, $5, $6, $7)`,
    [`rcp_${run}_${kind}`, run, kind, AT, body, hashOf(body), prevHash ?? null],
  )
  return hashOf(body)
}

const entriesOf = (seedRow: Seed): Entries => {
  if (seedRow.kind === 'topup') return transfer('assets:chain:usdc', 'liabilities:wallet:wal_1', priceOf(seedRow))
  const from = seedRow.escrow
    ? 'liabilities:escrow:wal_1'
    : seedRow.method === 'wallet'
      ? 'liabilities:wallet:wal_1'
      : 'assets:chain:usdc'
  return [
    [from, PRICE],
    ['revenue:lane:default', -9_000n],
    ['revenue:orchestration', -1_000n],
  ]
}

async function seedRun(seedRow: Seed) {
  const { name, kind = 'run', state, method, settlement, tenant = TENANT, escrow, holds = [] } = seedRow
  const [run, price] = [`run_${name}`, priceOf(seedRow)]
  const isEnded = state === 'completed' || state === 'failed'
  const walletId = method === 'wallet' || kind === 'topup' ? 'wal_1' : null
  const terms = {
    settlement_id: `stl_old_${name}`,
    pending_id: `ltx_${name}_pend`,
    asset: 'USDC',
    pay_to: '0xours',
    wallet_id: walletId,
    escrow_id: escrow ? `esc_${name}` : null,
    locks: [`run:${run}`],
    ruling: {},
  }
  await query(
    `insert into runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, result,
       answer_status, answer_body, instance, admission, created_at, deadline_at, finished_at)
     values ($1, $2, $3, '0xpayer', 'default', 'ses_1', $4, $2, $5, $6, 'h', '{"task": "t"}', $7, $8, $9, $10, $11, 'old', $12, $13, $13, $14)`,
    [
      run,
      kind,
      tenant,
      `loop_${name}`,
      state,
      isEnded ? state : 'pending',
      terms,
      price.toString(),
      state === 'executing' ? null : { execution: { latency_ms: 5 } },
      isEnded ? 200 : null,
      isEnded ? `{"run_id":"${run}"}` : null,
      `adm_${run}`,
      AT,
      isEnded ? AT : null,
    ],
  )
  const transaction = ['settled', 'refunded'].includes(settlement) && method === 'x402' ? `0x${name}` : null
  const payment = {
    x402Version: 2,
    signature: `0xsigned-${name}`,
    authorization: {
      from: '0xpayer',
      to: '0xours',
      value: `${price}`,
      validAfter: '0',
      validBefore: '4000000000',
      nonce: `0xnonce-${name}`,
    },
    payload: {},
    terms: { network: 'eip155:8453', asset: 'USDC', payTo: '0xours', amountMicro: `${price}` },
  }
  // The release before wrote a JSON null, not an SQL NULL, as the payment of a wallet.
  await query(
    `insert into settlements (id, run_id, tenant_id, method, state, network, asset, payer, pay_to, amount_micro, nonce, valid_before, payment, transaction, reason, attempts, next_attempt_at, wallet_id, created_at, updated_at)
     values ($1, $2, $3, $4, $5, 'eip155:8453', 'USDC', '0xpayer', '0xours', $6, $7, $8, $9::jsonb, $10, $11, $12, $13, $14, $15, $15)`,
    [
      `stl_old_${name}`,
      run,
      tenant,
      method,
      settlement,
      price.toString(),
      method === 'x402' ? `0xnonce-${name}` : `stl_old_${name}`,
      method === 'x402' ? '4000000000' : '0',
      JSON.stringify(method === 'x402' ? payment : null),
      transaction,
      settlement === 'unknown' ? 'timeout' : null,
      settlement === 'unknown' ? 3 : 0,
      settlement === 'unknown' || (settlement === 'failed' && method === 'x402') ? AT : null,
      walletId,
      AT,
    ],
  )
  const entries = entriesOf(seedRow)
  await writeLedger(`ltx_${name}_pend`, tenant, 'pend', kind, run, entries)
  if (state === 'completed')
    await writeLedger(`ltx_${name}_post`, tenant, 'post', kind, run, entries, `ltx_${name}_pend`)
  if (state === 'failed') await writeLedger(`ltx_${name}_void`, tenant, 'void', kind, run, entries, `ltx_${name}_pend`)
  for (const { scope, amount, state: holdState } of holds)
    await query(
      `insert into holds (holder, scope, period, amount_micro, on_success, state, created_at) values ($1, $2, 'total', $3, 'spend', $4, $5)`,
      [run, scope, amount.toString(), holdState, AT],
    )
  if (state === 'completed') await writeReceipt(run, kind, price, transaction)
  return state === 'failed' ? writeReceipt(run, 'failure', price, transaction) : ''
}

async function seed() {
  await query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ($1, 'x', 'x@example.com', $2, $2)`,
    [TENANT, AT],
  )
  // 200,000 came in. A run was paid, a run and a withdrawal are under way, one withdrawal is paid, one escrow is held.
  await query(
    `insert into wallets (id, tenant_id, name, available_micro, reserved_micro, incoming_micro, escrowed_micro, created_at) values ('wal_1', $1, 'x', 160000, 15000, 200000, 10000, $2)`,
    [TENANT, AT],
  )
  await query(
    `insert into limits (scope, period, limit_micro, spent_micro, reserved_micro) values ('budget', 'total', 1000000, 15000, 25000), ('payer', 'total', 100000, 0, 10000), ('mandate', 'total', 100000, 0, 30000)`,
  )
  await query(
    `insert into runs (id, kind, tenant_id, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro, created_at, deadline_at)
     select 'run_' || state, 'run', $1, 'default', 'ses_1', 'loop_' || state, 'run', state, case state when 'pending_approval' then 'pending' else state end, 'h', '{}', '{"ruling": {}}', 10000, $2::timestamptz, $2::timestamptz
     from unnest(array['blocked', 'pending_approval', 'approved']) as state`,
    [TENANT, AT],
  )
  const failureHashes = new Map<string, string>()
  for (const seedRow of seeds) failureHashes.set(seedRow.name, await seedRun(seedRow))
  await query(
    `insert into escrows (id, tenant_id, wallet_id, run_id, amount_micro, state, expires_at, created_at) values ('esc_escrow-executing', $1, 'wal_1', 'run_escrow-executing', 10000, 'held', $2, $2)`,
    [TENANT, AT],
  )
  await writeLedger(
    'ltx_escrow',
    TENANT,
    'direct',
    'escrow_held',
    'esc_escrow-executing',
    transfer('liabilities:wallet:wal_1', 'liabilities:escrow:wal_1', PRICE),
  )

  const seedPayout = async (id: string, kind: 'withdrawal' | 'refund', state: string, settlementId: string | null) => {
    const amount = kind === 'withdrawal' ? 5_000n : PRICE
    const from = kind === 'withdrawal' ? 'liabilities:wallet:wal_1' : 'liabilities:refunds'
    const entries = transfer(from, 'assets:chain:usdc', amount)
    await writeLedger(`ltx_${id}_pend`, TENANT, 'pend', kind, id, entries)
    await query(
      `insert into payouts (id, kind, tenant_id, wallet_id, settlement_id, to_address, amount_micro, method, state, pending_id, transaction, requested_by, created_at, updated_at)
       values ($1, $2, $3, $4, $5, '0xto', $6, 'chain', $7, $8, $9, 'operator', $10, $10)`,
      [
        id,
        kind,
        TENANT,
        kind === 'withdrawal' ? 'wal_1' : null,
        settlementId,
        amount.toString(),
        state,
        `ltx_${id}_pend`,
        state === 'paid' ? `0x${id}` : null,
        AT,
      ],
    )
    if (state === 'paid') await writeLedger(`ltx_${id}_post`, TENANT, 'post', kind, id, entries, `ltx_${id}_pend`)
    if (state === 'cancelled') await writeLedger(`ltx_${id}_void`, TENANT, 'void', kind, id, entries, `ltx_${id}_pend`)
  }
  for (const state of ['pending', 'paid', 'cancelled']) await seedPayout(`pay_${state}`, 'withdrawal', state, null)
  for (const [name, state] of [
    ['arrived', 'pending'],
    ['refunded', 'paid'],
  ] as const) {
    await writeLedger(
      `ltx_${name}_arrival`,
      TENANT,
      'direct',
      'arrival',
      `stl_old_${name}`,
      transfer('assets:chain:usdc', 'liabilities:refunds', PRICE),
    )
    await seedPayout(`pay_${name}`, 'refund', state, `stl_old_${name}`)
    const hash = await writeReceipt(`run_${name}`, 'correction', PRICE, `0x${name}`, failureHashes.get(name)!)
    if (state === 'paid') await writeReceipt(`run_${name}`, 'refund', PRICE, `0x${name}`, hash)
  }
  await query(
    `insert into preauths (id, tenant_id, run_id, status, agent_id, merchant_id, merchant, amount_micro, asset, network, action_hash, policy_results, ttl_seconds, asked_by, created_at, closed_at)
     select 'pa_' || status, $1, 'run_pa_' || status, status, 'default', 'm', '{}', 5000, 'a', 'n', 'h', '[]', 60, 'k', $2::timestamptz, case status when 'closed' then $2::timestamptz end
     from unnest(array['open', 'closed']) as status`,
    [TENANT, AT],
  )
  await query(
    `insert into holds (holder, scope, period, amount_micro, on_success, state, created_at, measure) values ('pa_open', 'budget', 'total', 5000, 'spend', 'open', $1, 'money'), ('pa_closed', 'budget', 'total', 5000, 'spend', 'spent', $1, 'money')`,
    [AT],
  )
}

const differences = async () =>
  (await checkBooks(database.db)).flatMap((check) => check.differences.map((each) => ({ check: check.name, ...each })))

test('every run is where it belongs: open, or ended', async () => {
  const states = new Map(seeds.map(({ name, state }) => [`run_${name}`, state as string]))
  for (const state of ['blocked', 'pending_approval', 'approved']) states.set(`run_${state}`, state)
  const byId = ([a]: [string, string], [b]: [string, string]) => (a < b ? -1 : 1)
  const read = async (table: string) =>
    (await query<{ id: string; state: string }>(`select id, state from ${table}`))
      .map(({ id, state }) => [id, state] as [string, string])
      .sort(byId)
  const isEnded = ([, state]: [string, string]) => ['completed', 'failed', 'blocked'].includes(state)
  expect(await read('runs')).toEqual([...states].sort(byId))
  expect(await read('ended_runs')).toEqual([...states].filter(isEnded).sort(byId))
  expect(await read('open_runs')).toEqual([...states].filter((entry) => !isEnded(entry)).sort(byId))
  expect(
    await query(`select id from runs where answer_body is not null and answer_body <> '{"run_id":"' || id || '"}'`),
  ).toEqual([])
})

test('every payment is one settlement in its state, and every nonce stays used', async () => {
  const rows = await query<{
    run_id: string
    method: string
    state: string
    amount_micro: bigint
    wallet_id: string | null
    tenant_id: string | null
  }>('select run_id, method, state, amount_micro, wallet_id, tenant_id from settlements order by run_id')
  const expected = seeds.map((seedRow) => ({
    run_id: `run_${seedRow.name}`,
    method: seedRow.method,
    state: seedRow.settlement,
    amount_micro: priceOf(seedRow),
    wallet_id: seedRow.method === 'wallet' || seedRow.kind === 'topup' ? 'wal_1' : null,
    tenant_id: seedRow.tenant === undefined ? TENANT : seedRow.tenant,
  }))
  const byRun = (a: { run_id: string }, b: { run_id: string }) => (a.run_id < b.run_id ? -1 : 1)
  expect(rows.sort(byRun)).toEqual(expected.sort(byRun))
  const nonces = await query<{ nonce: string; run_id: string }>('select nonce, run_id from nonces')
  expect(nonces.map(({ nonce, run_id }) => `${run_id} ${nonce}`).sort()).toEqual(
    seeds
      .filter(({ method }) => method === 'x402')
      .map(({ name }) => `run_${name} 0xnonce-${name}`)
      .sort(),
  )
  // The reconciler finds what it was about to check.
  expect(
    await query(`select id, attempts, reason, next_attempt_at from open_runs where payment_state = 'unknown'`),
  ).toEqual([{ id: 'run_x402-unknown', attempts: 3, reason: 'timeout', next_attempt_at: new Date(AT) }])
  expect(
    await query(`select run_id from settlement_records where state = 'failed' and next_attempt_at is not null`),
  ).toEqual([{ run_id: 'run_x402-failed' }])
})

test('every open hold stands in its run or pre-authorisation, and the counters agree', async () => {
  const holds = await query<{ holder: string; scope: string; amount_micro: bigint }>(
    'select holder, scope, amount_micro from open_holds',
  )
  expect(holds.map(({ holder, scope, amount_micro }) => `${holder} ${scope} ${amount_micro}`).sort()).toEqual([
    'pa_open budget 5000',
    'run_guest-executing payer 10000',
    'run_wallet-executing budget 10000',
    'run_x402-unknown budget 10000',
    'run_x402-unknown mandate 30000',
  ])
})

test('the ledger has each transaction once, with its entries in their order', async () => {
  const rows = await query<{ id: string; status: string; accounts: string[]; amounts: string[] }>(
    'select id, status, accounts, amounts from ledger',
  )
  const ids = (status: string) =>
    rows
      .filter((row) => row.status === status)
      .map(({ id }) => id)
      .sort()
  expect(ids('posted')).toEqual(
    [
      'ltx_arrived_arrival',
      'ltx_escrow',
      'ltx_guest-completed_post',
      'ltx_pay_paid_post',
      'ltx_pay_refunded_post',
      'ltx_refunded_arrival',
      'ltx_topup-completed_post',
      'ltx_wallet-completed_post',
      'ltx_x402-completed_post',
    ].sort(),
  )
  // A voided transaction keeps the id under which it was pending.
  expect(ids('voided')).toEqual(
    ['arrived', 'pay_cancelled', 'refunded', 'wallet-failed', 'x402-failed'].map((name) => `ltx_${name}_pend`).sort(),
  )
  expect(rows.find(({ id }) => id === 'ltx_x402-completed_post')).toMatchObject({
    accounts: ['assets:chain:usdc', 'revenue:lane:default', 'revenue:orchestration'],
    amounts: ['10000', '-9000', '-1000'],
  })
  const sums = await query<{ status: string; account: string; total: bigint }>(
    `select status, account, sum(amount_micro)::bigint as total from ledger_entries where account in ('assets:chain:usdc', 'liabilities:wallet:wal_1') group by 1, 2`,
  )
  expect(Object.fromEntries(sums.map(({ status, account, total }) => [`${status} ${account}`, total]))).toEqual({
    'posted assets:chain:usdc': 200_000n + 10_000n + 10_000n - 5_000n + 20_000n - 10_000n,
    'pending assets:chain:usdc': 200_000n + 10_000n + 10_000n - 5_000n - 10_000n,
    'voided assets:chain:usdc': 10_000n + 10_000n + 10_000n - 5_000n,
    'posted liabilities:wallet:wal_1': -(160_000n + 15_000n),
    'pending liabilities:wallet:wal_1': 10_000n + 5_000n - 200_000n,
    'voided liabilities:wallet:wal_1': 10_000n + 5_000n,
  })
})

test('the books have no differences, before and after the balances are counted', async () => {
  expect(await differences()).toEqual([])
  // What waited in the queue waits in the journal now.
  const waiting = await query<{ ledger_id: string }>('select ledger_id from journal where ledger_id is not null')
  const posted = await query<{ id: string }>(`select id from ledger where status = 'posted' and tenant_id is not null`)
  expect(waiting.map(({ ledger_id }) => ledger_id).sort()).toEqual(posted.map(({ id }) => id).sort())
  await countLedger(database.pool, 1_000)
  expect(await differences()).toEqual([])
})

test('what was under way at the upgrade ends by the new steps, and the books still agree', async () => {
  const find = (name: string) => seeds.find((seedRow) => seedRow.name === name)!
  const receipt = (run: RunItem, kind: string, transaction: string | null) => {
    const body = JSON.stringify({
      run_id: run.id,
      settlement: kind === 'failure' ? undefined : { amount: `${run.priceMicro}`, transaction },
    })
    return { body, hash: hashOf(body) }
  }
  const complete = (name: string, changes: object = {}) => {
    const run = runItem(find(name))
    const item = buildCompletion(run, `ltx_${name}_end`)
    const transaction = find(name).method === 'x402' ? `0xlate-${name}` : null
    return { ...item, transaction, receipt: { ...item.receipt, ...receipt(run, run.kind, transaction) }, ...changes }
  }
  const fail = (name: string, changes: object = {}) => {
    const run = runItem(find(name))
    const item = buildFailure(run)
    return { ...item, receipt: { ...item.receipt, ...receipt(run, 'failure', null) }, ...changes }
  }
  const escrow = {
    id: 'esc_escrow-executing',
    from: ['held'],
    state: 'refunded',
    reason: null,
    at: AT,
    ledger: [
      {
        id: 'ltx_escrow_end',
        tenant_id: TENANT,
        code: 'escrow_refunded',
        ref: 'esc_escrow-executing',
        created_at: AT,
        asset: 'USDC',
        entries: transfer('liabilities:escrow:wal_1', 'liabilities:wallet:wal_1', PRICE).map(([account, amount]) => ({
          account,
          amount_micro: amount,
        })),
      },
    ],
    events: [],
    audits: [],
  }
  const completions = [complete('topup-settling'), complete('wallet-executing'), complete('x402-unknown')]
  expect(await callSet(database.pool, 'complete_runs', completions)).toEqual(completions.map(() => ({ first: true })))
  const failures = [fail('guest-executing'), fail('escrow-executing', { escrow })]
  expect(await callSet(database.pool, 'abandon_runs', failures)).toEqual(failures.map(() => ({ first: true })))
  // A run that ended before the upgrade is not ended again.
  expect(await callSet(database.pool, 'complete_runs', [complete('wallet-failed')])).toEqual([{ first: false }])
  const pay = { id: 'pay_pending', state: 'paid', transaction: '0xpaid', at: AT, ledger_id: 'ltx_pay_pending_end' }
  expect(await query('select end_payout($1) as first', [JSON.stringify(pay)])).toEqual([{ first: true }])

  expect(await query('select id, state from open_runs order by id')).toEqual([
    { id: 'run_approved', state: 'approved' },
    { id: 'run_pending_approval', state: 'pending_approval' },
  ])
  expect(await query('select available_micro, reserved_micro, incoming_micro, escrowed_micro from wallets')).toEqual([
    { available_micro: 370_000n, reserved_micro: 0n, incoming_micro: 0n, escrowed_micro: 0n },
  ])
  expect(await query('select scope, spent_micro, reserved_micro from limits order by scope')).toEqual([
    { scope: 'budget', spent_micro: 35_000n, reserved_micro: 5_000n },
    { scope: 'mandate', spent_micro: 10_000n, reserved_micro: 0n },
    { scope: 'payer', spent_micro: 0n, reserved_micro: 0n },
  ])
  await countLedger(database.pool, 1_000)
  expect(await differences()).toEqual([])
})
