import { afterAll, beforeAll, expect, test } from 'vitest'
import { richTenant } from '../governance/world.ts'
import {
  createTestDatabase,
  type Payer,
  readChallenge,
  signPayment,
  spawnService,
  startService,
  type TestService,
} from '../harness.ts'

/**
 * Asynchronous runs whose process is killed after each step. A run without a stored result is taken over by another
 * process, once, and then ends without a charge; one with a stored result is settled once. `front` does background work
 * only when a test asks it to, so what a killed process left can be read before another goes on.
 */
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }
const ASYNC = { prefer: 'respond-async' }
const PRICE = 10_000n
const FUNDS = 1_000_000n

let database: Awaited<ReturnType<typeof createTestDatabase>>
let front: TestService
beforeAll(async () => {
  database = await createTestDatabase()
  front = await startService({ databaseUrl: database.url, env: { ...secrets, BACKGROUND_WORK: 'off' } })
})
afterAll(async () => {
  await front?.close()
  await database?.drop()
})

type Service = Awaited<ReturnType<typeof spawnService>>
const startWorker = (env: Record<string, string> = {}): Promise<Service> =>
  spawnService({ ...secrets, DATABASE_URL: database.url, ...env })

type GuestRun = { payer: Payer; payment: Record<string, string>; body: { task: string; agent_id: string } }

async function payFor(payer: Payer, task: string): Promise<GuestRun> {
  const body = { task, agent_id: 'comedian-v1' }
  const challenge = readChallenge((await front.post('/api/run', body)).headers)
  // Processes are started after the signature, which takes a while on a slow machine.
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
  return { payer, body, payment: await signPayment(payer, challenge, { validBefore }) }
}

/** Sends an asynchronous run to a process that is killed after this step; its 202 may be lost with it. */
async function crashAfter(step: string, task = `Say something slowly after ${step}.`): Promise<GuestRun> {
  const dying = await startWorker({ COUNTERSIGN_CRASH_AT: step })
  const run = await payFor(await front.payer(1), task)
  await dying.post('/api/run', run.body, { ...run.payment, ...ASYNC }).catch(() => undefined)
  expect(await dying.exited).toBe('SIGKILL')
  return run
}

const readRow = async ({ body }: Pick<GuestRun, 'body'>) =>
  (
    await front.service.database.pool.query(
      `select id, state, terms->'async'->>'takeovers' as takeovers from runs where request->>'task' = $1`,
      [body.task],
    )
  ).rows[0] as { id: string; state: string; takeovers: string } | undefined

const send = (run: GuestRun, headers: Record<string, string> = {}) =>
  front.post('/api/run', run.body, { ...run.payment, ...headers })

/** Does the background work of `front` until the run has ended. */
const untilEnded = (run: Pick<GuestRun, 'body'>) =>
  expect
    .poll(
      async () => {
        await front.service.reconciler.sweepOrphans()
        await front.service.reconciler.sweepSettlements()
        return (await readRow(run))?.state
      },
      { timeout: 30_000, interval: 250 },
    )
    .toMatch(/completed|failed/)

async function expectPaidOnce(run: GuestRun, runId: string | undefined) {
  const answer = await send(run)
  expect(answer.status, answer.text).toBe(200)
  expect(answer.body).toMatchObject({ run_id: runId, status: 'completed', settlement: { status: 'settled' } })
  expect((await send(run)).text).toBe(answer.text)
  expect(await front.balance(run.payer.address)).toBe(FUNDS - PRICE)
  const { body } = await front.get(`/api/receipts?run_id=${runId}`)
  expect(body.receipts).toMatchObject([{ kind: 'run', charged: true }])
}

test('killed after check: nothing happened, and the same payment starts the run', async () => {
  const run = await crashAfter('check')
  expect(await readRow(run)).toBeUndefined()
  const answer = await send(run, ASYNC)
  expect(answer.status, answer.text).toBe(202)
  await untilEnded(run)
  await expectPaidOnce(run, answer.body.run_id)
})

for (const step of ['admit', 'execute'])
  test(`killed after ${step}: the same payment gets 202, another process takes the run over and it is paid once`, async () => {
    const run = await crashAfter(step)
    const left = await readRow(run)
    expect(left).toMatchObject({ state: 'executing', takeovers: '0' })
    const pending = await send(run)
    expect(pending.status, pending.text).toBe(202)
    expect(pending.body.run_id).toBe(left!.id)
    expect(await front.balance(run.payer.address)).toBe(FUNDS)

    const events = fetch(`${front.url}/api/runs/${left!.id}/events`).then((response) => response.text())
    await untilEnded(run)
    expect(await events).toMatch(/"status":"completed"/)
    await expectPaidOnce(run, left!.id)
  })

