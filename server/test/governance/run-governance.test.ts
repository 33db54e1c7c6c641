import { verifyReceipt } from '@countersign/proof'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readAudits, readEvents } from '../journal.ts'
import { anotherKey, counterFaults, openWorld, richTenant, run, type World, whileSequencing } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

const policy = async (headers: Record<string, string>, body: Record<string, unknown>) => {
  const createResponse = await world.post('/api/policies', body, headers)
  expect(createResponse.status, createResponse.text).toBe(201)
  return createResponse.body
}
const budget = async (headers: Record<string, string>, body: Record<string, unknown>) => {
  const createResponse = await world.post('/api/budgets', body, headers)
  expect(createResponse.status, createResponse.text).toBe(200)
  return createResponse.body.budgets
}
const runsOf = async (headers: Record<string, string>, query = '') =>
  (await world.get(`/api/runs${query}`, headers)).body.runs
const eventsOf = async (tenantId: string) => (await readEvents(world.db, tenantId)).map((row) => row.type)

test('a failed run lists the receipt that says nothing was charged', async () => {
  const tenant = await richTenant(world)
  world.lane.failing = true
  const failure = await run(world, tenant)
  world.lane.failing = false
  expect(failure.status).toBe(500)
  const [item] = await runsOf(tenant.headers)
  expect(item).toMatchObject({ outcome: 'failed', receipt_url: expect.stringMatching(/^\/api\/receipts\/rcpt_/) })
  expect((await world.get(`/api/runs/${item.run_id}`, tenant.headers)).body.receipt_url).toBe(item.receipt_url)
  expect((await world.get(item.receipt_url)).body).toMatchObject({ run_id: item.run_id, charged: false })
})

describe('budget in the request', () => {
  test('a named lane above max_price_usdc is refused, with the smallest change that would pass', async () => {
    const tenant = await richTenant(world)
    const refusal = await run(world, tenant, { agent_id: 'coder-v1', budget: { max_price_usdc: 0.02 } })
    expect(refusal.status).toBe(429)
    expect(refusal.headers.get('retry-after')).toBeNull()
    expect(refusal.body).toMatchObject({
      error: 'budget_exceeded',
      outcome: 'blocked',
      approval_id: null,
      smallest_change: [{ path: 'budget.max_price_usdc', from: 0.02, to: 0.025 }],
    })
    expect(refusal.body.decision_id).toMatch(/^dec_/)
    const decision = await world.get(`/api/decisions/${refusal.body.decision_id}`, tenant.headers)
    expect(decision.body).toMatchObject({
      run_id: refusal.body.run_id,
      overridable: false,
      policy_results: refusal.body.policy_results,
    })
    const { body: decisionList } = await world.get('/api/decisions?outcome=blocked', tenant.headers)
    expect(decisionList).toEqual({ decisions: [decision.body], has_more: false, next_cursor: null })
    expect(await runsOf(tenant.headers, '?outcome=blocked')).toMatchObject([
      { run_id: refusal.body.run_id, outcome: 'blocked', receipt_url: null },
    ])
  })

  test('a routed lane above max_price_usdc is downgraded to a cheaper one, unless the budget is strict', async () => {
    const tenant = await richTenant(world)
    const task = 'Write a Python function that parses CSV and fix the bug in this code: def f(x): return x +'
    const unlimitedResponse = await run(world, tenant, {
      task,
      agent_id: undefined,
      payment: { wallet_id: tenant.walletId },
    })
    expect(unlimitedResponse.body.price_usdc).toBeGreaterThan(0.012)
    const cappedResponse = await run(world, tenant, { task, agent_id: undefined, budget: { max_price_usdc: 0.012 } })
    expect(cappedResponse.status, cappedResponse.text).toBe(200)
    expect(cappedResponse.body).toMatchObject({ decision: 'downgrade', budget_outcome: 'downgrade' })
    expect(cappedResponse.body.price_usdc).toBeLessThanOrEqual(0.012)
    expect(cappedResponse.body.route.downgraded_from).toBe(unlimitedResponse.body.agent_id)
    const strict = await run(world, tenant, {
      task,
      agent_id: undefined,
      budget: { max_price_usdc: 0.012, strict: true },
    })
    expect([strict.status, strict.body.error]).toEqual([429, 'budget_exceeded'])
    const tooExpensive = await run(world, tenant, { task, agent_id: undefined, budget: { max_price_usdc: 0.001 } })
    expect(tooExpensive.status).toBe(429)
  })

  test.each([
    'Compute the mean, median and standard deviation of 3, 5, 8, 13 and 21.',
    'Write a SQL query that sums orders by customer over the last 30 days.',
    'Should we enter the German market next year? Compare the options and recommend a strategy.',
  ])('a downgrade goes to the general lane before a lane of another trade, and says so: %s', async (task) => {
    const tenant = await richTenant(world)
    const advice = await world.post('/api/route', { task }, tenant.headers)
    expect(advice.body.price_usdc).toBeGreaterThan(0.012)
    const downgraded = await run(world, tenant, { task, agent_id: undefined, budget: { max_price_usdc: 0.012 } })
    expect(downgraded.status, downgraded.text).toBe(200)
    expect(downgraded.body).toMatchObject({ agent_id: 'default', decision: 'downgrade' })
    expect(downgraded.body.route).toMatchObject({
      agent_id: 'default',
      downgraded_from: advice.body.recommended_agent_id,
      reason: expect.stringContaining("'default', the general lane, takes it."),
    })
    expect(downgraded.body.route.confidence).toBeLessThan(advice.body.confidence)

    const budgeted = await world.post('/api/route', { task, budget: { max_price_usdc: 0.012 } }, tenant.headers)
    expect(budgeted.body).toMatchObject({
      recommended_agent_id: 'default',
      decision: 'downgrade',
      posture: 'constrained',
      reason: downgraded.body.route.reason,
      confidence: downgraded.body.route.confidence,
    })
    expect(budgeted.body.alternatives.map(({ agent_id }: { agent_id: string }) => agent_id)).not.toContain('default')

    const limited = await world.post('/api/route', { task, constraints: { max_cost_usdc: 0.012 } }, tenant.headers)
    expect(limited.body).toMatchObject({ recommended_agent_id: 'default', posture: 'constrained' })
    expect(limited.body.reason).toContain("'default' is the best that fits")
    expect(limited.body.confidence).toBeLessThan(advice.body.confidence)
  })

  test('a price above soft_max_price_usdc warns, and guests can set max_price_usdc too', async () => {
    const tenant = await richTenant(world)
    const withWarning = await run(world, tenant, { budget: { max_price_usdc: 0.02, soft_max_price_usdc: 0.005 } })
    expect(withWarning.body).toMatchObject({ decision: 'warning', budget_outcome: 'warning' })
    const withoutWarning = await run(world, tenant, { budget: { soft_max_price_usdc: 0.02, currency: 'USDC' } })
    expect(withoutWarning.body).toMatchObject({ decision: 'approved', budget_outcome: 'pass' })
    const guest = await world.post('/api/run', {
      task: 'x',
      agent_id: 'comedian-v1',
      budget: { max_price_usdc: 0.001 },
    })
    expect(guest.status).toBe(429)
    expect(guest.body).toMatchObject({
      error: 'budget_exceeded',
      outcome: 'blocked',
      decision_id: null,
      approval_id: null,
    })
  })
})

