import { afterAll, beforeAll, expect, test } from 'vitest'
import { anotherKey, counterFaults, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

/** An approved run that is paid from a wallet starts by itself, once, and only if it is still allowed. */
let world: World
beforeAll(async () => {
  world = await openWorld()
  // The control tower needs a checkpoint.
  await world.service.sequencer.runOnce()
})
afterAll(async () => world?.close())

const PRICE = 10_000n

async function reviewedTenant(usdc = 1_000): Promise<Tenant> {
  const tenant = await richTenant(world, usdc)
  await world.post(
    '/api/policies',
    { name: 'People first', rules: [{ field: 'amount_usdc', op: '>', value: 0, effect: 'review' }] },
    tenant.headers,
  )
  return tenant
}

const body = { task: 'Tell me a joke about lighthouses.' }
const startRuns = async () => {
  const count = await world.service.startApprovedRuns.sweep()
  await world.service.startApprovedRuns.idle()
  return count
}
const ask = async (tenant: Tenant, fields: Record<string, unknown> = {}, headers = {}) => {
  const { status, body: refusal } = await run(world, tenant, { ...body, ...fields }, headers)
  expect(status).toBe(429)
  return refusal as { approval_id: string; run_id: string }
}
const approve = async (tenant: Tenant, approvalId: string) => {
  const answer = await world.post('/api/approvals', { approval_id: approvalId, decision: 'approve' }, tenant.headers)
  expect(answer.status, answer.text).toBe(200)
  return answer.body
}
const askAndApprove = async (tenant: Tenant, fields: Record<string, unknown> = {}, headers = {}) => {
  const refusal = await ask(tenant, fields, headers)
  await approve(tenant, refusal.approval_id)
  return refusal
}
const available = async (tenant: Tenant) =>
  (
    await world.db
      .selectFrom('wallets')
      .select(['available_micro', 'reserved_micro'])
      .where('id', '=', tenant.walletId)
      .executeTakeFirstOrThrow()
  ).available_micro
const getRun = async (tenant: Tenant, id: string) => (await world.get(`/api/runs/${id}`, tenant.headers)).body
const getApproval = async (tenant: Tenant, id: string) => (await world.get(`/api/approvals/${id}`, tenant.headers)).body

test('a run that was not approved does not start, nor does one of an approval that expired', async () => {
  const tenant = await reviewedTenant()
  const { run_id: runId, approval_id: approvalId } = await ask(tenant)
  expect(await startRuns()).toBe(0)
  expect((await getRun(tenant, runId)).outcome).toBe('pending')
  await approve(tenant, approvalId)
  world.clock.advance(86_400_000 + 1000)
  expect(await startRuns()).toBe(0)
  await world.service.governance.sweepExpiredApprovals()
  expect((await getRun(tenant, runId)).outcome).toBe('blocked')
  expect(await available(tenant)).toBe(1_000_000_000n)
})

test('an approved run starts by itself, and the same request gets its stored answer', async () => {
  const tenant = await reviewedTenant()
  const { run_id: runId, approval_id: approvalId } = await askAndApprove(tenant)
  expect(await startRuns()).toBe(1)
  const stored = await getRun(tenant, runId)
  expect(stored).toMatchObject({ outcome: 'completed', answer: { status: 200, body: { run_id: runId } } })
  expect(stored.receipt_url).toMatch(/^\/api\/receipts\//)
  for (let time = 0; time < 2; time += 1) {
    const repeated = await run(world, tenant, { ...body, approval_id: approvalId })
    expect(repeated.status, repeated.text).toBe(200)
    expect(repeated.headers.get('idempotent-replayed')).toBe('true')
    expect(repeated.body).toEqual(stored.answer.body)
  }
  expect(await startRuns()).toBe(0)
  expect(await available(tenant)).toBe(1_000_000_000n - PRICE)
  expect((await getApproval(tenant, approvalId)).next).toBe(
    `The run was started; its answer is at GET /api/runs/${runId}.`,
  )
})

test('a changed request, and the request of another tenant, do not get the answer of a used approval', async () => {
  const tenant = await reviewedTenant()
  const other = await reviewedTenant()
  const { approval_id: approvalId } = await askAndApprove(tenant)
  const changedBefore = await run(world, tenant, { task: 'Another task.', approval_id: approvalId })
  expect(changedBefore.status).toBe(409)
  await startRuns()
  const changed = await run(world, tenant, { task: 'Another task.', approval_id: approvalId })
  expect(changed.status).toBe(409)
  expect(changed.body.message).toContain('has been used')
  expect((await run(world, other, { ...body, approval_id: approvalId })).status).toBe(404)
  expect(await available(tenant)).toBe(1_000_000_000n - PRICE)
})

test('a loop starts by itself too, and an idempotency key gets the answer without the approval', async () => {
  const tenant = await reviewedTenant()
  const loop = { input: 'Say hello.', agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } }
  const headers = { ...tenant.headers, 'idempotency-key': 'the-loop' }
  const { body: refusal } = await world.post('/api/loop', loop, headers)
  await approve(tenant, refusal.approval_id)
  await startRuns()
  const repeated = await world.post('/api/loop', loop, headers)
  expect(repeated.status, repeated.text).toBe(200)
  expect(repeated.body.run_id).toBe(refusal.run_id)
})

test('the rules are assessed again at the start: a refused run ends as blocked with its reason, and its approval lapses', async () => {
  const reasons: [string, (tenant: Tenant) => Promise<unknown>, RegExp][] = [
    [
      'a freeze',
      (tenant) =>
        world.post('/api/control-tower', { action: 'freeze', agent_id: 'comedian-v1', reason: 'Odd' }, tenant.headers),
      /frozen/,
    ],
    [
      'a policy',
      (tenant) =>
        world.post(
          '/api/policies',
          { name: 'No jokes', constraints: { denied_agents: ['comedian-v1'] } },
          tenant.headers,
        ),
      /The policy 'No jokes' refuses this/,
    ],
    [
      'a budget',
      (tenant) => world.post('/api/budgets', { budget_id: 'none', window: 'day', limit_usdc: 0.001 }, tenant.headers),
      /The budget 'none' refuses this/,
    ],
  ]
  for (const [name, change, message] of reasons) {
    const tenant = await reviewedTenant()
    const { run_id: runId, approval_id: approvalId } = await askAndApprove(tenant)
    const changed = (await change(tenant)) as { status: number; text: string }
    expect(changed.status, changed.text).toBeLessThan(300)
    await startRuns()
    const stored = await getRun(tenant, runId)
    expect(stored, name).toMatchObject({ outcome: 'blocked', answer: { status: 429, body: { run_id: runId } } })
    expect(stored.answer.body.message).toMatch(message)
    const approval = await getApproval(tenant, approvalId)
    expect(approval.next).toMatch(/^Nothing: the run was refused when it was to start\./)
    expect(approval.next).toMatch(message)
    const repeated = await run(world, tenant, { ...body, approval_id: approvalId })
    expect(repeated.status).toBe(409)
    expect(repeated.body.message).toMatch(/has lapsed/)
    expect(await available(tenant)).toBe(1_000_000_000n)
  }
})

test('after an approval lapsed, the same request asks for a new one, which runs', async () => {
  const tenant = await reviewedTenant()
  const freeze = (action: string) =>
    world.post('/api/control-tower', { action, agent_id: 'comedian-v1', reason: 'Odd' }, tenant.headers)
  const { approval_id: lapsed } = await askAndApprove(tenant)
  await freeze('freeze')
  await startRuns()
  await freeze('unfreeze')
  const again = await run(world, tenant, body)
  expect(again.body.outcome, again.text).toBe('review_required')
  expect(again.body.approval_id).not.toBe(lapsed)
  await approve(tenant, again.body.approval_id)
  await startRuns()
  expect((await getRun(tenant, again.body.run_id)).outcome).toBe('completed')
})

test('a run of a key that was revoked meanwhile does not start', async () => {
  const tenant = await reviewedTenant()
  const key = await anotherKey(world, tenant, ['read', 'run'])
  const { body: me } = await world.get('/api/me', key)
  const { run_id: runId } = await askAndApprove(tenant, {}, key)
  await world.call('DELETE', `/api/admin/keys/${me.key_id}`, undefined, { 'x-admin-key': world.service.adminKey })
  await startRuns()
  const stored = await getRun(tenant, runId)
  expect(stored).toMatchObject({ outcome: 'blocked', answer: { status: 403 } })
  expect(await available(tenant)).toBe(1_000_000_000n)
})

test('with too little in the wallet the run waits, and starts once the wallet is filled', async () => {
  const tenant = await reviewedTenant()
  const { run_id: runId, approval_id: approvalId } = await askAndApprove(tenant)
  const setAvailable = (micro: bigint) =>
    world.db.updateTable('wallets').set({ available_micro: micro }).where('id', '=', tenant.walletId).execute()
  await setAvailable(1n)
  expect(await startRuns()).toBe(1)
  expect((await getRun(tenant, runId)).outcome).toBe('approved')
  expect((await getApproval(tenant, approvalId)).next).toMatch(/is tried again until .* The wallet has/)
  expect(await startRuns()).toBe(0)
  await setAvailable(PRICE)
  world.clock.advance(31_000)
  expect(await startRuns()).toBe(1)
  expect((await getRun(tenant, runId)).outcome).toBe('completed')
  expect(await available(tenant)).toBe(0n)
})

test('a lane that fails costs nothing; the run is not tried again by itself, and its caller may', async () => {
  const tenant = await reviewedTenant()
  const { run_id: runId, approval_id: approvalId } = await askAndApprove(tenant)
  world.lane.failing = true
  await startRuns()
  world.lane.failing = false
  expect(await getRun(tenant, runId)).toMatchObject({ outcome: 'failed', answer: { status: 500 } })
  world.clock.advance(60_000)
  expect(await startRuns()).toBe(0)
  expect((await getApproval(tenant, approvalId)).next).toMatch(/starts it again/)
  const again = await run(world, tenant, { ...body, approval_id: approvalId })
  expect(again.status, again.text).toBe(200)
  expect(again.body.run_id).not.toBe(runId)
  expect(await available(tenant)).toBe(1_000_000_000n - PRICE)
})

test('the service and its caller at the same moment: one run, one charge, one answer', async () => {
  const tenant = await reviewedTenant()
  const approved = []
  for (let n = 0; n < 12; n += 1) approved.push({ n, ...(await askAndApprove(tenant, { task: `Joke number ${n}.` })) })
  const repeat = ({ n, approval_id }: { n: number; approval_id: string }) =>
    run(world, tenant, { task: `Joke number ${n}.`, approval_id })
  const [answers] = await Promise.all([
    Promise.all(approved.flatMap((request) => [repeat(request), repeat(request)])),
    startRuns(),
  ])
  await startRuns()
  for (const [index, answer] of answers.entries()) {
    expect(answer.status, answer.text).toBe(200)
    expect(answer.body.run_id).toBe(approved[Math.floor(index / 2)]!.run_id)
  }
  expect(new Set(answers.map((answer) => answer.body.receipt.receipt_id ?? answer.body.receipt_url)).size).toBe(12)
  expect(await available(tenant)).toBe(1_000_000_000n - 12n * PRICE)
  expect(await counterFaults(world)).toEqual([])
})
