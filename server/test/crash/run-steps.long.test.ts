import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startEmbeddedPostgres } from '../../src/adapters/postgres/embedded.ts'
import { runSteps } from '../../src/modules/runs/paid-unit.ts'
import { readAnswerBody } from '../../src/modules/runs/runs.store.ts'
import { openDatabase } from '../../src/platform/db.ts'
import { readChallenge, signPayment, silent, spawnService } from '../harness.ts'

/**
 * Kills the process with SIGKILL after each step of a paid run, on the embedded database with fsync on. For every step it
 * checks what the killed process left in the database, and the outcome that the table "A paid run" in ARCHITECTURE.md
 * names for that step, by response, chain, ledger, settlement and receipt.
 */
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-crash-'))
const PRICE_MICRO = 10_000n
const FUNDS_MICRO = 1_000_000n

let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>
let database: ReturnType<typeof openDatabase>
beforeAll(async () => {
  postgres = await startEmbeddedPostgres({ dataDir, log: silent })
  database = openDatabase(postgres.connection, { max: 1, log: silent })
})
afterAll(async () => {
  await database.close()
  await postgres.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

type Service = Awaited<ReturnType<typeof spawnService>>
const startService = () => spawnService({ COUNTERSIGN_DATA_DIR: dataDir })

const bodyFor = (step: string) => ({ task: `Say something after ${step}.`, agent_id: 'comedian-v1' })

/** Starts a service that dies after this step, and makes it die there. Returns the payer and a signed payment. */
async function crashAfter(step: string, options: { unpaid?: boolean } = {}) {
  const service = await spawnService({ COUNTERSIGN_DATA_DIR: dataDir, COUNTERSIGN_CRASH_AT: step })
  const payer = await service.payer(1)
  const body = bodyFor(step)
  const challenge = options.unpaid ? undefined : readChallenge((await service.post('/api/run', body)).headers)
  const payment = challenge && (await signPayment(payer, challenge))
  await expect(service.post('/api/run', body, payment)).rejects.toThrow()
  expect(await service.exited).toBe('SIGKILL')
  return { payer, body, payment }
}

type StoredAnswer = Parameters<typeof readAnswerBody>[1]
type RunState = { run: string; settlement: string; reason: string | null; transaction: string | null }

/** The run for this body, its settlement and its ledger amounts; undefined when nothing was written. */
async function readRun(body: { task: string }) {
  const { rows } = await database.pool.query<RunState & StoredAnswer & { id: string }>(
    `select run.id, run.state as run, run.answer_body, run.answer, run.answer_receipt_at, run.receipt_id,
       settlement.state as settlement, settlement.reason, settlement.transaction
     from runs run join settlements settlement on settlement.run_id = run.id where run.request->>'task' = $1`,
    [body.task],
  )
  expect(rows.length).toBeLessThanOrEqual(1)
  const row = rows[0]
  return row && { ...row, answer: await readAnswerBody(database.db, row), ledger: await readLedger(row.id) }
}

/** The ledger entries of one run at the service's address: pending while the run is open, posted once it is paid. */
async function readLedger(runId: string): Promise<{ pending: bigint; posted: bigint }> {
  const { rows } = await database.pool.query(
    `select coalesce(sum(amount_micro) filter (where status = 'pending'), 0)::bigint as pending,
       coalesce(sum(amount_micro) filter (where status = 'posted'), 0)::bigint as posted
     from ledger_entries where account = 'assets:chain:usdc' and ref = $1`,
    [runId],
  )
  return rows[0]
}

/** The run as the reconciler of the restarted service ended it, before any client asks for it. */
async function waitUntilEnded(body: { task: string }) {
  await expect.poll(async () => (await readRun(body))?.run, { timeout: 60_000 }).toMatch(/^(completed|failed)$/)
  return (await readRun(body))!
}

/** The same payment gets the stored response, byte for byte, every time. */
async function expectReplay(service: Service, body: { task: string }, payment: Record<string, string>, status: number) {
  const first = await service.post('/api/run', body, payment)
  const second = await service.post('/api/run', body, payment)
  expect(first.status, first.text).toBe(status)
  expect(first.headers.get('idempotent-replayed')).toBe('true')
  expect(second.text).toBe(first.text)
  expect(first.text).toBe((await readRun(body))!.answer)
  return first.body
}

async function expectPaid(service: Service, body: { task: string }, address: string, response: PaidResponse) {
  expect(await service.balance(address)).toBe(FUNDS_MICRO - PRICE_MICRO)
  const run = await readRun(body)
  expect(run).toMatchObject({ id: response.run_id, run: 'completed', settlement: 'settled' })
  expect(run!.ledger).toEqual({ pending: 0n, posted: PRICE_MICRO })
  expect(run!.transaction).toBe(response.settlement.transaction)
  const receipts = await service.get(`/api/receipts?run_id=${response.run_id}`)
  expect(receipts.body.receipts).toMatchObject([
    { kind: 'run', charged: true, settlement: { transaction: response.settlement.transaction } },
  ])
}
type PaidResponse = { run_id: string; settlement: { transaction: string } }

const outcomes = {
  nothingHappened: ['route', 'assess'],
  paymentStillGood: ['check'],
  givenUp: ['admit', 'execute'],
  settledByReconciler: ['keep', 'mined', 'settle'],
  responseStored: ['complete'],
}

test('the tests below cover every step of a run', () => {
  expect(Object.values(outcomes).flat().sort()).toEqual([...runSteps, 'mined'].sort())
})

for (const step of outcomes.nothingHappened) {
  test(`killed after ${step}: nothing happened`, async () => {
    // These steps come before the 402, so the process dies in the unpaid request.
    const { payer, body } = await crashAfter(step, { unpaid: true })
    expect(await readRun(body)).toBeUndefined()
    const service = await startService()
    const payment = await signPayment(payer, readChallenge((await service.post('/api/run', body)).headers))
    const response = await service.post('/api/run', body, payment)
    expect(response.status, response.text).toBe(200)
    await expectPaid(service, body, payer.address, response.body)
    expect(await service.stop()).toBe(0)
  })
}

test('killed after check: nothing happened, and the payment can still be used', async () => {
  const { payer, body, payment } = await crashAfter('check')
  expect(await readRun(body)).toBeUndefined()
  const service = await startService()
  expect(await service.balance(payer.address)).toBe(FUNDS_MICRO)
  const response = await service.post('/api/run', body, payment)
  expect(response.status, response.text).toBe(200)
  expect(response.headers.get('idempotent-replayed')).toBeNull()
  await expectPaid(service, body, payer.address, response.body)
  expect(await service.stop()).toBe(0)
})

for (const step of outcomes.givenUp) {
  test(`killed after ${step}: the run is abandoned and not charged`, async () => {
    const { payer, body, payment } = await crashAfter(step)
    const leftover = await readRun(body)
    expect(leftover).toMatchObject({ run: 'executing', settlement: 'pending', answer: null })
    expect(leftover!.ledger).toEqual({ pending: PRICE_MICRO, posted: 0n })

    const service = await startService()
    const ended = await waitUntilEnded(body)
    expect(ended).toMatchObject({ run: 'failed', settlement: 'failed', reason: 'interrupted', transaction: null })
    expect(ended.ledger).toEqual({ pending: 0n, posted: 0n })
    const response = await expectReplay(service, body, payment!, 500)
    expect(response).toMatchObject({ run_id: leftover!.id, status: 'failed', stage: 'execute', charged: false })
    expect(await service.balance(payer.address)).toBe(FUNDS_MICRO)
    const receipts = await service.get(`/api/receipts?run_id=${leftover!.id}`)
    expect(receipts.body.receipts).toMatchObject([{ kind: 'failure', charged: false }])
    expect(await service.stop()).toBe(0)
  })
}

// After `keep` the authorisation is unused and the reconciler sends it; after `mined` and `settle` the chain already has
// it. All three must end in one payment. (`mined` is after mining and before the process has read the result.)
for (const step of outcomes.settledByReconciler) {
  test(`killed after ${step}: the reconciler settles the payment once and stores the response`, async () => {
    const { payer, body, payment } = await crashAfter(step)
    const leftover = await readRun(body)
    expect(leftover).toMatchObject({ run: 'settling', settlement: 'pending', answer: null, transaction: null })
    expect(leftover!.ledger).toEqual({ pending: PRICE_MICRO, posted: 0n })

    const service = await startService()
    expect(await waitUntilEnded(body)).toMatchObject({ id: leftover!.id, run: 'completed', settlement: 'settled' })
    const response = await expectReplay(service, body, payment!, 200)
    await expectPaid(service, body, payer.address, response)
    expect(await service.stop()).toBe(0)
  })
}

test('killed after complete: the response is already stored and the same payment gets it', async () => {
  const { payer, body, payment } = await crashAfter('complete')
  const leftover = await readRun(body)
  expect(leftover).toMatchObject({ run: 'completed', settlement: 'settled', answer: expect.any(String) })

  const service = await startService()
  const response = await expectReplay(service, body, payment!, 200)
  expect(response).toEqual(JSON.parse(leftover!.answer!))
  await expectPaid(service, body, payer.address, response)
  expect(await service.stop()).toBe(0)
})

test('after all crashes chain, ledger, settlements, runs and receipts agree', async () => {
  const service = await startService()
  const value = async (text: string) => Object.values((await database.pool.query(text)).rows[0])[0]
  const payee = String(await value('select pay_to from settlements limit 1'))
  // Nine crashes: seven runs ended paid, two were abandoned.
  const paidMicro = 7n * PRICE_MICRO
  expect(await service.balance(payee)).toBe(paidMicro)
  expect(await value(`select sum(amount_micro)::bigint from settlements where state = 'settled'`)).toBe(paidMicro)
  expect(
    await value(
      `select sum(amount_micro)::bigint from ledger_entries where account = 'assets:chain:usdc' and status = 'posted'`,
    ),
  ).toBe(paidMicro)
  expect(await value(`select count(*) from ledger_entries where status = 'pending'`)).toBe(0n)
  expect(await value('select count(*) from open_runs')).toBe(0n)
  expect(await value(`select sum(amount_micro)::bigint from ledger_entries`)).toBe(0n)
  expect(await value(`select count(*) from runs where state = 'completed'`)).toBe(7n)
  expect(await value(`select count(*) from runs where state = 'failed'`)).toBe(2n)
  expect(await value(`select count(*) from runs`)).toBe(9n)
  expect(await value(`select count(*) from receipts where kind = 'run'`)).toBe(7n)
  expect(await value(`select count(*) from receipts where kind = 'failure'`)).toBe(2n)
  expect(await value(`select coalesce(sum(reserved_micro), 0)::bigint from limits`)).toBe(0n)
  expect(await value(`select count(*) from open_holds`)).toBe(0n)
  expect(await service.stop()).toBe(0)
})