describe('policies', () => {
  test('both policy shapes can be created, listed, updated and deleted, and a raw key is never stored or shown', async () => {
    const tenant = await richTenant(world)
    const legacyPolicy = await policy(tenant.headers, {
      name: 'No coders',
      rules: [{ field: 'agent_id', op: '==', value: 'coder-v1', effect: 'deny' }],
    })
    expect(legacyPolicy).toMatchObject({
      version: 1,
      status: 'active',
      mode: 'enforce',
      identity_type: 'tenant',
      rules: [{ op: 'eq' }],
      constraints: {},
    })
    const spendPolicy = await policy(tenant.headers, {
      identity_type: 'api_key',
      api_key: tenant.apiKey,
      audit_trail_required: true,
      mode: 'enforce',
      constraints: { max_per_run_usdc: 0.02 },
    })
    expect(spendPolicy).toMatchObject({
      identity_type: 'api_key',
      audit_trail_required: true,
      key_prefix: tenant.apiKey.slice(0, 12),
    })
    const stored = await world.db.selectFrom('policies').selectAll().where('tenant_id', '=', tenant.tenantId).execute()
    expect(JSON.stringify(stored)).not.toContain(tenant.apiKey)
    expect(
      (await world.get('/api/policies', tenant.headers)).body.policies.map((listed: { id: string }) => listed.id),
    ).toEqual([spendPolicy.id, legacyPolicy.id])

    const refusal = await whileSequencing(world, run(world, tenant, { agent_id: 'analyst-v1' }))
    expect(refusal.status).toBe(429)
    const otherKey = await anotherKey(world, tenant)
    expect((await run(world, tenant, { agent_id: 'analyst-v1' }, otherKey)).status).toBe(200)
    const updateResponse = await world.call(
      'PATCH',
      `/api/policies/${spendPolicy.id}`,
      { constraints: { max_per_run_usdc: 0.03 } },
      tenant.headers,
    )
    expect(updateResponse.body).toMatchObject({ version: 2, constraints: { max_per_run_usdc: 0.03 } })
    expect(updateResponse.body.content_hash).not.toBe(spendPolicy.content_hash)
    const allowedResponse = await whileSequencing(world, run(world, tenant, { agent_id: 'analyst-v1' }))
    expect(allowedResponse.status).toBe(200)
    expect(allowedResponse.body.policy_applied).toMatchObject([
      { policy_id: legacyPolicy.id, rule: 'rules[0]', outcome: 'pass' },
      {
        policy_id: spendPolicy.id,
        policy_version: 2,
        rule: 'max_per_run_usdc',
        outcome: 'pass',
        asked: 0.025,
        limit: 0.03,
      },
    ])
    expect(allowedResponse.body.receipt.governance.policy_hash).toMatch(/^sha256:/)
    expect((await whileSequencing(world, run(world, tenant, { agent_id: 'coder-v1' }))).body).toMatchObject({
      error: 'policy_blocked',
      outcome: 'blocked',
    })
    const { body: versionList } = await world.get(`/api/policies/${spendPolicy.id}/versions`, tenant.headers)
    expect(
      versionList.versions.map(({ version, content_hash }: { version: number; content_hash: string }) => [
        version,
        content_hash,
      ]),
    ).toEqual([
      [2, updateResponse.body.content_hash],
      [1, spendPolicy.content_hash],
    ])
    const older = await world.get(`/api/policies/${spendPolicy.id}/versions?limit=1&cursor=2`, tenant.headers)
    expect(older.body).toMatchObject({ versions: [{ version: 1 }], has_more: false })
    expect((await world.call('DELETE', `/api/policies/${legacyPolicy.id}`, undefined, tenant.headers)).status).toBe(200)
    expect((await world.get(`/api/policies/${legacyPolicy.id}`, tenant.headers)).status).toBe(404)
    expect((await whileSequencing(world, run(world, tenant, { agent_id: 'coder-v1' }))).status).toBe(200)
  })

  test('a policy for a key applies to the rotated key', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { api_key: tenant.apiKey, constraints: { denied_agents: ['comedian-v1'] } })
    const me = await world.get('/api/me', tenant.headers)
    const rotateResponse = await world.post(
      `/api/admin/keys/${me.body.key_id}/rotate`,
      {},
      { 'x-admin-key': world.service.adminKey },
    )
    expect(rotateResponse.status, rotateResponse.text).toBe(201)
    const refusal = await run(world, tenant, {}, { 'x-api-key': rotateResponse.body.api_key })
    expect(refusal.status).toBe(429)
  })

  test('warn mode warns, shadow mode only records, and a request can only make the mode stricter', async () => {
    const tenant = await richTenant(world)
    const createdPolicy = await policy(tenant.headers, { mode: 'warn', constraints: { max_per_run_usdc: 0.005 } })
    const withWarning = await run(world, tenant)
    expect(withWarning.body).toMatchObject({
      decision: 'warning',
      policy_applied: [{ outcome: 'warning', verdict: 'blocked' }],
    })
    expect((await run(world, tenant, { policy: { mode: 'shadow' } })).body.decision).toBe('warning')
    expect((await run(world, tenant, { policy: { policy_ids: [createdPolicy.id], mode: 'enforce' } })).status).toBe(429)
    await world.call('PATCH', `/api/policies/${createdPolicy.id}`, { mode: 'shadow' }, tenant.headers)
    expect((await run(world, tenant)).body).toMatchObject({
      decision: 'approved',
      policy_applied: [{ mode: 'shadow', outcome: 'pass', verdict: 'blocked' }],
    })
    await world.call('PATCH', `/api/policies/${createdPolicy.id}`, { mode: 'enforce' }, tenant.headers)
    expect((await run(world, tenant, { policy: { mode: 'warn' } })).status).toBe(429)
    expect((await run(world, tenant, { policy: { policy_ids: ['pol_unknown'] } })).status).toBe(400)
  })

  test('velocity limits count held and spent amounts, and release those of failed runs', async () => {
    const tenant = await richTenant(world)
    const createdPolicy = await policy(tenant.headers, {
      constraints: { max_per_day_usdc: 0.025, max_runs_per_minute: 3 },
    })
    expect((await run(world, tenant)).status).toBe(200)
    world.lane.failing = true
    expect((await run(world, tenant)).status).toBe(500)
    world.lane.failing = false
    expect((await run(world, tenant)).status).toBe(200)
    const refusal = await run(world, tenant)
    expect(refusal.status).toBe(429)
    const result = refusal.body.policy_results.find(({ rule }: { rule: string }) => rule === 'max_per_day_usdc')
    expect(result).toMatchObject({
      policy_id: createdPolicy.id,
      outcome: 'blocked',
      asked: 0.01,
      used: 0.02,
      limit: 0.025,
      smallest_change: { to: 0.03 },
    })
    world.clock.advance(86_400_000)
    expect((await run(world, tenant)).status).toBe(200)
    expect((await run(world, tenant)).status).toBe(200)
    expect(await counterFaults(world)).toEqual([])
  })

  test('velocity limits in warn and shadow mode are counted, and the response shows the result', async () => {
    for (const [mode, decision, outcome] of [
      ['warn', 'warning', 'warning'],
      ['shadow', 'approved', 'pass'],
    ]) {
      const tenant = await richTenant(world)
      await policy(tenant.headers, { mode, constraints: { max_per_day_usdc: 0.015 } })
      expect((await run(world, tenant)).body).toMatchObject({
        decision: 'approved',
        policy_applied: [{ verdict: 'pass' }],
      })
      const responses = await Promise.all([run(world, tenant), run(world, tenant)])
      for (const { body } of responses)
        expect(body).toMatchObject({ decision, policy_applied: [{ mode, verdict: 'blocked', outcome }] })
    }
  })

  test('a policy changed on another node applies to every run admitted afterwards', async () => {
    const tenant = await richTenant(world)
    expect((await run(world, tenant)).status).toBe(200)
    // Changed directly in the database: this process gets no notification, only the version increases.
    const { pool } = world.service.database
    await policy(tenant.headers, { mode: 'shadow', constraints: { max_per_run_usdc: 0.001 } })
    expect((await run(world, tenant)).status).toBe(200)
    await pool.query(`update policies set mode = 'enforce' where tenant_id = $1`, [tenant.tenantId])
    await pool.query(`update governance_versions set version = version + 1 where tenant_id = $1`, [tenant.tenantId])
    expect((await run(world, tenant)).status).toBe(429)
  })
})

