import { afterAll, beforeAll, expect, test } from 'vitest'
import { richTenant, type Tenant } from '../governance/world.ts'
import { createTestDatabase, spawnService, startService, type TestService } from '../harness.ts'

/**
 * Runs that are done before they are written down, on two processes: the one that works is killed after each step, and
 * while it has many under way. Until the one transaction commits nothing has happened; after it everything has.
 */
const secrets = { SIGNING_KEY: 's'.repeat(40), ENCRYPTION_KEY: 'e'.repeat(40), ADMIN_KEY: 'a'.repeat(40) }
const PRICE = 10_000n
const FUNDS = 1_000_000_000n

let database: Awaited<ReturnType<typeof createTestDatabase>>
let front: TestService
beforeAll(async () => {
  database = await createTestDatabase()
  front = await startService({ databaseUrl: database.url, env: secrets })
})
afterAll(async () => {
  await front?.close()
  await database?.drop()
})

const startProcess = (env: Record<string, string> = {}) =>
  spawnService({ ...secrets, DATABASE_URL: database.url, ...env })
const bodyOf = (tenant: Tenant, task: string) => ({
  task,
  agent_id: 'comedian-v1',
  payment: { wallet_id: tenant.walletId },
})
const readWallet = (tenant: Tenant) =>
  front.db
    .selectFrom('wallets')
    .select(['available_micro', 'reserved_micro'])
    .where('id', '=', tenant.walletId)
    .executeTakeFirstOrThrow()
const readRuns = (tenant: Tenant) =>
  front.db.selectFrom('runs').select(['id', 'state']).where('tenant_id', '=', tenant.tenantId).execute()

test.each([
  { step: 'check', runs: [], charged: 0n },
  { step: 'execute', runs: [], charged: 0n },
  { step: 'complete', runs: ['completed'], charged: PRICE },
])(
  'killed after $step: $charged charged, and the same key is answered and charged once',
  async ({ step, runs, charged }) => {
    const tenant = await richTenant(front)
    const dying = await startProcess({ COUNTERSIGN_CRASH_AT: step })
    const body = bodyOf(tenant, `Killed after ${step}.`)
    const headers = { ...tenant.headers, 'idempotency-key': `at-once-${step}` }
    await expect(dying.post('/api/run', body, headers)).rejects.toThrow()
    expect(await dying.exited).toBe('SIGKILL')
    expect((await readRuns(tenant)).map(({ state }) => state)).toEqual(runs)
    expect(await readWallet(tenant)).toEqual({ available_micro: FUNDS - charged, reserved_micro: 0n })

    const answer = await front.post('/api/run', body, headers)
    expect(answer.status, answer.text).toBe(200)
    expect(answer.headers.get('idempotent-replayed')).toBe(runs.length > 0 ? 'true' : null)
    const again = await front.post('/api/run', body, headers)
    expect(again.text).toBe(answer.text)
    expect(await readRuns(tenant)).toEqual([{ id: answer.body.run_id, state: 'completed' }])
    expect(await readWallet(tenant)).toEqual({ available_micro: FUNDS - PRICE, reserved_micro: 0n })
    const receipts = await front.get(`/api/receipts?run_id=${answer.body.run_id}`, tenant.headers)
    expect(receipts.body.receipts).toMatchObject([{ kind: 'run', charged: true }])
  },
  60_000,
)

test('killed with 150 under way: each is charged once when it is sent again, and none before it was answered or committed', async () => {
  const tenant = await richTenant(front)
  const dying = await startProcess()
  const requests = Array.from({ length: 150 }, (_, index) => ({
    body: bodyOf(tenant, `One of many, ${index}.`),
    headers: { ...tenant.headers, 'idempotency-key': `many-${index}` },
  }))
  let answered = 0
  const first = await Promise.all(
    requests.map(({ body, headers }) =>
      dying
        .post('/api/run', body, headers)
        .then((answer) => {
          answered += 1
          if (answered === 30) dying.child.kill('SIGKILL')
          return answer
        })
        .catch(() => undefined),
    ),
  )
  expect(await dying.exited).toBe('SIGKILL')
  const answers = first.filter((answer) => answer !== undefined)
  expect(answers.length).toBeGreaterThanOrEqual(30)
  expect(answers.length).toBeLessThan(150)
  const committed = await readRuns(tenant)
  expect(committed.length).toBeGreaterThanOrEqual(answers.length)
  expect(new Set(committed.map(({ state }) => state))).toEqual(new Set(['completed']))
  expect((await readWallet(tenant)).available_micro).toBe(FUNDS - BigInt(committed.length) * PRICE)

  const second = await Promise.all(requests.map(({ body, headers }) => front.post('/api/run', body, headers)))
  expect(new Set(second.map(({ status }) => status))).toEqual(new Set([200]))
  for (const [index, answer] of first.entries()) if (answer) expect(second[index]!.text).toBe(answer.text)
  expect(await readRuns(tenant)).toHaveLength(150)
  expect(await readWallet(tenant)).toEqual({ available_micro: FUNDS - 150n * PRICE, reserved_micro: 0n })
}, 120_000)
