import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { areFundsMoving } from '../../src/modules/runs/payment-method.ts'
import {
  createTestDatabase,
  type Payer,
  readChallenge,
  signPayment,
  startService,
  type TestService,
} from '../harness.ts'

/** Two processes on one database, whose lanes count and delay their work. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let services: TestService[]
const executed = new Set<string>()
let delay: () => number = () => 0

beforeAll(async () => {
  database = await createTestDatabase()
  const offline = createOfflineLane()
  const lane: Lane = {
    ...offline,
    execute: async (task) => {
      executed.add(task.runId)
      await sleep(delay())
      return offline.execute(task)
    },
  }
  const env = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), BACKGROUND_WORK: 'off' }
  const first = await startService({ databaseUrl: database.url, lane, env })
  const second = await startService({ databaseUrl: database.url, lane, env })
  services = [first, second]
}, 120_000)

afterAll(async () => {
  for (const service of services?.toReversed() ?? []) await service.close()
  await database?.drop()
})

const body = { task: 'Greet the new customer by name.', agent_id: 'support-v1' }

/** Payments for this many runs, all valid at this moment. */
async function signPayments(payer: Payer, count: number) {
  const challenge = readChallenge((await services[0]!.post('/api/run', body)).headers)
  return Promise.all(Array.from({ length: count }, () => signPayment(payer, challenge)))
}

const sendAll = (payments: Record<string, string>[]) =>
  Promise.all(payments.map((payment, index) => services[index % 2]!.post('/api/run', body, payment)))

const statusesOf = (answers: { status: number }[]) => {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

test('a payer with the money of 5 runs gets 5 of 60 sent at once to two processes, and no work is done for nothing', async () => {
  // Longer than it takes to check all sixty on a busy machine, so that some are refused while the five are in flight.
  delay = () => 2_000
  executed.clear()
  const payer = await services[0]!.payer(0.055)
  const payments = await signPayments(payer, 60)
  const answers = await sendAll(payments)
  expect(statusesOf(answers)).toEqual({ 200: 5, 402: 55 })
  expect(executed.size).toBe(5)
  expect(await services[0]!.balance(payer.address)).toBe(0n)

  const refused = answers.filter(({ status }) => status === 402)
  const reasons = new Set(refused.map((answer) => answer.body.reason))
  expect([...reasons]).toEqual(['invalid_exact_evm_insufficient_balance'])
  expect(refused.some((answer) => /in flight/.test(answer.body.message))).toBe(true)
  expect(refused.every((answer) => answer.headers.get('payment-required') !== null)).toBe(true)
  const rows = await sql<{ nonces: number; runs: number }>`
    select (select count(*)::int from nonces where payer = ${payer.address.toLowerCase()}) as nonces,
           (select count(*)::int from runs where payer = ${payer.address.toLowerCase()}) as runs`.execute(
    services[0]!.db,
  )
  expect(rows.rows[0]).toEqual({ nonces: 5, runs: 5 })

  // A refused payment was not used: with money, it pays.
  await services[0]!.post('/api/dev/faucet', { address: payer.address, amount_usdc: 0.011 })
  const index = answers.findIndex(({ status }) => status === 402)
  expect((await services[1]!.post('/api/run', body, payments[index])).status).toBe(200)
}, 120_000)

test('a payer with exactly the money of 12 runs gets all 12, while some settle and others begin', async () => {
  delay = () => Math.random() * 120
  const payer = await services[0]!.payer(0.132)
  const payments = await signPayments(payer, 12)
  const answers = await Promise.all(
    payments.map(async (payment, index) => {
      await sleep(index * 20)
      return services[index % 2]!.post('/api/run', body, payment)
    }),
  )
  expect(statusesOf(answers)).toEqual({ 200: 12 })
  expect(await services[0]!.balance(payer.address)).toBe(0n)
}, 120_000)

test('a run that ends while a refused one asks whether the balance is moving is noticed', async () => {
  const payer = '0x00000000000000000000000000000000000000aa'
  const { db } = services[0]!
  await sql`insert into open_runs (id, kind, tenant_id, payer, agent_id, session_id, loop_id, action, state, outcome, request_hash, request, terms, price_micro,
      admission, created_at, deadline_at, accounts, amounts, payment, payment_state, next_attempt_at, updated_at)
    values ('run_moving', 'run', null, ${payer}, 'support-v1', 'ses_1', 'loop_1', 'run', 'settling', 'pending', 'h', '{}', '{}', 11000,
      'adm_1', now(), now(), '{}', '{}', '{}', 'pending', now(), now())`.execute(db)
  let settledMicro = 0n
  const endRun = async () => {
    await sql`delete from open_runs where id = 'run_moving'`.execute(db)
    settledMicro = 11_000n
  }
  const readSettledMicro = async () => settledMicro
  // The run ends just after the answer to whichever question was asked first.
  const thenEnds = async (answer: Promise<bigint>) => answer.finally(endRun)
  const funds = { settledMicro: 0n, balanceMicro: 11_000n }
  expect(await areFundsMoving({ db, readSettledMicro: () => thenEnds(readSettledMicro()) }, payer, funds)).toBe(true)
  await endRun()
  expect(await areFundsMoving({ db, readSettledMicro }, payer, funds)).toBe(true)
  expect(await areFundsMoving({ db, readSettledMicro }, payer, { ...funds, settledMicro: 11_000n })).toBe(false)
})

test('money that is settled after the balance was read is not counted as there', async () => {
  delay = () => 0
  const payer = await services[0]!.payer(0.022)
  const [first, second, third] = await signPayments(payer, 3)
  expect((await services[0]!.post('/api/run', body, first)).status).toBe(200)
  const hold = (settledMicro: bigint, balanceMicro: bigint) => ({
    scope: `exposure:${payer.address.toLowerCase()}`,
    period: 'open',
    amount_micro: '11000',
    on_success: 'spend',
    measure: 'money',
    limit_micro: (settledMicro + balanceMicro).toString(),
    settled_micro: settledMicro.toString(),
    open_limit_micro: '100000000',
  })
  const admit = async (demand: object) => {
    const demands = sql`array[${JSON.stringify([demand])}::jsonb]`
    await sql`select hold_limits(${demands}, now())`.execute(services[0]!.db)
  }
  // Read before the first run settled: nothing settled, and both prices in the balance.
  expect((await services[0]!.post('/api/run', body, second)).status).toBe(200)
  await expect(admit(hold(0n, 22_000n))).rejects.toThrow('payer_funds')
  await expect(admit(hold(11_000n, 11_000n))).rejects.toThrow('payer_funds')
  // The counter was deleted since it was read: what it had counted is unknown.
  await expect(admit(hold(33_000n, 22_000n))).rejects.toThrow('payer_funds')
  const answer = await services[0]!.post('/api/run', body, third)
  expect([answer.status, answer.body.reason]).toEqual([402, 'invalid_exact_evm_insufficient_balance'])
})