describe('budgets', () => {
  test('a budget blocks at its limit, warns at its soft limit, emits threshold events and resets', async () => {
    const tenant = await richTenant(world)
    const [createdBudget] = await budget(tenant.headers, {
      budget_id: 'daily',
      window: 'day',
      limit_usdc: 0.035,
      soft_limit_usdc: 0.015,
      alert_thresholds: [0.5, 80],
    })
    expect(createdBudget).toMatchObject({
      budget_id: 'daily',
      scope: { type: 'tenant', id: tenant.tenantId },
      window: 'day',
      spent_usdc: 0,
      remaining_usdc: 0.035,
      on_breach: 'block',
      version: 1,
    })
    expect((await run(world, tenant)).body).toMatchObject({ decision: 'approved', budget_outcome: 'pass' })
    expect((await run(world, tenant, { budget: { budget_id: 'daily' } })).body).toMatchObject({
      decision: 'warning',
      budget_outcome: 'warning',
    })
    expect((await run(world, tenant)).status).toBe(200)
    const refusal = await run(world, tenant)
    expect(refusal.body).toMatchObject({
      error: 'budget_exceeded',
      outcome: 'blocked',
      decided_by: { budget_id: 'daily' },
    })
    const { body } = await world.get('/api/budgets', tenant.headers)
    expect(body).toMatchObject({
      currency: 'USDC',
      budgets: [{ spent_usdc: 0.03, reserved_usdc: 0, remaining_usdc: 0.005 }],
    })
    const types = await eventsOf(tenant.tenantId)
    expect(types.filter((type) => type === 'budget.threshold_reached')).toHaveLength(2)
    expect(types.filter((type) => type === 'budget.exceeded')).toHaveLength(1)
    const tooLow = await world.post('/api/budgets', { budget_id: 'daily', limit_usdc: 0.02 }, tenant.headers)
    expect([tooLow.status, tooLow.body.error]).toEqual([400, 'invalid_request'])
    await budget(tenant.headers, { budget_id: 'daily', limit_usdc: 0.04 })
    expect((await run(world, tenant)).status).toBe(200)
    world.clock.advance(86_400_000)
    expect((await world.get('/api/budgets', tenant.headers)).body.budgets[0]).toMatchObject({
      spent_usdc: 0,
      version: 2,
    })
    expect((await run(world, tenant)).status).toBe(200)
    expect(await counterFaults(world)).toEqual([])
  })

  test('agent and session budgets apply to their scope, a run budget to each run, and on_breach can downgrade or require review', async () => {
    const tenant = await richTenant(world)
    await budget(tenant.headers, {
      budget_id: 'agent',
      scope: { type: 'agent', id: 'coder-v1' },
      window: 'total',
      limit_usdc: 0.03,
    })
    await budget(tenant.headers, {
      budget_id: 'session',
      scope: { type: 'session', id: 's1' },
      window: 'total',
      limit_usdc: 0.01,
      on_breach: 'review',
    })
    await budget(tenant.headers, { budget_id: 'each', window: 'run', limit_usdc: 0.025 })
    // Without a session nobody could tell whether the budget of the session counts it.
    expect((await run(world, tenant, { agent_id: 'coder-v1' })).body).toMatchObject({
      error: 'policy_blocked',
      code: 'field_required',
      field_required: 'session_id',
      decided_by: { budget_id: 'session' },
    })
    expect((await run(world, tenant, { agent_id: 'coder-v1', session_id: 's3' })).status).toBe(200)
    expect((await run(world, tenant, { agent_id: 'coder-v1', session_id: 's3' })).body).toMatchObject({
      error: 'budget_exceeded',
      decided_by: { budget_id: 'agent' },
    })
    expect((await run(world, tenant, { session_id: 's1' })).status).toBe(200)
    expect((await run(world, tenant, { session_id: 's2' })).status).toBe(200)
    const review = await run(world, tenant, { session_id: 's1' })
    expect(review.body).toMatchObject({ error: 'budget_exceeded', outcome: 'review_required' })
    expect(review.body.approval_id).toMatch(/^apr_/)
    expect((await run(world, tenant, { budget: { budget_id: 'agent' } })).status).toBe(400)

    const cappedTenant = await richTenant(world)
    await budget(cappedTenant.headers, { window: 'total', limit_usdc: 0.012, on_breach: 'downgrade' })
    const task = 'Write a Python function that parses CSV and fix the bug in this code: def f(x): return x +'
    const downgradedResponse = await run(world, cappedTenant, { task, agent_id: undefined })
    expect(downgradedResponse.body, downgradedResponse.text).toMatchObject({
      decision: 'downgrade',
      budget_outcome: 'downgrade',
    })
  })
})

