import { afterAll, beforeAll, expect, test } from 'vitest'
import { abandonRunsStep, admitRunsStep, completeRunsStep } from '../../src/modules/runs/runs.steps.ts'
import { createSteps } from '../../src/platform/batch.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import {
  buildAdmission,
  buildCompletion,
  buildCompletionAtOnce,
  buildFailure,
  callSet,
  type RunItem,
} from './run-items.ts'

/** The steps of runs as the service calls them: many at once, in batches, and again after a lost reply. */
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(4)
  await database.pool.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'x', 'x@example.com', now(), now())`,
  )
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

let serial = 0
async function createWallet(availableMicro: bigint) {
  const id = `wal_${serial++}`
  await database.pool.query(
    `insert into wallets (id, tenant_id, name, available_micro, created_at) values ($1, 'ten_1', 'x', $2, now())`,
    [id, availableMicro.toString()],
  )
  return id
}
const newRun = (walletId: string, priceMicro = 10_000n): RunItem => {
  serial += 1
  return {
    id: `run_${serial}`,
    kind: 'run',
    tenantId: 'ten_1',
    walletId,
    priceMicro,
    pendingId: `ltx_pending_${serial}`,
  }
}
const readWallet = async (id: string) =>
  (await database.pool.query('select available_micro, reserved_micro from wallets where id = $1', [id])).rows[0]
const readRuns = async (runs: RunItem[]) =>
  (await database.pool.query('select id, state from runs where id = any($1) order by id', [runs.map(({ id }) => id)]))
    .rows as { id: string; state: string }[]

test('a wallet with money for 7 of 30 runs that arrive together: exactly 7 are admitted', async () => {
  const walletId = await createWallet(79_999n)
  const otherId = await createWallet(1_000_000n)
  const admit = createSteps(database.pool)(admitRunsStep)
  const poor = Array.from({ length: 30 }, () => newRun(walletId))
  const rich = Array.from({ length: 20 }, () => newRun(otherId))
  const submit = (run: RunItem) => admit(buildAdmission(run), [`wallet:${run.walletId}`])
  const [poorResults, richResults] = await Promise.all([
    Promise.allSettled(poor.map(submit)),
    Promise.allSettled(rich.map(submit)),
  ])
  const refused = poorResults.filter((result) => result.status === 'rejected')
  expect(refused).toHaveLength(23)
  for (const { reason } of refused)
    expect(reason).toMatchObject({ status: 402, message: 'wallet_balance', detail: { wallet_id: walletId } })
  // The wallet of somebody else in the same batch is not affected.
  expect(richResults.every(({ status }) => status === 'fulfilled')).toBe(true)
  expect(await readWallet(walletId)).toEqual({ available_micro: 9_999n, reserved_micro: 70_000n })
  expect(await readWallet(otherId)).toEqual({ available_micro: 800_000n, reserved_micro: 200_000n })
  expect(await readRuns(poor)).toHaveLength(7)
  expect(await readRuns(rich)).toHaveLength(20)
})

test('a run that is too expensive is refused alone, and the cheaper ones behind it are admitted', async () => {
  const walletId = await createWallet(30_000n)
  const prices = [10_000n, 25_000n, 10_000n, 10_000n, 1n]
  const runs = prices.map((price) => newRun(walletId, price))
  const answers = await callSet(
    database.pool,
    'admit_runs',
    runs.map((run) => buildAdmission(run)),
  )
  expect(answers).toEqual([
    { ruling: null, holds: [] },
    'wallet_balance',
    { ruling: null, holds: [] },
    { ruling: null, holds: [] },
    'wallet_balance',
  ])
  expect(await readWallet(walletId)).toEqual({ available_micro: 0n, reserved_micro: 30_000n })
})

test('the same payment twice in one batch buys one run', async () => {
  const walletId = await createWallet(0n)
  const [first, second] = [newRun(walletId), newRun(walletId)].map((run) => ({ ...run, kind: 'topup' as const }))
  const nonce = { payer: '0xpayer', nonce: 'the same', network: 'n', asset: 'a' }
  const items = [buildAdmission(first!, { nonce }), buildAdmission(second!, { nonce })]
  expect(await callSet(database.pool, 'admit_runs', items)).toEqual([{ ruling: null, holds: [] }, 'nonce_used'])
  expect(await readRuns([first!, second!])).toEqual([{ id: first!.id, state: 'settling' }])
})

test('the same idempotency key twice in one batch buys one run; the refusal names it', async () => {
  const walletId = await createWallet(100_000n)
  const [first, second, other] = [newRun(walletId), newRun(walletId), newRun(walletId)]
  const key = { scope: 's', route: 'r', key: 'k', body_hash: 'b', expires_at: '2100-01-01T00:00:00Z' }
  const admit = createSteps(database.pool)(admitRunsStep)
  const results = await Promise.allSettled([
    admit(buildAdmission(other!), []),
    admit(buildAdmission(first!, { keys: [key] }), []),
    admit(buildAdmission(second!, { keys: [key] }), []),
  ])
  expect(results).toMatchObject([
    { status: 'fulfilled' },
    { status: 'fulfilled' },
    { reason: { status: 409, message: 'key_used', detail: { run_id: first!.id, same_body: true } } },
  ])
  expect(await readWallet(walletId)).toEqual({ available_micro: 80_000n, reserved_micro: 20_000n })
})

test('an admission that is repeated after a lost reply is answered and admits nothing twice, alone or in a batch', async () => {
  const walletId = await createWallet(100_000n)
  const [committed, fresh] = [newRun(walletId), newRun(walletId)]
  expect(await callSet(database.pool, 'admit_runs', [buildAdmission(committed!)])).toEqual([
    { ruling: null, holds: [] },
  ])
  const repeat = (runs: RunItem[]) =>
    callSet(
      database.pool,
      'admit_runs',
      runs.map((run) => buildAdmission(run)),
      true,
    )
  expect(await repeat([committed!])).toEqual([{ ruling: {}, holds: [] }])
  expect(await repeat([committed!, fresh!])).toEqual([
    { ruling: {}, holds: [] },
    { ruling: null, holds: [] },
  ])
  expect(await repeat([committed!, fresh!])).toEqual([
    { ruling: {}, holds: [] },
    { ruling: {}, holds: [] },
  ])
  expect(await readRuns([committed!, fresh!])).toHaveLength(2)
  expect(await readWallet(walletId)).toEqual({ available_micro: 80_000n, reserved_micro: 20_000n })
})

test.each(['completed', 'failed'] as const)(
  'an admission that is repeated after its run has %s opens no second run',
  async (state) => {
    const walletId = await createWallet(100_000n)
    const [ended, fresh] = [newRun(walletId), newRun(walletId)]
    await callSet(database.pool, 'admit_runs', [buildAdmission(ended!)])
    const end =
      state === 'completed'
        ? await callSet(database.pool, 'complete_runs', [buildCompletion(ended!, `ltx_${ended!.id}`)])
        : await callSet(database.pool, 'abandon_runs', [buildFailure(ended!)])
    expect(end).toEqual([{ first: true }])
    const available = state === 'completed' ? 90_000n : 100_000n
    // The same admission is told what it was told before, and another one is refused.
    const repeated = await callSet(database.pool, 'admit_runs', [buildAdmission(ended!)], true)
    expect(repeated).toEqual([{ ruling: {}, holds: [] }])
    const rival = await callSet(database.pool, 'admit_runs', [buildAdmission(ended!, { admission: 'adm_rival' })], true)
    expect(rival).toEqual(['run_exists'])
    expect(await readWallet(walletId)).toEqual({ available_micro: available, reserved_micro: 0n })
    const batch = [buildAdmission(ended!, { admission: 'adm_rival' }), buildAdmission(fresh!)]
    expect(await callSet(database.pool, 'admit_runs', batch, true)).toEqual(['run_exists', { ruling: null, holds: [] }])
    expect(await readRuns([ended!, fresh!])).toEqual([
      { id: ended!.id, state },
      { id: fresh!.id, state: 'executing' },
    ])
    expect(await readWallet(walletId)).toEqual({ available_micro: available - 10_000n, reserved_micro: 10_000n })
  },
)

test('runs completed at once: one update of the wallet, and a refused one undoes nothing but itself', async () => {
  const walletId = await createWallet(25_000n)
  const runs = Array.from({ length: 3 }, () => newRun(walletId))
  const items = runs.map((run) => buildCompletionAtOnce(run))
  expect(await callSet(database.pool, 'complete_at_once', items)).toEqual([{}, {}, 'wallet_balance'])
  expect(await readWallet(walletId)).toEqual({ available_micro: 5_000n, reserved_micro: 0n })
  expect(await readRuns(runs)).toEqual(runs.slice(0, 2).map(({ id }) => ({ id, state: 'completed' })))
  const key = { scope: 's', route: 'r', key: 'at once', body_hash: 'b', expires_at: '2100-01-01T00:00:00Z' }
  const cheap = [newRun(walletId, 1n), newRun(walletId, 1n)]
  const sameKey = cheap.map((run) => buildCompletionAtOnce(run, { keys: [key] }))
  expect(await callSet(database.pool, 'complete_at_once', sameKey)).toEqual([{}, 'key_used'])
  expect((await readWallet(walletId)).available_micro).toBe(4_999n)
})

test('a run completed at once whose reply was lost: repeated or admitted after it, it is charged once', async () => {
  const walletId = await createWallet(100_000n)
  const [committed, fresh] = [newRun(walletId), newRun(walletId)]
  const [item, other] = [committed!, fresh!].map((run) => buildCompletionAtOnce(run))
  expect(await callSet(database.pool, 'complete_at_once', [item])).toEqual([{}])
  expect(await callSet(database.pool, 'complete_at_once', [item], true)).toEqual([{}])
  expect(await callSet(database.pool, 'complete_at_once', [item, other], true)).toEqual([{}, {}])
  // The usual way, after an error that says nothing: it finds the run, and then its answer.
  expect(await callSet(database.pool, 'admit_runs', [buildAdmission(committed!)], true)).toEqual([
    { ruling: {}, holds: [] },
  ])
  expect(await callSet(database.pool, 'complete_runs', [buildCompletion(committed!, 'ltx_late')])).toEqual([
    { first: false },
  ])
  expect(await readWallet(walletId)).toEqual({ available_micro: 80_000n, reserved_micro: 0n })
})

test('a completion at once that arrives after its run was admitted changes nothing', async () => {
  const walletId = await createWallet(100_000n)
  const run = newRun(walletId)
  expect(await callSet(database.pool, 'admit_runs', [buildAdmission(run)], true)).toEqual([{ ruling: null, holds: [] }])
  expect(await callSet(database.pool, 'complete_at_once', [buildCompletionAtOnce(run)])).toEqual(['run_exists'])
  expect(await callSet(database.pool, 'complete_runs', [buildCompletion(run, `ltx_${run.id}`)])).toEqual([
    { first: true },
  ])
  expect(await callSet(database.pool, 'complete_at_once', [buildCompletionAtOnce(run)])).not.toEqual([{}])
  expect(await readWallet(walletId)).toEqual({ available_micro: 90_000n, reserved_micro: 0n })
})

test('a run is completed once: whoever comes later is told so and moves nothing', async () => {
  const walletId = await createWallet(100_000n)
  const runs = Array.from({ length: 5 }, () => newRun(walletId))
  await callSet(
    database.pool,
    'admit_runs',
    runs.map((run) => buildAdmission(run)),
  )
  const steps = createSteps(database.pool)
  const [complete, abandon] = [steps(completeRunsStep), steps(abandonRunsStep)]
  const completeAll = (attempt: number) =>
    Promise.all(runs.map((run) => complete(buildCompletion(run, `ltx_${run.id}_${attempt}`), [`run:${run.id}`])))
  const failAll = () => Promise.all(runs.map((run) => abandon(buildFailure(run), [`run:${run.id}`])))
  const answers = await Promise.all([completeAll(1), failAll(), completeAll(2)])
  // The requests and the reconciler race: for each run one of them is first.
  for (const [index] of runs.entries()) expect(answers.filter((answer) => answer[index]!.first)).toHaveLength(1)
  expect(await completeAll(3)).toEqual(runs.map(() => ({ first: false })))
  expect(await failAll()).toEqual(runs.map(() => ({ first: false })))
  const { rows } = await database.pool.query(
    `select count(*)::int as runs, count(distinct ref)::int as refs from ledger where ref = any($1)`,
    [runs.map(({ id }) => id)],
  )
  expect(rows).toEqual([{ runs: 5, refs: 5 }])
  const states = await readRuns(runs)
  const completed = BigInt(states.filter(({ state }) => state === 'completed').length)
  expect(await readWallet(walletId)).toEqual({ available_micro: 100_000n - completed * 10_000n, reserved_micro: 0n })
})

test('a run that was never admitted cannot be completed, abandoned or kept', async () => {
  const run = newRun(await createWallet(0n))
  expect(await callSet(database.pool, 'complete_runs', [buildCompletion(run, 'ltx_x')])).toEqual(['run_not_open'])
  expect(await callSet(database.pool, 'abandon_runs', [buildFailure(run)])).toEqual(['run_not_open'])
  const item = { run_id: run.id, admission: 'x', result: {}, next_attempt_at: '2026-01-01T00:00:00Z' }
  expect(await callSet(database.pool, 'keep_runs', [item])).toEqual(['run_taken_over'])
})

test('a run that another admission has taken over is not completed by the first one', async () => {
  const run = newRun(await createWallet(10_000n))
  await callSet(database.pool, 'admit_runs', [buildAdmission(run, { admission: 'adm_rival' })])
  const completion = buildCompletion(run, `ltx_${run.id}`)
  expect(await callSet(database.pool, 'complete_runs', [completion])).toEqual(['run_not_open'])
  const item = { run_id: run.id, admission: completion.admission, result: {}, next_attempt_at: '2026-01-01T00:00:00Z' }
  expect(await callSet(database.pool, 'keep_runs', [item])).toEqual(['run_taken_over'])
  expect(await readRuns([run])).toEqual([{ id: run.id, state: 'executing' }])
})
