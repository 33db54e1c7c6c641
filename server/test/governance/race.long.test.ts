import type { PrivateKeyAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, readChallenge, signPayment, spawnService, startService } from '../harness.ts'
import { counterFaults, flakyLane, richTenant, run } from './world.ts'

/** All tests share one PostgreSQL and three server processes on it, one of them this process. */
const PRICE = 10_000n
const lane = Object.assign(flakyLane(), { slowMs: 500 })
let database: Awaited<ReturnType<typeof createTestDatabase>>
let local: Awaited<ReturnType<typeof startService>>
let otherProcesses: Awaited<ReturnType<typeof spawnService>>[]
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

beforeAll(async () => {
  database = await createTestDatabase()
  // The first process owns the embedded chain; the load comes from this process.
  const env = { ...secrets, DATABASE_URL: database.url }
  otherProcesses = [await spawnService(env), await spawnService(env)]
  local = await startService({ databaseUrl: database.url, lane, env: secrets })
}, 120_000)
afterAll(async () => {
  for (const service of otherProcesses ?? []) await service.stop()
  await local?.close()
  await database?.drop()
})

const shuffle = <T>(list: readonly T[]): T[] =>
  list
    .map((item) => [Math.random(), item] as const)
    .sort((a, b) => a[0] - b[0])
    .map(([, item]) => item)
const deadlocks = async (pool = local.service.database.pool) =>
  Number(
    (await pool.query('select deadlocks from pg_stat_database where datname = current_database()')).rows[0].deadlocks,
  )
const countStatus = (answers: { status: number }[], status: number) =>
  answers.filter((answer) => answer.status === status).length

/** After a 503 the same payment is sent again, which is safe. */
async function sendUntilAnswered(send: () => ReturnType<typeof local.post>): ReturnType<typeof local.post> {
  for (;;) {
    const answer = await send()
    if (answer.status !== 503) return answer
    await new Promise((resolve) => setTimeout(resolve, 200 + Math.random() * 300))
  }
}

test('of a thousand concurrent paid runs on three processes exactly the hundred that fit the budget are charged', async () => {
  const tenant = await local.onboard()
  await local.post('/api/budgets', { budget_id: 'hundred', window: 'total', limit_usdc: 1 }, tenant.headers)
  const payers = await Promise.all(Array.from({ length: 10 }, () => local.payer(5)))
  const headersOf = (payment: Record<string, string>) => ({ ...tenant.headers, ...payment })
  const requests = Array.from({ length: 1_000 }, (_, index) => ({
    body: { task: `Joke number ${index}.`, agent_id: 'comedian-v1' },
    payer: payers[index % 10]! as PrivateKeyAccount,
  }))
  const paidRequests: { body: unknown; payment: Record<string, string> }[] = []
  // A thousand signatures and runs take minutes on a slow machine.
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + 3_000)
  for (let start = 0; start < requests.length; start += 50) {
    const part = requests.slice(start, start + 50).map(async ({ body, payer }) => {
      const challenge = await local.post('/api/run', body, tenant.headers)
      expect(challenge.status, challenge.text).toBe(402)
      return { body, payment: await signPayment(payer, readChallenge(challenge.headers), { validBefore }) }
    })
    paidRequests.push(...(await Promise.all(part)))
  }
  const before = await deadlocks()
  const nodes = [local, ...otherProcesses]
  const answers = await Promise.all(
    shuffle(paidRequests).map(({ body, payment }, index) =>
      sendUntilAnswered(() => nodes[index % 3]!.post('/api/run', body, headersOf(payment))),
    ),
  )

  expect(
    [countStatus(answers, 200), countStatus(answers, 429)],
    answers.find((answer) => ![200, 429].includes(answer.status))?.text,
  ).toEqual([100, 900])
  for (const { body } of answers.filter((answer) => answer.status === 429))
    expect(body).toMatchObject({ error: 'budget_exceeded', outcome: 'blocked' })
  const balances = await Promise.all(payers.map((payer) => local.balance(payer.address)))
  expect(50_000_000n - balances.reduce((sum, balance) => sum + balance)).toBe(100n * PRICE)
  const { body } = await otherProcesses[0]!.get('/api/budgets', tenant.headers)
  expect(body.budgets).toMatchObject([{ spent_usdc: 1, reserved_usdc: 0, remaining_usdc: 0 }])
  expect(await counterFaults(local)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
  const rows = await local.db.selectFrom('runs').select(['outcome']).where('tenant_id', '=', tenant.tenantId).execute()
  expect([
    rows.filter((row) => row.outcome === 'completed').length,
    rows.filter((row) => row.outcome === 'blocked').length,
  ]).toEqual([100, 900])
})