describe('approvals', () => {
  test('a run that needs an approval can be executed once after it is approved', async () => {
    const tenant = await richTenant(world)
    // The events of a run are recorded for those who have subscribed.
    await world.post('/api/webhooks', { url: 'https://example.com/hook', events: ['*'] }, tenant.headers)
    await policy(tenant.headers, { name: 'Ask first', constraints: { require_approval_above_usdc: 0.005 } })
    const pendingResponse = await run(world, tenant)
    expect(pendingResponse.body).toMatchObject({ error: 'policy_blocked', outcome: 'review_required' })
    const repeatedResponse = await run(world, tenant)
    expect(repeatedResponse.body.approval_id).toBe(pendingResponse.body.approval_id)
    const { approval_id, run_id } = pendingResponse.body
    expect(await runsOf(tenant.headers, '?outcome=pending')).toMatchObject([{ run_id }])
    const listResponse = await world.get('/api/approvals', tenant.headers)
    expect(listResponse.body).toMatchObject({
      has_more: false,
      approvals: [
        {
          id: approval_id,
          status: 'pending',
          domain: 'core',
          amount_usdc: 0.01,
          merchant: 'countersign',
          approvals_required: 1,
          approvals: [],
        },
      ],
    })
    expect((await world.get('/api/approvals?domain=rh', tenant.headers)).body).toMatchObject({
      approvals: [],
      see: '/api/rh/receipts',
    })

    expect((await run(world, tenant, { approval_id })).body).toMatchObject({ outcome: 'review_required', approval_id })
    const approve = { approval_id, decision: 'approve', reason: 'fine' }
    expect(
      (await world.post('/api/approvals', { ...approve, action_hash: `sha256:${'0'.repeat(64)}` }, tenant.headers))
        .status,
    ).toBe(400)
    const resolution = await world.post(
      '/api/approvals',
      { ...approve, action_hash: listResponse.body.approvals[0].action_hash },
      tenant.headers,
    )
    expect(resolution.body).toMatchObject({
      approval: { status: 'approved', approvals: [{ decision: 'approve' }] },
      run: { run_id, outcome: 'approved' },
    })
    expect((await world.post('/api/approvals', approve, tenant.headers)).status).toBe(409)
    expect((await run(world, tenant, { approval_id, agent_id: 'writer-v1' })).status).toBe(409)

    world.lane.failing = true
    expect((await run(world, tenant, { approval_id })).status).toBe(500)
    world.lane.failing = false
    const completedResponse = await run(world, tenant, { approval_id })
    expect(completedResponse.status, completedResponse.text).toBe(200)
    expect(completedResponse.body.receipt.governance.approval_id).toBe(approval_id)
    const replayedResponse = await run(world, tenant, { approval_id })
    expect(replayedResponse.status).toBe(200)
    expect(replayedResponse.text).toBe(completedResponse.text)
    const { body: jwks } = await world.get('/.well-known/jwks.json')
    expect(verifyReceipt(completedResponse.body.receipt, { jwks }).ok).toBe(true)
    expect(await eventsOf(tenant.tenantId)).toEqual(
      expect.arrayContaining(['approval.requested', 'approval.approved', 'run.completed']),
    )
  })

  test('two approvals by other keys are required when the policy says so, and one rejection is final', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, {
      constraints: { require_approval_above_usdc: 0, approvals_required: 2, separate_approver: true },
    })
    const [firstKey, secondKey] = [await anotherKey(world, tenant), await anotherKey(world, tenant)]
    const pendingResponse = await run(world, tenant)
    const approve = { approval_id: pendingResponse.body.approval_id, decision: 'approve' }
    expect((await world.post('/api/approvals', approve, tenant.headers)).status).toBe(403)
    expect((await world.post('/api/approvals', approve, firstKey)).body.approval).toMatchObject({
      status: 'pending',
      approvals_required: 2,
    })
    expect((await world.post('/api/approvals', approve, firstKey)).status).toBe(409)
    expect((await world.post('/api/approvals', approve, secondKey)).body.approval.status).toBe('approved')
    const completedResponse = await run(world, tenant, { approval_id: approve.approval_id })
    expect(completedResponse.body.run_id).toBe(pendingResponse.body.run_id)

    const otherResponse = await run(world, tenant, { task: 'Another joke.' })
    const rejectedResponse = await world.post(
      '/api/approvals',
      { approval_id: otherResponse.body.approval_id, decision: 'reject' },
      firstKey,
    )
    expect(rejectedResponse.body).toMatchObject({
      approval: { status: 'rejected', resolution: 'rejected' },
      run: { outcome: 'blocked' },
    })
    const refusal = await run(world, tenant, { task: 'Another joke.', approval_id: otherResponse.body.approval_id })
    expect(refusal.body).toMatchObject({ error: 'policy_blocked', outcome: 'rejected' })
  })

  test('an approval that expires undecided is rejected, and an expired approval cannot be used (M11)', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
    const expiredApproval = (await run(world, tenant, { task: 'late' })).body
    const approvedInTime = (await run(world, tenant, { task: 'just in' })).body
    world.clock.advance(86_400_000 - 1)
    expect(
      (
        await world.post(
          '/api/approvals',
          { approval_id: approvedInTime.approval_id, decision: 'approve' },
          tenant.headers,
        )
      ).status,
    ).toBe(200)
    world.clock.advance(1)
    expect(
      (
        await world.post(
          '/api/approvals',
          { approval_id: expiredApproval.approval_id, decision: 'approve' },
          tenant.headers,
        )
      ).status,
    ).toBe(409)
    expect((await run(world, tenant, { task: 'just in', approval_id: approvedInTime.approval_id })).status).toBe(410)
    await world.service.governance.sweepExpiredApprovals()
    const { body } = await world.get('/api/approvals?status=all', tenant.headers)
    expect(
      body.approvals.map(({ status, resolution }: { status: string; resolution: string }) => [status, resolution]),
    ).toEqual([
      ['approved', 'approved'],
      ['rejected', 'expired'],
    ])
    expect((await runsOf(tenant.headers)).map(({ outcome }: { outcome: string }) => outcome)).toEqual([
      'blocked',
      'blocked',
    ])
  })
})

