import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { richTenant, run, type Tenant } from '../governance/world.ts'
import { startService, type TestService } from '../harness.ts'

/** Runs that are done before they are written down, in one transaction, beside runs that are admitted first. */
type TestLane = Lane & { momentary: boolean; answer: string | undefined; tasks: number }
const offline = createOfflineLane()
const lane: TestLane = {
  ...offline,
  momentary: true,
  answer: undefined,
  tasks: 0,
  isMomentary: () => lane.momentary,
  async execute(task) {
    lane.tasks += 1
    const result = await offline.execute(task)
    return result.ok && lane.answer !== undefined ? { ...result, output: lane.answer } : result
  },
}

let world: TestService
let tenant: Tenant
beforeAll(async () => {
  world = await startService({ lane, env: { BACKGROUND_WORK: 'off' } })
  tenant = await richTenant(world, 10)
})
afterAll(() => world?.close())

const admitFirst = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  lane.momentary = false
  try {
    return await work()
  } finally {
    lane.momentary = true
  }
}

const post = (path: string, body: unknown, { headers }: Tenant = tenant) => world.post(path, body, headers)
const readWallet = (of: Tenant = tenant) =>
  world.db.selectFrom('wallets').selectAll().where('id', '=', of.walletId).executeTakeFirstOrThrow()
const countRuns = async (of: Tenant) =>
  (await world.db.selectFrom('runs').select('state').where('tenant_id', '=', of.tenantId).execute()).map(
    ({ state }) => state,
  )

/** The rows that a run leaves. */
async function readRows(runId: string) {
  const one = async (text: ReturnType<typeof sql<Record<string, unknown>>>) => (await text.execute(world.db)).rows
  return {
    // The outcomes of the rules are a set, in no order.
    run: await one(
      sql`select *, terms #- '{ruling,policy_applied}' as terms,
            array(select jsonb_array_elements(terms#>'{ruling,policy_applied}') order by 1) as outcomes
          from ended_runs where id = ${runId}`,
    ),
    ledger: await one(sql`select * from ledger where ref = ${runId}`),
    receipt: await one(sql`select * from receipts where run_id = ${runId}`),
    events: await one(sql`select type, data from events where data->>'run_id' = ${runId} order by id`),
    audit: await one(
      sql`select type, actor, decision, policy_ids, data from audit_events where subject = ${runId} order by seq`,
    ),
  }
}

const DIFFERENT =
  'salt value reason used answer answer_receipt_at body hash admission input_hash request_hash created_at finished_at deadline_at issued_at decided_at settlement_id latency_ms decided_seq ended_seq'.split(
    ' ',
  )

/** What differs between any two runs, or with the use of a budget, and ids and hashes become the name of their kind. */
const withoutIdentity = (rows: unknown): unknown =>
  JSON.parse(
    JSON.stringify(rows, (name, value) =>
      DIFFERENT.includes(name) ? '-' : typeof value === 'bigint' ? `${value}` : value,
    )
      .replace(/(run|ses|loop|rcpt|ltx|stl|evt|aud|ver|req)_[0-9a-f-]{36}/g, '$1_id')
      .replace(/sha256:[0-9a-f]{64}/g, 'hash'),
  )

test('a run that is done at once leaves the same rows as one that is admitted first', async () => {
  const subscriber = await richTenant(world)
  await post(
    '/api/webhooks',
    { url: 'https://example.com/hook', events: ['run.completed', 'receipt.issued'] },
    subscriber,
  )
  await post(
    '/api/budgets',
    { scope: { type: 'tenant' }, window: 'rolling_7d', limit_usdc: 5, on_breach: 'block' },
    subscriber,
  )
  await post('/api/policies', { constraints: { max_per_run_usdc: 1 } }, subscriber)
  const request = {
    task: 'Tell me a joke about clocks.',
    agent_id: 'comedian-v1',
    spender: 'agent-7',
    tags: { project: 'x' },
  }
  const atOnce = await run(world, subscriber, request)
  const admitted = await admitFirst(() => run(world, subscriber, request))
  expect([atOnce.status, admitted.status], atOnce.text).toEqual([200, 200])
  await world.service.sequencer.runOnce()
  await world.service.sequencer.runOnce()

  const rows = await readRows(atOnce.body.run_id)
  expect(rows.run).toHaveLength(1)
  expect(rows.audit.map(({ type }) => type)).toEqual(['run.admitted', 'run.completed'])
  expect(rows.events.length).toBeGreaterThan(0)
  expect(withoutIdentity(rows)).toEqual(withoutIdentity(await readRows(admitted.body.run_id)))
  expect(withoutIdentity(atOnce.body)).toEqual(withoutIdentity(admitted.body))
  const limits = await sql<{ spent: bigint; reserved: bigint }>`
    select sum(spent_micro)::bigint as spent, sum(reserved_micro)::bigint as reserved from limits where scope like ${`budget:${subscriber.tenantId}%`}
  `.execute(world.db)
  expect(limits.rows).toEqual([{ spent: 20_000n, reserved: 0n }])
  const differences = (await checkBooks(world.db)).flatMap((check) => check.differences)
  expect(differences.filter(({ subject }) => !subject.startsWith('wal_') && !subject.includes('wallet'))).toEqual([])
})

