import type { PrivateKeyAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService, startService } from '../harness.ts'
import { counterFaults, flakyLane, richTenant, run } from './world.ts'

/** Shared by every test here: one PostgreSQL, and three server processes on it, one of them this one. */
const PRICE = 10_000n
const lane = Object.assign(flakyLane(), { slowMs: 500 })
let database: Awaited<ReturnType<typeof createTestDatabase>>
let own: Awaited<ReturnType<typeof startService>>
let others: Awaited<ReturnType<typeof spawnService>>[]
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

beforeAll(async () => {
  database = await createTestDatabase()
  // The first owns the embedded chain; the load comes from here.
  const env = { ...secrets, DATABASE_URL: database.url }
  others = [await spawnService(env), await spawnService(env)]
  own = await startService({ databaseUrl: database.url, lane, env: secrets })
}, 120_000)
afterAll(async () => {
  for (const service of others ?? []) await service.stop()
  await own?.close()
  await database?.drop()
})

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((one) => [Math.random(), one] as const)
    .sort((a, b) => a[0] - b[0])
    .map(([, one]) => one)
const deadlocks = async (pool = own.service.database.pool) =>
  Number(
    (await pool.query('select deadlocks from pg_stat_database where datname = current_database()')).rows[0].deadlocks,
  )
const countOf = (answers: { status: number }[], status: number) => answers.filter((one) => one.status === status).length

/** «Send the same payment again» is what a 503 asks for, and it is safe. */
async function patiently(send: () => ReturnType<typeof own.post>): ReturnType<typeof own.post> {
  for (;;) {
    const answer = await send()
    if (answer.status !== 503) return answer
    await new Promise((wait) => setTimeout(wait, 200 + Math.random() * 300))
  }
}