test('of many concurrent requests with one approval only one run is executed', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
  const { approval_id, run_id } = (await run(world, tenant)).body
  await world.post('/api/approvals', { approval_id, decision: 'approve' }, tenant.headers)
  const responses = await Promise.all(Array.from({ length: 30 }, () => run(world, tenant, { approval_id })))
  // The others wait for the answer of the one that was admitted.
  expect(responses.map(({ status }) => status)).toEqual(Array(30).fill(200))
  expect(new Set(responses.map(({ text }) => text)).size).toBe(1)
  expect(responses[0]!.body.run_id).toBe(run_id)
})

test('fields in the body of an approval cannot change what is approved (M12)', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
  const { approval_id } = (await run(world, tenant)).body
  const before = await world.get(`/api/approvals/${approval_id}`, tenant.headers)
  const forgedFields = fc.record(
    {
      amount_usdc: fc.double({ noNaN: true, noDefaultInfinity: true }),
      agent_id: fc.string(),
      merchant: fc.string(),
      expires_at: fc.constant('2099-01-01T00:00:00Z'),
      approved_by: fc.string(),
      status: fc.constantFrom('approved', 'pending'),
      approvals_required: fc.integer(),
      tenant_id: fc.string(),
      action_hash: fc.string(),
      decision: fc.constantFrom('maybe', 'APPROVE', ''),
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(
      forgedFields.filter((body) => Object.keys(body).length > 0),
      async (body) => {
        const answer = await world.post('/api/approvals', { approval_id, decision: 'approve', ...body }, tenant.headers)
        expect(answer.status, answer.text).toBe(400)
      },
    ),
    { numRuns: 40 },
  )
  expect((await world.get(`/api/approvals/${approval_id}`, tenant.headers)).text).toBe(before.text)
})

