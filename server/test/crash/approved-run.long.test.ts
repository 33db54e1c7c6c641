import { afterAll, beforeAll, expect, test } from 'vitest'
import { counterFaults, richTenant, type Tenant } from '../governance/world.ts'
import { createTestDatabase, spawnService, startService, type TestService } from '../harness.ts'

/**
 * Approved runs that start by themselves, on several processes: the one that works on a run is killed after each step,
 * and callers send the approved request while two processes look for work.
 */
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }
const PRICE = 10_000n
const FUNDS = 1_000_000_000n

let database: Awaited<ReturnType<typeof createTestDatabase>>
/** Answers requests and does no background work. */
let front: TestService
beforeAll(async () => {
  database = await createTestDatabase()
  front = await startService({ databaseUrl: database.url, env: { ...secrets, BACKGROUND_WORK: 'off' } })
})
afterAll(async () => {
  await front?.close()
  await database?.drop()
})

const startWorker = (env: Record<string, string> = {}) =>
  spawnService({ ...secrets, DATABASE_URL: database.url, ...env })

async function reviewedTenant(): Promise<Tenant> {
  const tenant = await richTenant(front)
  await front.post(
    '/api/policies',
    { name: 'People first', rules: [{ field: 'amount_usdc', op: '>', value: 0, effect: 'review' }] },
    tenant.headers,
  )
  return tenant
}

type Approved = { approval_id: string; run_id: string; body: Record<string, unknown> }

async function askAndApprove(tenant: Tenant, task: string): Promise<Approved> {
  const body = { task, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
  const { body: refusal } = await front.post('/api/run', body, tenant.headers)
  const { approval_id, run_id } = refusal
  const { status, text } = await front.post('/api/approvals', { approval_id, decision: 'approve' }, tenant.headers)
  expect(status, text).toBe(200)
  return { approval_id, run_id, body }
}

const outcomeOf = async (tenant: Tenant, { run_id }: Approved) =>
  (await front.get(`/api/runs/${run_id}`, tenant.headers)).body.outcome
const walletOf = (tenant: Tenant) =>
  front.db
    .selectFrom('wallets')
    .select(['available_micro', 'reserved_micro'])
    .where('id', '=', tenant.walletId)
    .executeTakeFirstOrThrow()

for (const step of ['route', 'assess', 'check'])
  test(`killed after ${step}, before the run is admitted: the next process starts it once`, async () => {
    const tenant = await reviewedTenant()
    const dying = await startWorker({ COUNTERSIGN_CRASH_AT: step })
    const approved = await askAndApprove(tenant, `Killed after ${step}.`)
    expect(await dying.exited).toBe('SIGKILL')
    expect(await outcomeOf(tenant, approved)).toBe('approved')
    expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS, reserved_micro: 0n })
    const worker = await startWorker()
    // Until the lease of the dead process ends.
    await expect.poll(() => outcomeOf(tenant, approved), { timeout: 30_000, interval: 250 }).toBe('completed')
    expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS - PRICE, reserved_micro: 0n })
    await worker.stop()
  })

for (const step of ['admit', 'execute'])
  test(`killed after ${step}: the run ends without a charge, and its approval starts another when the caller asks`, async () => {
    const tenant = await reviewedTenant()
    const dying = await startWorker({ COUNTERSIGN_CRASH_AT: step })
    const approved = await askAndApprove(tenant, `Killed after ${step}.`)
    expect(await dying.exited).toBe('SIGKILL')
    expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS - PRICE, reserved_micro: PRICE })
    const worker = await startWorker()
    await expect.poll(() => outcomeOf(tenant, approved), { timeout: 30_000, interval: 250 }).toBe('failed')
    expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS, reserved_micro: 0n })
    const { approval_id, body } = approved
    const again = await front.post('/api/run', { ...body, approval_id }, tenant.headers)
    expect(again.status, again.text).toBe(200)
    expect(again.body.run_id).not.toBe(approved.run_id)
    expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS - PRICE, reserved_micro: 0n })
    await worker.stop()
  })

test('killed after complete: the answer is stored, and the same request gets it', async () => {
  const tenant = await reviewedTenant()
  const dying = await startWorker({ COUNTERSIGN_CRASH_AT: 'complete' })
  const { approval_id, run_id, body } = await askAndApprove(tenant, 'Killed after complete.')
  expect(await dying.exited).toBe('SIGKILL')
  const answer = await front.post('/api/run', { ...body, approval_id }, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body.run_id).toBe(run_id)
  expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS - PRICE, reserved_micro: 0n })
})

test('two processes look for work while callers send the approved requests: each run is admitted once', async () => {
  const tenant = await reviewedTenant()
  const workers = [await startWorker(), await startWorker()]
  const count = 30
  const requests = Array.from({ length: count }, async (_, index) => {
    const { approval_id, run_id, body } = await askAndApprove(tenant, `Joke number ${index}.`)
    // Every third is left to the service alone.
    const senders = index % 3 === 0 ? [] : [front, workers[0]!, workers[1]!]
    const answers = await Promise.all(
      senders.map((sender) => sender.post('/api/run', { ...body, approval_id }, tenant.headers)),
    )
    for (const answer of answers) {
      expect(answer.status, answer.text).toBe(200)
      expect(answer.body.run_id).toBe(run_id)
      expect(answer.text).toBe(answers[0]!.text)
    }
    return run_id
  })
  const runIds = await Promise.all(requests)
  await expect
    .poll(
      async () =>
        (await Promise.all(runIds.map((run_id) => outcomeOf(tenant, { run_id } as Approved)))).every(
          (outcome) => outcome === 'completed',
        ),
      { timeout: 30_000, interval: 500 },
    )
    .toBe(true)
  expect(await walletOf(tenant)).toEqual({ available_micro: FUNDS - BigInt(count) * PRICE, reserved_micro: 0n })
  const { rows } = await front.service.database.pool.query(
    `select count(*)::int as receipts, count(distinct run_id)::int as runs from receipts where tenant_id = $1 and kind = 'run'`,
    [tenant.tenantId],
  )
  expect(rows[0]).toEqual({ receipts: count, runs: count })
  expect(await counterFaults(front)).toEqual([])
  for (const worker of workers) await worker.stop()
}, 120_000)
