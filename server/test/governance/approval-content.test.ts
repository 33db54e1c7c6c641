import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../src/platform/log.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { anotherKey, richTenant, run, type Tenant } from './world.ts'

/** What waits for an approval is shown to approvers, kept encrypted, and found nowhere else. */
const CANARY = 'canary-zanzibar-4711'
const DAY_MS = 86_400_000

let world: TestService
let clock: TestClock
let receiver: Receiver
let logText = ''

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _encoding, callback) {
      logText += chunk
      callback()
    },
  })
  clock = createTestClock(new Date(Math.floor(Date.now() / 1000) * 1000))
  world = await startService({
    clock,
    log: createLog('trace', sink),
    env: { BACKGROUND_WORK: 'off', APPROVAL_CONTENT_DAYS: '7' },
  })
  receiver = await openReceiver()
})
afterAll(async () => {
  await world?.close()
  await receiver?.close()
})

/** A tenant whose every run on this lane waits for an approval, and whose events go to the receiver. */
async function reviewedTenant(
  policy: Record<string, unknown> = {},
): Promise<Tenant & { readOnly: Record<string, string> }> {
  const tenant = await richTenant(world)
  const { status, text } = await world.post(
    '/api/policies',
    {
      name: 'People first',
      rules: [{ field: 'amount_usdc', op: '>', value: 0, effect: 'review', reason: 'Somebody reads it.' }],
      ...policy,
    },
    tenant.headers,
  )
  expect(status, text).toBe(201)
  await world.post('/api/webhooks', { url: receiver.url, events: ['*'] }, tenant.headers)
  return { ...tenant, readOnly: await anotherKey(world, tenant, ['read', 'run']) }
}

const task = `Tell me a joke about ${CANARY}.`
const approve = (tenant: Tenant, approvalId: string, body: Record<string, unknown> = {}) =>
  world.post('/api/approvals', { approval_id: approvalId, decision: 'approve', ...body }, tenant.headers)
const getApproval = async (headers: Record<string, string>, id: string) =>
  (await world.get(`/api/approvals/${id}`, headers)).body
const startRuns = async () => {
  await world.service.startApprovedRuns.sweep()
  await world.service.startApprovedRuns.idle()
}

/** Sends the webhooks that are due, as the background work would, until none is left. */
async function deliverWebhooks() {
  const { observe, sequencer } = world.service
  const { deliveryWorker } = observe
  await sequencer.runOnce()
  for (let sent = -1; sent !== receiver.received.length; ) {
    sent = receiver.received.length
    await deliveryWorker.deliverDue()
    await deliveryWorker.idle()
  }
}

