import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
 * A process that is thought dead and is not: it is stopped with SIGSTOP after a step, beyond the grace. Another takes its
 * run over and ends it; when the first goes on, its step finds the run taken, and nothing is charged twice.
 */
const settings = {
  SIGNING_KEY: 's'.repeat(40),
  ENCRYPTION_KEY: 'e'.repeat(40),
  ADMIN_KEY: 'a'.repeat(40),
  BACKGROUND_WORK: 'off',
  INSTANCE_BEAT_MS: '250',
  INSTANCE_GRACE_MS: '2500',
}
const PRICE = 10_000n
const FUNDS = 1_000_000n

let database: Awaited<ReturnType<typeof createTestDatabase>>
let front: TestService
beforeAll(async () => {
  database = await createTestDatabase()
  front = await startService({ databaseUrl: database.url, env: settings })
})
const children: ChildProcess[] = []
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await front?.close()
  await database?.drop()
})

type Stopping = Awaited<ReturnType<typeof spawnService>>

async function pay(payer: Payer, task: string) {
  const body = { task, agent_id: 'comedian-v1' }
  const challenge = readChallenge((await front.post('/api/run', body)).headers)
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
  return { body, payment: await signPayment(payer, challenge, { validBefore }) }
}

const isStopped = ({ child }: Stopping) => /\) T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))

const readRun = async (task: string) =>
  (await front.service.database.pool.query(`select id, state from runs where request->>'task' = $1`, [task])).rows[0] as
    | { id: string; state: string }
    | undefined

/** Starts a process that stops at the step, gives it a run, lets `front` end that run, and lets the process go on. */
async function stopAt(step: string, headers: Record<string, string> = {}) {
  const stopping = await spawnService({
    ...settings,
    DATABASE_URL: database.url,
    COUNTERSIGN_STOP_AT: step,
  })
  children.push(stopping.child)
  const payer = await front.payer(1)
  const task = `Stop at ${step} ${JSON.stringify(headers)}.`
  const { body, payment } = await pay(payer, task)
  const answer = stopping.post('/api/run', body, { ...payment, ...headers }).catch(() => undefined)
  await expect.poll(() => isStopped(stopping), { timeout: 60_000 }).toBe(true)
  const left = await readRun(task)
  await expect
    .poll(
      async () => {
        await front.service.reconciler.sweepOrphans()
        await front.service.reconciler.sweepSettlements()
        return (await readRun(task))?.state
      },
      { timeout: 60_000, interval: 250 },
    )
    .toMatch(/completed|failed/)
  expect(isStopped(stopping)).toBe(true)
  const charged = FUNDS - (await front.balance(payer.address))
  const stored = await front.post('/api/run', body, payment)
  stopping.child.kill('SIGCONT')
  const own = await answer
  // A stop waits for what the process still does.
  expect(await stopping.stop()).toBe(0)
  expect(FUNDS - (await front.balance(payer.address))).toBe(charged)
  expect((await front.post('/api/run', body, payment)).text).toBe(stored.text)
  const { body: receipts } = await front.get(`/api/receipts?run_id=${left!.id}`)
  return { left, charged, stored, own, receipts: receipts.receipts as { kind: string; charged: boolean }[] }
}

test('stopped after execute: the run ends without a charge, and the process that goes on answers just that', async () => {
  const { left, charged, stored, own, receipts } = await stopAt('execute')
  expect(left).toMatchObject({ state: 'executing' })
  expect(charged).toBe(0n)
  expect(stored.status).toBe(500)
  expect(own?.text).toBe(stored.text)
  expect(receipts).toMatchObject([{ kind: 'failure', charged: false }])
}, 180_000)

test('stopped after execute, an asynchronous run: another does it again and is paid once', async () => {
  const { left, charged, stored, receipts } = await stopAt('execute', { prefer: 'respond-async' })
  expect(left).toMatchObject({ state: 'executing' })
  expect(charged).toBe(PRICE)
  expect(stored).toMatchObject({ status: 200, body: { run_id: left!.id, settlement: { status: 'settled' } } })
  expect(receipts).toMatchObject([{ kind: 'run', charged: true }])
}, 180_000)

test('stopped after the result was stored: another settles the payment, and the process that goes on settles nothing', async () => {
  const { left, charged, stored, own, receipts } = await stopAt('keep')
  expect(left).toMatchObject({ state: 'settling' })
  expect(charged).toBe(PRICE)
  expect(stored.status, stored.text).toBe(200)
  expect(own?.text).toBe(stored.text)
  expect(receipts).toMatchObject([{ kind: 'run', charged: true }])
}, 180_000)