test('a run that kills the process which takes it over, too, ends without a charge, with a signed word', async () => {
  const run = await crashAfter('execute', 'Kill one process after the other.')
  // It begins with what the first has left, and may not come so far as to listen.
  const second = startWorker({ COUNTERSIGN_CRASH_AT: 'execute' })
  await second.then(({ exited }) => exited).catch((error) => expect(String(error)).toContain('SIGKILL'))
  expect(await readRow(run)).toMatchObject({ state: 'executing', takeovers: '1' })
  await untilEnded(run)
  const answer = await send(run)
  expect(answer.status).toBe(500)
  expect(answer.body).toMatchObject({ charged: false, receipt: { kind: 'failure', charged: false } })
  expect(await front.balance(run.payer.address)).toBe(FUNDS)
})

for (const step of ['keep', 'mined', 'settle'])
  test(`killed after ${step}: it is too late to cancel, and the payment is settled once`, async () => {
    const run = await crashAfter(step)
    const left = await readRow(run)
    expect(left).toMatchObject({ state: 'settling' })
    const cancelled = await front.post(`/api/runs/${left!.id}/cancel`, undefined, run.payment)
    expect(cancelled.status, cancelled.text).toBe(409)
    expect(cancelled.body).toMatchObject({ run_id: left!.id, status: 'settling' })
    expect((await send(run)).status).toBe(202)
    await untilEnded(run)
    await expectPaidOnce(run, left!.id)
  })

test('killed after complete: the answer is stored', async () => {
  const run = await crashAfter('complete')
  const left = await readRow(run)
  expect(left).toMatchObject({ state: 'completed' })
  await expectPaidOnce(run, left!.id)
})

test('a wallet-paid run, killed after execute, is taken over and charged once', async () => {
  const tenant = await richTenant(front, 1)
  const dying = await startWorker({ COUNTERSIGN_CRASH_AT: 'execute' })
  const body = { task: 'From a wallet.', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
  const headers = { ...tenant.headers, 'idempotency-key': 'wallet-async', ...ASYNC }
  await dying.post('/api/run', body, headers).catch(() => undefined)
  expect(await dying.exited).toBe('SIGKILL')
  expect((await front.post('/api/run', body, headers)).status).toBe(202)
  await untilEnded({ body })
  expect((await front.post('/api/run', body, headers)).status).toBe(200)
  const { body: wallet } = await front.get(`/api/wallets/${tenant.walletId}`, tenant.headers)
  expect(wallet.balance).toMatchObject({ available: String(FUNDS - PRICE), reserved: '0' })
})

test('200 at once while a process is killed: whoever was charged has a result, and nobody else was charged', async () => {
  const payers = await Promise.all(Array.from({ length: 20 }, () => front.payer(1)))
  const runs = await Promise.all(
    Array.from({ length: 200 }, (_, index) => payFor(payers[index % 20]!, `Joke number ${index}.`)),
  )
  const [dying, worker] = [await startWorker(), await startWorker()]
  const answers = await Promise.all(
    runs.map(async (run, index) => {
      if (index === 150) dying.child.kill('SIGKILL')
      const process = index % 2 === 0 ? dying : worker
      return process.post('/api/run', run.body, { ...run.payment, ...ASYNC }).catch(() => undefined)
    }),
  )
  expect(answers.filter((answer) => answer?.status === 202).length).toBeGreaterThan(50)
  expect(await dying.exited).toBe('SIGKILL')
  // Whoever got no answer sends the same payment again.
  await Promise.all(
    runs.map((run) =>
      expect
        .poll(async () => (await worker.post('/api/run', run.body, { ...run.payment, ...ASYNC })).status, {
          timeout: 60_000,
          interval: 500,
        })
        .toBeOneOf([200, 500]),
    ),
  )
  const finals = await Promise.all(runs.map((run) => worker.post('/api/run', run.body, run.payment)))
  const completed = finals.filter(({ status }) => status === 200)
  for (const { body } of completed) expect(body).toMatchObject({ status: 'completed', output: expect.any(String) })
  for (const { body } of finals.filter(({ status }) => status !== 200)) expect(body.charged).toBe(false)
  expect(new Set(finals.map(({ body }) => body.run_id)).size).toBe(200)
  expect(completed.length).toBeGreaterThan(190)
  const balances = await Promise.all(payers.map(({ address }) => front.balance(address)))
  const paid = balances.reduce((sum, balance) => sum + FUNDS - balance, 0n)
  expect(paid).toBe(BigInt(completed.length) * PRICE)
  const { rows } = await front.service.database.pool.query('select count(*)::int as open from open_runs')
  expect(rows[0].open).toBe(0)
  expect(await worker.stop()).toBe(0)
}, 180_000)