/** Tables and columns whose text contains the canary, encrypted values not among them. */
async function findCanary(): Promise<string[]> {
  const { pool } = world.service.database
  const { rows } = await pool.query<{ table_name: string; column_name: string }>(
    `select table_name, column_name from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  const found: string[] = []
  for (const { table_name, column_name } of rows) {
    const { rows: hits } = await pool.query(
      `select exists (select 1 from "${table_name}" where "${column_name}"::text like '%${CANARY}%') as found`,
    )
    if (hits[0].found) found.push(`${table_name}.${column_name}`)
  }
  return found
}

test('a key without control, another tenant and a time after the retention do not see the request', async () => {
  const tenant = await reviewedTenant()
  const other = await richTenant(world)
  const refused = await run(world, tenant, { task })
  expect(refused.status).toBe(429)
  const id = refused.body.approval_id

  const seen = await getApproval(tenant.headers, id)
  expect(seen.request).toEqual({
    task,
    agent_id: 'comedian-v1',
    payment: { wallet_id: tenant.walletId },
  })
  const { body: list } = await world.get('/api/approvals', tenant.headers)
  expect(list.approvals[0].request.task).toBe(task)

  const withoutControl = await world.get(`/api/approvals/${id}`, tenant.readOnly)
  expect(withoutControl.status).toBe(200)
  expect(withoutControl.body).not.toHaveProperty('request')
  const listed = await world.get('/api/approvals', tenant.readOnly)
  expect(listed.body.approvals).toHaveLength(1)
  expect(listed.text).not.toContain(CANARY)
  expect((await world.get(`/api/approvals/${id}`, other.headers)).status).toBe(404)
  expect((await world.get('/api/approvals', other.headers)).text).not.toContain(CANARY)

  const rejection = await world.post('/api/approvals', { approval_id: id, decision: 'reject' }, tenant.headers)
  expect(rejection.text).not.toContain(CANARY)
  clock.advance(6 * DAY_MS)
  expect(await world.service.governance.pruneApprovalContent()).toBe(0)
  expect((await getApproval(tenant.headers, id)).request.task).toBe(task)
  clock.advance(DAY_MS + 1000)
  // Not even before it is deleted.
  expect((await getApproval(tenant.headers, id)).request).toBeNull()
  expect(await world.service.governance.pruneApprovalContent()).toBeGreaterThan(0)
  const { rows } = await world.service.database.pool.query('select content from approvals where id = $1', [id])
  expect(rows[0].content).toBeNull()
})

test('the task of a run that waits is in no table, log, event, metric or receipt, whatever becomes of it', async () => {
  const tenant = await reviewedTenant()
  receiver.received.length = 0
  const tasks = { rejected: 'a', expired: 'b', executed: 'c', loop: 'd', waiting: 'e' }
  const ask = async (name: string, path = '/api/run') => {
    const content = path === '/api/run' ? { task: `${task} ${name}` } : { input: `${task} ${name}` }
    const body = { ...content, agent_id: 'coder-v1', payment: { wallet_id: tenant.walletId } }
    const { body: refusal } = await world.post(path, body, tenant.headers)
    expect(refusal.outcome, JSON.stringify(refusal)).toBe('review_required')
    return refusal.approval_id as string
  }
  const ids = {
    rejected: await ask(tasks.rejected),
    executed: await ask(tasks.executed),
    loop: await ask(tasks.loop, '/api/loop'),
    waiting: await ask(tasks.waiting),
  }
  const x402 = await world.post('/api/run', { task: `${task} x402`, agent_id: 'coder-v1' }, tenant.headers)
  const preauth = await world.post(
    '/api/pre-auth',
    { agent_id: 'fleet-7', merchant: { id: 'maps.example' }, amount_usdc: 0.5, override_token: undefined },
    tenant.headers,
  )
  expect(preauth.body.status).toBe('pending_approval')
  await world.post('/api/approvals', { approval_id: ids.rejected, decision: 'reject' }, tenant.headers)
  await approve(tenant, ids.executed, { idempotency_key: 'approve-executed' })
  await approve(tenant, ids.loop)
  await startRuns()
  expect((await getApproval(tenant.headers, ids.executed)).next).toMatch(/^The run was started/)

  // The encrypted text is there, and nothing in plain.
  expect((await getApproval(tenant.headers, ids.waiting)).request.task).toBe(`${task} e`)
  expect((await getApproval(tenant.headers, x402.body.approval_id)).request.task).toBe(`${task} x402`)
  expect((await getApproval(tenant.headers, preauth.body.approval_id)).request).toEqual({
    agent_id: 'fleet-7',
    merchant: { id: 'maps.example' },
    amount_usdc: 0.5,
  })
  await world.service.sequencer.runOnce()
  const { rows: events } = await world.service.database.pool.query(
    'select distinct type from events where tenant_id = $1',
    [tenant.tenantId],
  )
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['approval.requested', 'approval.approved', 'run.completed']),
  )
  // As they arrive, signed: every header and every byte of the bodies.
  await deliverWebhooks()
  const delivered = receiver.received.map(({ headers, body }) => `${JSON.stringify(headers)}\n${body}`)
  expect(new Set(receiver.received.map(({ json }) => json.type))).toEqual(new Set(events.map(({ type }) => type)))
  for (const bytes of delivered) expect(bytes).not.toContain(CANARY)
  expect(await findCanary()).toEqual([])
  expect((await world.get('/metrics')).text).not.toContain(CANARY)
  const receipts = await world.get('/api/receipts', tenant.headers)
  expect(receipts.body.receipts.length).toBeGreaterThan(1)
  expect(receipts.text).not.toContain(CANARY)
  for (const path of ['/api/runs', '/api/loops', '/api/decisions', '/api/audit', '/api/control-tower'])
    expect((await world.get(path, tenant.headers)).text).not.toContain(CANARY)
  expect(logText).not.toContain(CANARY)
  expect(logText).toContain('"status":200')

  // Expired undecided, like everything else: nothing is left after the retention.
  clock.advance(DAY_MS + 1000)
  await world.service.governance.sweepExpiredApprovals()
  clock.advance(8 * DAY_MS)
  await world.service.governance.pruneApprovalContent()
  const { rows } = await world.service.database.pool.query(
    'select count(*)::int as count from approvals where content is not null and tenant_id = $1',
    [tenant.tenantId],
  )
  expect(rows[0].count).toBe(0)
  expect(await findCanary()).toEqual([])
  // The search itself works: the task of a run that needed no approval is found.
  await run(world, await richTenant(world), { task })
  expect(await findCanary()).toContain('ended_runs.request')
})

test('tokens of the request are shown to nobody', async () => {
  const tenant = await reviewedTenant()
  const preauth = await world.post(
    '/api/pre-auth',
    { agent_id: 'fleet-7', merchant: { id: 'maps.example' }, amount_usdc: 0.5, idempotency_key: 'first-of-these' },
    tenant.headers,
  )
  const { request } = await getApproval(tenant.headers, preauth.body.approval_id)
  expect(Object.keys(request).sort()).toEqual(['agent_id', 'amount_usdc', 'merchant'])
})

test('an approver reads which rule asked, what is normal for the spender and what happens next', async () => {
  const tenant = await richTenant(world)
  for (const amount of [1, 1, 1]) expect((await run(world, tenant, { task: `Joke ${amount}` })).status).toBe(200)
  await world.post(
    '/api/policies',
    { name: 'Small money', constraints: { require_approval_above_usdc: 0.012 } },
    tenant.headers,
  )
  const wallet = await run(world, tenant, { task: 'Analyse 3, 4, 19.', agent_id: 'analyst-v1' })
  expect(wallet.status, wallet.text).toBe(429)
  const { body: approval } = await world.get(`/api/approvals/${wallet.body.approval_id}`, tenant.headers)
  expect(approval.rule).toMatchObject({
    policy_id: expect.stringMatching(/^pol_/),
    name: 'Small money',
    sentence: "The policy 'Small money' wants a person to approve payments above 0.012 USDC; this one is 0.025 USDC.",
    version: 1,
    constraint: 'require_approval_above_usdc',
    limit: 0.012,
    asked: 0.025,
  })
  expect(approval.normal).toEqual({ count_30d: 3, median_usdc: 0.01, max_usdc: 0.01, same_30d: 0 })
  expect(approval.next).toBe(
    `After approval the run starts by itself, paid from the wallet; its answer is at GET /api/runs/${wallet.body.run_id}.`,
  )
  expect(wallet.body.next_action).toContain('the run starts by itself')

  const x402 = await world.post('/api/run', { task: 'Analyse 3, 4.', agent_id: 'analyst-v1' }, tenant.headers)
  expect(x402.body.next_action).toContain('send the same request with approval_id and a payment')
  const answer = await approve(tenant, x402.body.approval_id)
  expect(answer.body.approval.next).toBe(
    'The run waits for its payment: it starts when the same request is sent with approval_id and a payment.',
  )
  const preauth = await world.post(
    '/api/pre-auth',
    { agent_id: 'fleet-7', merchant: { id: 'maps.example' }, amount_usdc: 0.5 },
    tenant.headers,
  )
  const { body: waiting } = await world.get(`/api/approvals/${preauth.body.approval_id}`, tenant.headers)
  expect(waiting.next).toContain('the token issued')

  const { body: budget } = await world.post(
    '/api/budgets',
    { budget_id: 'tiny', window: 'day', limit_usdc: 0.035, on_breach: 'review' },
    tenant.headers,
  )
  expect(budget.budget_id ?? budget.budgets?.[0]?.budget_id).toBe('tiny')
  for (const n of [1, 2, 3]) expect((await run(world, tenant, { task: `Counted ${n}` })).status).toBe(200)
  const overBudget = await run(world, tenant, { task: 'One too many' })
  const { body: asked } = await world.get(`/api/approvals/${overBudget.body.approval_id}`, tenant.headers)
  expect(asked.rule).toMatchObject({
    policy_id: null,
    name: 'tiny',
    sentence: expect.stringMatching(/^The budget 'tiny' allows 0.035 USDC/),
  })
})

test('an approved x402 run waits for its payment, runs once with it, and the used approval is refused without it', async () => {
  const tenant = await reviewedTenant()
  const body = { task: 'Tell me a joke about tides.', agent_id: 'comedian-v1' }
  const { body: refusal } = await world.post('/api/run', body, tenant.headers)
  await approve(tenant, refusal.approval_id)
  await startRuns()
  const approved = { ...body, approval_id: refusal.approval_id }
  const challenge = await world.post('/api/run', approved, tenant.headers)
  expect(challenge.status).toBe(402)
  const payment = await signPayment(await world.payer(1), readChallenge(challenge.headers), {
    validBefore: BigInt(Math.floor(clock.now().getTime() / 1000) + 300),
  })
  const paid = await world.post('/api/run', approved, { ...tenant.headers, ...payment })
  expect(paid.status, paid.text).toBe(200)
  expect(paid.body.run_id).toBe(refusal.run_id)
  const repeated = await world.post('/api/run', approved, { ...tenant.headers, ...payment })
  expect(repeated.text).toBe(paid.text)
  const withoutPayment = await world.post('/api/run', approved, tenant.headers)
  expect(withoutPayment.status).toBe(409)
  expect(withoutPayment.body.message).toContain('has been used')
})