describe('overrides', () => {
  test('an override needs a denial and the mandate scope, and works once for its agent, amount and merchant (M9)', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { denied_agents: ['coder-v1'], max_per_run_usdc: 0.02 } })
    const authorization = {
      agent_id: 'coder-v1',
      amount_usdc: 0.025,
      merchant: 'countersign',
      reason: 'release night',
      expires_in_seconds: 60,
    }
    expect((await world.post('/api/authorize', authorization, tenant.headers)).status).toBe(400)
    const denial = await run(world, tenant, { agent_id: 'coder-v1' })
    const keyWithoutMandate = await anotherKey(world, tenant, ['read', 'run'])
    expect((await world.post('/api/authorize', authorization, keyWithoutMandate)).status).toBe(403)
    for (const mismatch of [
      { amount_usdc: 0.024 },
      { merchant: 'acme' },
      { agent_id: 'writer-v1' },
      { denied_decision_id: 'dec_none' },
    ])
      expect((await world.post('/api/authorize', { ...authorization, ...mismatch }, tenant.headers)).status).toBe(400)
    const override = await world.post(
      '/api/authorize',
      { ...authorization, denied_decision_id: denial.body.decision_id },
      tenant.headers,
    )
    expect(override.body).toMatchObject({
      status: 'issued',
      single_use: true,
      scope: { agent_id: 'coder-v1', amount_usdc: 0.025, merchant: 'countersign' },
    })
    const override_token = override.body.token
    expect((await run(world, tenant, { agent_id: 'analyst-v1', override_token })).status).toBe(400)
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token: `${override_token}x` })).status).toBe(400)
    const responses = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        run(world, tenant, { task: `Task ${index}`, agent_id: 'coder-v1', override_token }),
      ),
    )
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(responses.filter(({ status }) => status === 409)).toHaveLength(99)
    const completed = responses.find(({ status }) => status === 200)!.body
    expect(completed.receipt.governance.override_id).toBe(override.body.authorization_id)
    expect(completed.policy_applied.filter(({ granted_by }: { granted_by?: string }) => granted_by)).toHaveLength(2)
    const audit = await readAudits(world.db, tenant.tenantId)
    expect(audit.map((row) => row.type)).toContain('override.issued')
    expect(audit.find((row) => row.type === 'run.admitted')!.data).toMatchObject({
      override_id: override.body.authorization_id,
    })
  })

  test('an override expires, can be used again after an uncharged failure, and cannot exceed a hard limit', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { denied_agents: ['coder-v1'] } })
    const authorization = {
      agent_id: 'coder-v1',
      amount_usdc: 0.025,
      merchant: 'countersign',
      reason: 'x',
      expires_in_seconds: 60,
    }
    await run(world, tenant, { agent_id: 'coder-v1' })
    const token = async () => (await world.post('/api/authorize', authorization, tenant.headers)).body.token
    const late = await token()
    world.clock.advance(60_000)
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token: late })).status).toBe(410)
    const override_token = await token()
    world.lane.failing = true
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token })).status).toBe(500)
    world.lane.failing = false
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token })).status).toBe(200)
    await budget(tenant.headers, { window: 'total', limit_usdc: 0.01 })
    const refusal = await run(world, tenant, { agent_id: 'coder-v1', override_token: await token() })
    expect(refusal.body).toMatchObject({ error: 'budget_exceeded', outcome: 'blocked' })
    expect(
      (
        await world.post(
          '/api/authorize',
          { ...authorization, denied_decision_id: refusal.body.decision_id },
          tenant.headers,
        )
      ).status,
    ).toBe(400)
  })
})

