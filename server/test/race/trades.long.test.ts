import { afterAll, beforeAll, expect, test } from 'vitest'
import { counterFaults, richTenant, run } from '../governance/world.ts'
import { createTestDatabase, spawnService, startService } from '../harness.ts'

/** One PostgreSQL and two server processes on it, one of them this process. */
let database: Awaited<ReturnType<typeof createTestDatabase>>
let local: Awaited<ReturnType<typeof startService>>
let other: Awaited<ReturnType<typeof spawnService>>
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }

beforeAll(async () => {
  database = await createTestDatabase()
  other = await spawnService({ ...secrets, DATABASE_URL: database.url })
  local = await startService({ databaseUrl: database.url, env: secrets })
}, 120_000)
afterAll(async () => {
  await other?.stop()
  await local?.close()
  await database?.drop()
})

const deadlocks = async () => {
  const query = 'select deadlocks from pg_stat_database where datname = current_database()'
  return Number((await local.service.database.pool.query(query)).rows[0].deadlocks)
}
const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).sort()
const node = (index: number) => (index % 2 === 0 ? local : other)
const spend = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy' }
type Answer = Awaited<ReturnType<typeof local.post>>

/** A 503 says that nothing was held; the request is sent again. */
async function sendUntilAnswered(send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await send()
    if (answer.status !== 503) return answer
  }
}

test('sixteen parallel spend trades on two processes never pass their budget', async () => {
  const { tenantId, headers } = await local.onboard()
  await local.post('/api/budgets', { budget_id: 'total', window: 'total', limit_usdc: 100 }, headers)
  const before = await deadlocks()
  for (let round = 0; round < 3; round += 1) {
    const trades = Array.from({ length: 16 }, (_, index) =>
      sendUntilAnswered(() =>
        node(index).post('/api/rh/run', { tenant_id: tenantId, ...spend, quantity: 15 }, headers),
      ),
    )
    const answers = await Promise.all(trades)
    const fitting = round === 0 ? 6 : 0
    expect(statuses(answers)).toEqual([...Array(fitting).fill(200), ...Array(16 - fitting).fill(422)])
    for (const { status, body } of answers) if (status === 422) expect(body.error).toBe('budget_exceeded')
  }
  const [budget] = (await local.get('/api/budgets', headers)).body.budgets
  expect([budget.spent_usdc, budget.reserved_usdc]).toEqual([90, 0])
  expect(await counterFaults(local)).toEqual([])
  expect(await deadlocks()).toBe(before)
})

test('parallel approvals on two processes hold no more than the budget, and the others keep waiting', async () => {
  const { tenantId, headers } = await local.onboard()
  const trade = { tenant_id: tenantId, ...spend, quantity: 1_500 }
  const pending = await Promise.all(
    Array.from({ length: 8 }, (_, index) => node(index).post('/api/rh/run', trade, headers)),
  )
  expect(statuses(pending)).toEqual(Array(8).fill(202))
  await local.post('/api/budgets', { budget_id: 'total', window: 'total', limit_usdc: 5_000 }, headers)
  const approvals = await Promise.all(
    pending.map(({ body }, index) =>
      sendUntilAnswered(() => node(index).post('/api/rh/approve', { run_id: body.run_id }, headers)),
    ),
  )
  expect(statuses(approvals)).toEqual([200, 200, 200, 409, 409, 409, 409, 409])
  const waiting = (await local.get('/api/rh/runs?status=pending_approval', headers)).body.runs
  expect(waiting).toHaveLength(5)
  expect(await counterFaults(local)).toEqual([])
})

test('runs, pre-authorisations and trades share one budget without passing it or locking each other out', async () => {
  const tenant = await richTenant(local, 100)
  const { tenantId, headers } = tenant
  await local.post('/api/budgets', { budget_id: 'all', window: 'total', limit_usdc: 0.2 }, headers)
  await local.post('/api/budgets', { budget_id: 'daily', window: 'day', limit_usdc: 0.3 }, headers)
  const before = await deadlocks()
  const preauth = { agent_id: 'fleet-7', amount_usdc: 0.01, merchant: { id: 'maps.example' } }
  const actions = Array.from({ length: 48 }, (_, index) => {
    const send = [
      () => run({ ...local, post: node(index).post }, tenant),
      () => node(index).post('/api/pre-auth', preauth, headers),
      () => node(index).post('/api/rh/run', { tenant_id: tenantId, ...spend, quantity: 0.01 }, headers),
    ][index % 3]!
    return sendUntilAnswered(send)
  })
  const answers = await Promise.all(actions)
  const allowed = answers.filter(({ status }) => status < 300).length
  // Which kinds get through, and whether all of one kind do, is up to the race.
  for (const { status, text } of answers) expect([200, 201, 422, 429], text).toContain(status)
  expect(allowed).toBeGreaterThan(0)
  expect(allowed).toBeLessThanOrEqual(20)
  const budgets = (await local.get('/api/budgets', headers)).body.budgets
  for (const budget of budgets) expect(budget.spent_usdc + budget.reserved_usdc).toBeLessThanOrEqual(0.2 + 1e-9)
  expect(await counterFaults(local)).toEqual([])
  expect(await deadlocks()).toBe(before)
})