test('the same key twenty times in parallel: one run, one charge, one answer', async () => {
  const before = await readWallet()
  const answers = await Promise.all(
    Array.from({ length: 20 }, () =>
      run(world, tenant, { task: 'A joke about keys.' }, { 'idempotency-key': 'at-once-1' }),
    ),
  )
  const done = answers.filter(({ status }) => status === 200)
  expect(done.length).toBeGreaterThan(0)
  expect(new Set(done.map(({ text }) => text)).size).toBe(1)
  expect(answers.filter(({ status }) => status !== 200 && status !== 409)).toEqual([])
  expect((await readWallet()).available_micro).toBe(before.available_micro - 10_000n)
  const other = await run(world, tenant, { task: 'Another joke.' }, { 'idempotency-key': 'at-once-1' })
  expect(other.status).toBe(409)
})

test('a wallet with money for three of twenty runs pays three', async () => {
  const poor = await richTenant(world, 0)
  await world.db.updateTable('wallets').set({ available_micro: 39_999n }).where('id', '=', poor.walletId).execute()
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => run(world, poor, { task: `Joke ${index}.` })),
  )
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(3)
  expect(answers.filter(({ status, body }) => status === 402 && body.reason === 'wallet_balance')).toHaveLength(17)
  expect(await readWallet(poor)).toMatchObject({ available_micro: 9_999n, reserved_micro: 0n })
  expect(await countRuns(poor)).toEqual(['completed', 'completed', 'completed'])
})

test('twenty runs race for a budget of ten cents: exactly ten win, and nothing stays reserved', async () => {
  const racer = await richTenant(world)
  await post('/api/budgets', { scope: { type: 'tenant' }, window: 'total', limit_usdc: 0.1, on_breach: 'block' }, racer)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => run(world, racer, { task: `Joke ${index}.` })),
  )
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(10).fill(200), ...Array(10).fill(429)])
  const { rows } = await sql<{ spent_micro: bigint; reserved_micro: bigint }>`
    select spent_micro, reserved_micro from limits where scope like ${`budget:${racer.tenantId}%`}`.execute(world.db)
  expect(rows).toEqual([{ spent_micro: 100_000n, reserved_micro: 0n }])
})

test('rules that change while the work is done bind it', async () => {
  const changing = await richTenant(world)
  const execute = lane.execute
  let denied = false
  lane.execute = async (task) => {
    if (!denied) {
      denied = true
      const { status } = await post('/api/policies', { constraints: { denied_agents: ['comedian-v1'] } }, changing)
      expect(status).toBeLessThan(300)
    }
    return execute(task)
  }
  const answer = await run(world, changing, { task: 'A joke about rules.' }).finally(() => {
    lane.execute = execute
  })
  expect(denied).toBe(true)
  expect([answer.status, answer.body.error]).toEqual([429, 'policy_blocked'])
  expect(await countRuns(changing)).toEqual(['blocked'])
  expect((await readWallet(changing)).available_micro).toBe(1_000_000_000n)
})

test('a limit that only warns is told from the counters at admission', async () => {
  const warned = await richTenant(world)
  await post(
    '/api/budgets',
    { scope: { type: 'tenant' }, window: 'total', limit_usdc: 5, soft_limit_usdc: 0.015, on_breach: 'block' },
    warned,
  )
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, index) => run(world, warned, { task: `Joke ${index}.` })),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(answers.map(({ body }) => body.budget_outcome).sort()).toEqual(['pass', 'warning', 'warning', 'warning'])
})

test('work that fails is not charged, and its run is recorded as failed', async () => {
  const before = await readWallet()
  lane.answer = ''
  lane.tasks = 0
  const answer = await run(world, tenant, { task: 'A joke about nothing.' }).finally(() => {
    lane.answer = undefined
  })
  expect(answer.status).toBe(500)
  expect(answer.body).toMatchObject({ reason: 'verification_failed', charged: false })
  // The work, and once more by its verification: the run is admitted with what was done.
  expect(lane.tasks).toBe(2)
  expect(await world.get(`/api/runs/${answer.body.run_id}`, tenant.headers)).toMatchObject({
    status: 200,
    body: { outcome: 'failed' },
  })
  expect(await readWallet()).toMatchObject({ available_micro: before.available_micro, reserved_micro: 0n })
})

test.each([
  ['a session, which is remembered', { session_id: 'ses_memory' }],
  ['an escrow', { payment: 'escrow' }],
  ['memory', { options: { write_memory: true } }],
])('%s: the run is admitted before its work', async (_, body) => {
  const execute = lane.execute
  const statesDuringWork: unknown[] = []
  lane.execute = async (task) => {
    const row = await world.db.selectFrom('open_runs').select('state').where('id', '=', task.runId).executeTakeFirst()
    statesDuringWork.push(row?.state)
    return execute(task)
  }
  const payment = { wallet_id: tenant.walletId, ...('payment' in body && { escrow: true }) }
  const answer = await run(world, tenant, { task: 'A joke about order.', ...body, payment }).finally(() => {
    lane.execute = execute
  })
  expect(answer.status, answer.text).toBe(200)
  expect(new Set(statesDuringWork)).toEqual(new Set(['executing']))
})