test('a frozen agent is refused and cannot be overridden', async () => {
  const tenant = await richTenant(world)
  await world.post(
    '/api/control-tower',
    { action: 'freeze', agent_id: 'comedian-v1', reason: 'under investigation' },
    tenant.headers,
  )
  const refusal = await run(world, tenant)
  expect(refusal.body).toMatchObject({
    error: 'policy_blocked',
    outcome: 'blocked',
    decided_by: { rule: 'agent_frozen' },
  })
  expect(
    (
      await world.post(
        '/api/authorize',
        { agent_id: 'comedian-v1', amount_usdc: 0.01, merchant: 'countersign', reason: 'x' },
        tenant.headers,
      )
    ).status,
  ).toBe(400)
  await world.post('/api/control-tower', { action: 'unfreeze', agent_id: 'comedian-v1', reason: 'ok' }, tenant.headers)
  expect((await run(world, tenant)).status).toBe(200)
})

test('each proposed action of a loop is evaluated', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, {
    constraints: { denied_merchants: ['casino'], max_leverage: 2, require_approval_above_usdc: 5 },
  })
  const loop = await world.post(
    '/api/loop',
    {
      input: 'Plan the day.',
      payment: { wallet_id: tenant.walletId },
      proposed_actions: [
        { type: 'pay', merchant: 'casino', amount_usdc: 1 },
        { type: 'pay', merchant: 'shop', amount_usdc: 6 },
        { type: 'trade', leverage: 3 },
        { type: 'note', text: 'hi' },
      ],
    },
    tenant.headers,
  )
  expect(loop.status, loop.text).toBe(200)
  expect(loop.body.actions.map(({ decision }: { decision: string }) => decision)).toEqual([
    'blocked',
    'review_required',
    'blocked',
    'pass',
  ])
})