test('a thousand paid runs race on three processes for a budget of a hundred: exactly a hundred win, and only they are charged', async () => {
  const tenant = await own.onboard()
  await own.post('/api/budgets', { budget_id: 'hundred', window: 'total', limit_usdc: 1 }, tenant.headers)
  const payers = await Promise.all(Array.from({ length: 10 }, () => own.payer(5)))
  const headersOf = (payment: Record<string, string>) => ({ ...tenant.headers, ...payment })
  const asks = Array.from({ length: 1_000 }, (_, index) => ({
    body: { task: `Joke number ${index}.`, agent_id: 'comedian-v1' },
    payer: payers[index % 10]! as PrivateKeyAccount,
  }))
  const ready: { body: unknown; payment: Record<string, string> }[] = []
  for (let start = 0; start < asks.length; start += 50) {
    const part = asks.slice(start, start + 50).map(async ({ body, payer }) => {
      const challenge = await own.post('/api/run', body, tenant.headers)
      expect(challenge.status, challenge.text).toBe(402)
      return { body, payment: await signPayment(payer, readChallenge(challenge.headers)) }
    })
    ready.push(...(await Promise.all(part)))
  }
  const before = await deadlocks()
  const nodes = [own, ...others]
  const answers = await Promise.all(
    shuffled(ready).map(({ body, payment }, index) =>
      patiently(() => nodes[index % 3]!.post('/api/run', body, headersOf(payment))),
    ),
  )

  expect(
    [countOf(answers, 200), countOf(answers, 429)],
    answers.find((one) => ![200, 429].includes(one.status))?.text,
  ).toEqual([100, 900])
  for (const { body } of answers.filter((one) => one.status === 429))
    expect(body).toMatchObject({ error: 'budget_exceeded', outcome: 'blocked' })
  const left = await Promise.all(payers.map((payer) => own.balance(payer.address)))
  expect(50_000_000n - left.reduce((sum, one) => sum + one)).toBe(100n * PRICE)
  const { body } = await others[0]!.get('/api/budgets', tenant.headers)
  expect(body.budgets).toMatchObject([{ spent_usdc: 1, reserved_usdc: 0, remaining_usdc: 0 }])
  expect(await counterFaults(own)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
  const rows = await own.db.selectFrom('runs').select(['outcome']).where('tenant_id', '=', tenant.tenantId).execute()
  expect([
    rows.filter((row) => row.outcome === 'completed').length,
    rows.filter((row) => row.outcome === 'blocked').length,
  ]).toEqual([100, 900])
})

test('what failed lanes gave back is spent by later runs, to the last one; limits of three kinds at once', async () => {
  const tenant = await richTenant(own)
  const budgets = [
    { budget_id: 'tenant', window: 'total', limit_usdc: 0.6 },
    { budget_id: 'agent', window: 'day', scope: { type: 'agent', id: 'comedian-v1' }, limit_usdc: 0.7 },
    { budget_id: 'session', window: 'month', scope: { type: 'session', id: 's' }, limit_usdc: 0.8 },
  ]
  for (const budget of budgets) expect((await own.post('/api/budgets', budget, tenant.headers)).status).toBe(200)
  await own.post('/api/policies', { constraints: { max_per_day_usdc: 0.9 } }, tenant.headers)
  const before = await deadlocks()
  const nodes = [own, ...others]
  const ask = (node: unknown) => run(node as typeof own, tenant, { task: `Joke ${Math.random()}`, session_id: 's' })

  lane.failing = true
  const doomed = Array.from({ length: 80 }, () => ask(own))
  // The others come once some of these hold their money and are about to fail.
  await vi.waitUntil(() => lane.failed > 0, 60_000)
  const first = await Promise.all([...doomed, ...Array.from({ length: 120 }, (_, index) => ask(nodes[index % 3]!))])
  lane.failing = false
  const [won, failed] = [countOf(first, 200), countOf(first, 500)]
  expect(won + failed + countOf(first, 429)).toBe(200)
  expect(failed).toBeGreaterThan(0)
  expect(won).toBeLessThanOrEqual(60)
  const second = await Promise.all(Array.from({ length: 200 }, (_, index) => ask(nodes[index % 3]!)))
  expect(won + countOf(second, 200)).toBe(60)
  const { body } = await own.get('/api/budgets', tenant.headers)
  expect(
    body.budgets.map((one: { spent_usdc: number; reserved_usdc: number }) => [one.spent_usdc, one.reserved_usdc]),
  ).toEqual([
    [0.6, 0],
    [0.6, 0],
    [0.6, 0],
  ])
  expect(await counterFaults(own)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
})

test('random amounts from sixty-four clients on three processes: held, closed and given back, never above the limit', async () => {
  const tenant = await richTenant(own)
  await own.post('/api/budgets', { budget_id: 'b', window: 'total', limit_usdc: 3 }, tenant.headers)
  const mandate = (
    await own.post(
      '/api/mandates',
      { name: 'm', constraints: [{ type: 'payment.budget', currency: 'USDC', max: 2 }] },
      tenant.headers,
    )
  ).body.id
  const before = await deadlocks()
  const nodes = [own, ...others]
  let charged = 0n
  const client = async (index: number) => {
    const node = nodes[index % 3]!
    for (let turn = 0; turn < 12; turn += 1) {
      const amount = BigInt(1 + Math.floor(Math.random() * 200_000))
      const body = {
        agent_id: `buyer-${index % 5}`,
        merchant: { id: 'shop' },
        amount: amount.toString(),
        ...(index % 2 === 0 && { mandate_id: mandate }),
      }
      const made = await node.post('/api/pre-auth', body, tenant.headers)
      expect([201, 422], made.text).toContain(made.status)
      if (made.status === 422) continue
      const actual = Math.random() < 0.5 ? 0n : BigInt(Math.floor(Number(amount) * Math.random()))
      const end = actual === 0n ? { outcome: 'voided' } : { outcome: 'settled', actual_amount: actual.toString() }
      const closed = await nodes[(index + turn) % 3]!.post(
        '/api/pre-auth/close',
        { preauth_id: made.body.preauth_id, ...end },
        tenant.headers,
      )
      expect(closed.status, closed.text).toBe(200)
      charged += actual
    }
  }
  await Promise.all(Array.from({ length: 64 }, (_, index) => client(index)))
  const { body } = await own.get('/api/budgets', tenant.headers)
  expect(BigInt(Math.round(body.budgets[0].spent_usdc * 1e6))).toBe(charged)
  expect(body.budgets[0].reserved_usdc).toBe(0)
  expect(charged).toBeLessThanOrEqual(3_000_000n)
  const remaining = await own.get(`/api/mandates/${mandate}/remaining`, tenant.headers)
  expect(Number(remaining.body.spent)).toBeLessThanOrEqual(2_000_000)
  expect(await counterFaults(own)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
})

test('on the embedded database the thousand race as well', async () => {
  const embedded = await startService({ env: { DATABASE_URL: '', DATABASE_POOL: '20' } })
  try {
    const tenant = await richTenant(embedded)
    await embedded.post('/api/budgets', { window: 'total', limit_usdc: 1 }, tenant.headers)
    const pool = embedded.service.database.pool
    const before = await deadlocks(pool)
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => run(embedded, tenant, { task: `Joke ${index}` })),
    )
    expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([100, 900])
    expect(await counterFaults(embedded)).toEqual([])
    expect((await deadlocks(pool)) - before).toBe(0)
  } finally {
    await embedded.close()
  }
})