test('amounts released by failed runs can be spent by later runs, under three kinds of limits at once', async () => {
  const tenant = await richTenant(local)
  const budgets = [
    { budget_id: 'tenant', window: 'total', limit_usdc: 0.6 },
    // Not of a day: the test may run at midnight.
    { budget_id: 'agent', window: 'week', scope: { type: 'agent', id: 'comedian-v1' }, limit_usdc: 0.7 },
    { budget_id: 'session', window: 'month', scope: { type: 'session', id: 's' }, limit_usdc: 0.8 },
  ]
  for (const budget of budgets) expect((await local.post('/api/budgets', budget, tenant.headers)).status).toBe(200)
  await local.post('/api/policies', { constraints: { max_per_day_usdc: 0.9 } }, tenant.headers)
  const before = await deadlocks()
  const nodes = [local, ...otherProcesses]
  const sendRun = (node: unknown) =>
    run(node as typeof local, tenant, { task: `Joke ${Math.random()}`, session_id: 's' })

  lane.failing = true
  const failingRuns = Array.from({ length: 80 }, () => sendRun(local))
  // The other runs start once some of these hold money and are about to fail.
  await vi.waitUntil(() => lane.failed > 0, 60_000)
  const first = await Promise.all([
    ...failingRuns,
    ...Array.from({ length: 120 }, (_, index) => sendRun(nodes[index % 3]!)),
  ])
  lane.failing = false
  const [completedCount, failedCount] = [countStatus(first, 200), countStatus(first, 500)]
  expect(completedCount + failedCount + countStatus(first, 429)).toBe(200)
  expect(failedCount).toBeGreaterThan(0)
  expect(completedCount).toBeLessThanOrEqual(60)
  const second = await Promise.all(Array.from({ length: 200 }, (_, index) => sendRun(nodes[index % 3]!)))
  expect(completedCount + countStatus(second, 200)).toBe(60)
  const { body } = await local.get('/api/budgets', tenant.headers)
  expect(
    body.budgets.map(({ spent_usdc, reserved_usdc }: { spent_usdc: number; reserved_usdc: number }) => [
      spent_usdc,
      reserved_usdc,
    ]),
  ).toEqual([
    [0.6, 0],
    [0.6, 0],
    [0.6, 0],
  ])
  expect(await counterFaults(local)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
})

test('sixty-four concurrent clients on three processes never exceed the limit, and every hold is settled or released', async () => {
  const tenant = await richTenant(local)
  await local.post('/api/budgets', { budget_id: 'b', window: 'total', limit_usdc: 3 }, tenant.headers)
  const mandate = (
    await local.post(
      '/api/mandates',
      { name: 'm', constraints: [{ type: 'payment.budget', currency: 'USDC', max: 2 }] },
      tenant.headers,
    )
  ).body.id
  const before = await deadlocks()
  const nodes = [local, ...otherProcesses]
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
      const createResponse = await node.post('/api/pre-auth', body, tenant.headers)
      expect([201, 422], createResponse.text).toContain(createResponse.status)
      if (createResponse.status === 422) continue
      const chargedMicro = Math.random() < 0.5 ? 0n : BigInt(Math.floor(Number(amount) * Math.random()))
      const report =
        chargedMicro === 0n ? { outcome: 'voided' } : { outcome: 'settled', actual_amount: chargedMicro.toString() }
      const closeResponse = await nodes[(index + turn) % 3]!.post(
        '/api/pre-auth/close',
        { preauth_id: createResponse.body.preauth_id, ...report },
        tenant.headers,
      )
      expect(closeResponse.status, closeResponse.text).toBe(200)
      charged += chargedMicro
    }
  }
  await Promise.all(Array.from({ length: 64 }, (_, index) => client(index)))
  const { body } = await local.get('/api/budgets', tenant.headers)
  expect(BigInt(Math.round(body.budgets[0].spent_usdc * 1e6))).toBe(charged)
  expect(body.budgets[0].reserved_usdc).toBe(0)
  expect(charged).toBeLessThanOrEqual(3_000_000n)
  const remainingResponse = await local.get(`/api/mandates/${mandate}/remaining`, tenant.headers)
  expect(Number(remainingResponse.body.spent)).toBeLessThanOrEqual(2_000_000)
  expect(await counterFaults(local)).toEqual([])
  expect((await deadlocks()) - before).toBe(0)
})

test('on the embedded database exactly a hundred of a thousand concurrent runs fit the budget', async () => {
  const embedded = await startService({ env: { DATABASE_URL: '', DATABASE_POOL: '20' } })
  try {
    const tenant = await richTenant(embedded)
    await embedded.post('/api/budgets', { window: 'total', limit_usdc: 1 }, tenant.headers)
    const pool = embedded.service.database.pool
    const before = await deadlocks(pool)
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => run(embedded, tenant, { task: `Joke ${index}` })),
    )
    expect([countStatus(answers, 200), countStatus(answers, 429)]).toEqual([100, 900])
    expect(await counterFaults(embedded)).toEqual([])
    expect((await deadlocks(pool)) - before).toBe(0)
  } finally {
    await embedded.close()
  }
})