test('a proposed action never passes because its amount or merchant was not understood', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { denied_merchants: ['evil.example'], max_per_run_usdc: 0.02 } })
  const cases: [Record<string, unknown>, string, string?][] = [
    [{ amount: 500 }, 'blocked'],
    [{ amount: '500' }, 'blocked'],
    [{ amount_usdc: '500' }, 'blocked'],
    [{ price_usdc: 500 }, 'blocked'],
    [{ amount_usdc: 0.001, price_usdc: '0.03' }, 'blocked'],
    [{ amount_usdc: '0.01' }, 'pass'],
    [{ amount: '10000', amount_usdc: 0.01 }, 'pass'],
    [{ amount_usdc: 0.001, merchant: { id: 'evil.example' } }, 'blocked'],
    [{ amount_usdc: 0.001, merchant: { id: 'shop', url: 'https://evil.example/pay' } }, 'blocked'],
    [{ amount_usdc: 0.001, merchant: { url: 'https://evil.example/pay' } }, 'blocked'],
    [{ amount_usdc: 0.001, merchant: { id: 'shop' } }, 'pass'],
    [{ amount_usdc: 'five hundred' }, 'review_required', 'amount_usdc'],
    [{ amount: -500 }, 'review_required', 'amount'],
    [{ amount: [500] }, 'review_required', 'amount'],
    [{ price_usdc: 0.0000001 }, 'review_required', 'price_usdc'],
    [{ notional_usdc: '1e9' }, 'review_required', 'notional_usdc'],
    [{ merchant: {} }, 'review_required', 'merchant'],
    [{ merchant: { id: 7 } }, 'review_required', 'merchant'],
    [{ merchant: ['evil.example'] }, 'review_required', 'merchant'],
    [{ merchant: { id: 'shop', url: 'not a url' } }, 'review_required', 'merchant'],
    [{ amount: null, merchant: null, text: 'hi' }, 'pass'],
  ]
  const loop = await world.post(
    '/api/loop',
    {
      input: 'Plan the day.',
      agent_id: 'default',
      payment: { wallet_id: tenant.walletId },
      proposed_actions: cases.map(([action]) => ({ type: 'pay', ...action })),
    },
    tenant.headers,
  )
  expect(loop.status, loop.text).toBe(200)
  const decisions = loop.body.actions.map(({ decision }: { decision: string }) => decision)
  expect(cases.map(([action], index) => [action, decisions[index]])).toEqual(
    cases.map(([action, decision]) => [action, decision]),
  )
  for (const [index, [, , field]] of cases.entries()) {
    if (field === undefined) continue
    const [result] = loop.body.actions[index].policy_results
    expect(result).toMatchObject({
      rule: field,
      reason: expect.stringContaining(`The field '${field}' of this action`),
    })
  }
})

test('a refused run is not charged on the chain (M8)', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { denied_agents: ['comedian-v1'] } })
  const payer = await world.payer(1)
  const response = await payer.fetch(`${world.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...tenant.headers },
    body: JSON.stringify({ task: 'Tell me a joke.', agent_id: 'comedian-v1' }),
  })
  expect(response.status).toBe(429)
  expect(await world.balance(payer.address)).toBe(1_000_000n)
})
