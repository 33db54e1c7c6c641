import { verifyReceipt } from '@countersign/proof'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { anotherKey, counterFaults, openWorld, richTenant, run, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

const policy = async (headers: Record<string, string>, body: Record<string, unknown>) => {
  const made = await world.post('/api/policies', body, headers)
  expect(made.status, made.text).toBe(201)
  return made.body
}
const budget = async (headers: Record<string, string>, body: Record<string, unknown>) => {
  const made = await world.post('/api/budgets', body, headers)
  expect(made.status, made.text).toBe(200)
  return made.body.budgets
}
const runsOf = async (headers: Record<string, string>, query = '') =>
  (await world.get(`/api/runs${query}`, headers)).body.runs
const eventsOf = async (tenantId: string) =>
  (
    await world.db
      .selectFrom('events')
      .select(['type', 'data'])
      .where('tenant_id', '=', tenantId)
      .orderBy('id')
      .execute()
  ).map((row) => row.type)

describe('the request’s own budget', () => {
  test('a lane above max_price_usdc is refused when it was named, with the smallest change', async () => {
    const tenant = await richTenant(world)
    const refused = await run(world, tenant, { agent_id: 'coder-v1', budget: { max_price_usdc: 0.02 } })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(refused.body).toMatchObject({
      error: 'budget_exceeded',
      outcome: 'blocked',
      approval_id: null,
      smallest_change: [{ path: 'budget.max_price_usdc', from: 0.02, to: 0.025 }],
    })
    expect(refused.body.decision_id).toMatch(/^dec_/)
    const why = await world.get(`/api/decisions/${refused.body.decision_id}`, tenant.headers)
    expect(why.body).toMatchObject({
      run_id: refused.body.run_id,
      overridable: false,
      policy_results: refused.body.policy_results,
    })
    const { body: listed } = await world.get('/api/decisions?outcome=blocked', tenant.headers)
    expect(listed).toEqual({ decisions: [why.body], has_more: false, next_cursor: null })
    expect(await runsOf(tenant.headers, '?outcome=blocked')).toMatchObject([
      { run_id: refused.body.run_id, outcome: 'blocked', receipt_url: null },
    ])
  })

  test('an unnamed lane is replaced by one that fits, unless strict', async () => {
    const tenant = await richTenant(world)
    const task = 'Write a Python function that parses CSV and fix the bug in this code: def f(x): return x +'
    const free = await run(world, tenant, { task, agent_id: undefined, payment: { wallet_id: tenant.walletId } })
    expect(free.body.price_usdc).toBeGreaterThan(0.012)
    const capped = await run(world, tenant, { task, agent_id: undefined, budget: { max_price_usdc: 0.012 } })
    expect(capped.status, capped.text).toBe(200)
    expect(capped.body).toMatchObject({ decision: 'downgrade', budget_outcome: 'downgrade' })
    expect(capped.body.price_usdc).toBeLessThanOrEqual(0.012)
    expect(capped.body.route.downgraded_from).toBe(free.body.agent_id)
    const strict = await run(world, tenant, {
      task,
      agent_id: undefined,
      budget: { max_price_usdc: 0.012, strict: true },
    })
    expect([strict.status, strict.body.error]).toEqual([429, 'budget_exceeded'])
    const none = await run(world, tenant, { task, agent_id: undefined, budget: { max_price_usdc: 0.001 } })
    expect(none.status).toBe(429)
  })

  test('passing soft_max_price_usdc warns; a guest may set a ceiling too', async () => {
    const tenant = await richTenant(world)
    const warned = await run(world, tenant, { budget: { max_price_usdc: 0.02, soft_max_price_usdc: 0.005 } })
    expect(warned.body).toMatchObject({ decision: 'warning', budget_outcome: 'warning' })
    const passed = await run(world, tenant, { budget: { soft_max_price_usdc: 0.02, currency: 'USDC' } })
    expect(passed.body).toMatchObject({ decision: 'approved', budget_outcome: 'pass' })
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
  test('both shapes are created, versioned, listed, changed and deleted; a raw key is never stored or shown', async () => {
    const tenant = await richTenant(world)
    const legacy = await policy(tenant.headers, {
      name: 'No coders',
      rules: [{ field: 'agent_id', op: '==', value: 'coder-v1', effect: 'deny' }],
    })
    expect(legacy).toMatchObject({
      version: 1,
      status: 'active',
      mode: 'enforce',
      identity_type: 'tenant',
      rules: [{ op: 'eq' }],
      constraints: {},
    })
    const spend = await policy(tenant.headers, {
      identity_type: 'api_key',
      api_key: tenant.apiKey,
      audit_trail_required: true,
      mode: 'enforce',
      constraints: { max_per_run_usdc: 0.02 },
    })
    expect(spend).toMatchObject({
      identity_type: 'api_key',
      audit_trail_required: true,
      key_prefix: tenant.apiKey.slice(0, 12),
    })
    const stored = await world.db.selectFrom('policies').selectAll().where('tenant_id', '=', tenant.tenantId).execute()
    expect(JSON.stringify(stored)).not.toContain(tenant.apiKey)
    expect(
      (await world.get('/api/policies', tenant.headers)).body.policies.map((one: { id: string }) => one.id),
    ).toEqual([spend.id, legacy.id])

    expect((await run(world, tenant, { agent_id: 'analyst-v1' })).status).toBe(429)
    const other = await anotherKey(world, tenant)
    expect((await run(world, tenant, { agent_id: 'analyst-v1' }, other)).status).toBe(200)
    const changed = await world.call(
      'PATCH',
      `/api/policies/${spend.id}`,
      { constraints: { max_per_run_usdc: 0.03 } },
      tenant.headers,
    )
    expect(changed.body).toMatchObject({ version: 2, constraints: { max_per_run_usdc: 0.03 } })
    expect(changed.body.content_hash).not.toBe(spend.content_hash)
    const allowed = await run(world, tenant, { agent_id: 'analyst-v1' })
    expect(allowed.status).toBe(200)
    expect(allowed.body.policy_applied).toMatchObject([
      { policy_id: legacy.id, rule: 'rules[0]', outcome: 'pass' },
      { policy_id: spend.id, policy_version: 2, rule: 'max_per_run_usdc', outcome: 'pass', asked: 0.025, limit: 0.03 },
    ])
    expect(allowed.body.receipt.governance.policy_hash).toMatch(/^sha256:/)
    expect((await run(world, tenant, { agent_id: 'coder-v1' })).body).toMatchObject({
      error: 'policy_blocked',
      outcome: 'blocked',
    })
    const { body: said } = await world.get(`/api/policies/${spend.id}/versions`, tenant.headers)
    expect(
      said.versions.map((one: { version: number; content_hash: string }) => [one.version, one.content_hash]),
    ).toEqual([
      [2, changed.body.content_hash],
      [1, spend.content_hash],
    ])
    const older = await world.get(`/api/policies/${spend.id}/versions?limit=1&cursor=2`, tenant.headers)
    expect(older.body).toMatchObject({ versions: [{ version: 1 }], has_more: false })
    expect((await world.call('DELETE', `/api/policies/${legacy.id}`, undefined, tenant.headers)).status).toBe(200)
    expect((await world.get(`/api/policies/${legacy.id}`, tenant.headers)).status).toBe(404)
    expect((await run(world, tenant, { agent_id: 'coder-v1' })).status).toBe(200)
  })

  test('a policy for a key follows the key through its rotation', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { api_key: tenant.apiKey, constraints: { denied_agents: ['comedian-v1'] } })
    const me = await world.get('/api/me', tenant.headers)
    const rotated = await world.post(
      `/api/admin/keys/${me.body.key_id}/rotate`,
      {},
      { 'x-admin-key': world.service.adminKey },
    )
    expect(rotated.status, rotated.text).toBe(201)
    const refused = await run(world, tenant, {}, { 'x-api-key': rotated.body.api_key })
    expect(refused.status).toBe(429)
  })

  test('warn lets pass and warns, shadow only records, and a request can tighten but never loosen', async () => {
    const tenant = await richTenant(world)
    const made = await policy(tenant.headers, { mode: 'warn', constraints: { max_per_run_usdc: 0.005 } })
    const warned = await run(world, tenant)
    expect(warned.body).toMatchObject({
      decision: 'warning',
      policy_applied: [{ outcome: 'warning', verdict: 'blocked' }],
    })
    expect((await run(world, tenant, { policy: { mode: 'shadow' } })).body.decision).toBe('warning')
    expect((await run(world, tenant, { policy: { policy_ids: [made.id], mode: 'enforce' } })).status).toBe(429)
    await world.call('PATCH', `/api/policies/${made.id}`, { mode: 'shadow' }, tenant.headers)
    expect((await run(world, tenant)).body).toMatchObject({
      decision: 'approved',
      policy_applied: [{ mode: 'shadow', outcome: 'pass', verdict: 'blocked' }],
    })
    await world.call('PATCH', `/api/policies/${made.id}`, { mode: 'enforce' }, tenant.headers)
    expect((await run(world, tenant, { policy: { mode: 'warn' } })).status).toBe(429)
    expect((await run(world, tenant, { policy: { policy_ids: ['pol_unknown'] } })).status).toBe(400)
  })

  test('velocity counts what runs hold and spend, and gives back what failed', async () => {
    const tenant = await richTenant(world)
    const made = await policy(tenant.headers, { constraints: { max_per_day_usdc: 0.025, max_runs_per_minute: 3 } })
    expect((await run(world, tenant)).status).toBe(200)
    world.lane.failing = true
    expect((await run(world, tenant)).status).toBe(500)
    world.lane.failing = false
    expect((await run(world, tenant)).status).toBe(200)
    const refused = await run(world, tenant)
    expect(refused.status).toBe(429)
    const result = refused.body.policy_results.find((one: { rule: string }) => one.rule === 'max_per_day_usdc')
    expect(result).toMatchObject({
      policy_id: made.id,
      outcome: 'blocked',
      asked: 0.01,
      used: 0.02,
      limit: 0.025,
      smallest_change: { to: 0.03 },
    })
    world.clock.advance(86_400_000)
    expect((await run(world, tenant)).status).toBe(200)
    for (let count = 0; count < 1; count += 1) expect((await run(world, tenant)).status).toBe(200)
    expect(await counterFaults(world)).toEqual([])
  })

  test('a velocity rule that only warns is counted all the same, and the answer says what was counted', async () => {
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
      const racing = await Promise.all([run(world, tenant), run(world, tenant)])
      for (const { body } of racing)
        expect(body).toMatchObject({ decision, policy_applied: [{ mode, verdict: 'blocked', outcome }] })
    }
  })

  test('a policy on another node is in force for everything admitted after it was created', async () => {
    const tenant = await richTenant(world)
    expect((await run(world, tenant)).status).toBe(200)
    // Behind the back of this process: no cache is told, only the version moves on.
    const { pool } = world.service.database
    await policy(tenant.headers, { mode: 'shadow', constraints: { max_per_run_usdc: 0.001 } })
    expect((await run(world, tenant)).status).toBe(200)
    await pool.query(`update policies set mode = 'enforce' where tenant_id = $1`, [tenant.tenantId])
    await pool.query(`update governance_versions set version = version + 1 where tenant_id = $1`, [tenant.tenantId])
    expect((await run(world, tenant)).status).toBe(429)
  })
})

describe('budgets', () => {
  test('hold, spend, release; hard limit, soft warning, thresholds, reset', async () => {
    const tenant = await richTenant(world)
    const [made] = await budget(tenant.headers, {
      budget_id: 'daily',
      window: 'day',
      limit_usdc: 0.035,
      soft_limit_usdc: 0.015,
      alert_thresholds: [0.5, 80],
    })
    expect(made).toMatchObject({
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
    const refused = await run(world, tenant)
    expect(refused.body).toMatchObject({
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
    const low = await world.post('/api/budgets', { budget_id: 'daily', limit_usdc: 0.02 }, tenant.headers)
    expect([low.status, low.body.error]).toEqual([400, 'invalid_request'])
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

  test('agent and session budgets bind only theirs; a run budget limits each run; downgrade and review on breach', async () => {
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
    expect((await run(world, tenant, { agent_id: 'coder-v1' })).status).toBe(200)
    expect((await run(world, tenant, { agent_id: 'coder-v1' })).body).toMatchObject({
      error: 'budget_exceeded',
      decided_by: { budget_id: 'agent' },
    })
    expect((await run(world, tenant, { session_id: 's1' })).status).toBe(200)
    expect((await run(world, tenant, { session_id: 's2' })).status).toBe(200)
    const review = await run(world, tenant, { session_id: 's1' })
    expect(review.body).toMatchObject({ error: 'budget_exceeded', outcome: 'review_required' })
    expect(review.body.approval_id).toMatch(/^apr_/)
    expect((await run(world, tenant, { budget: { budget_id: 'agent' } })).status).toBe(400)

    const capped = await richTenant(world)
    await budget(capped.headers, { window: 'total', limit_usdc: 0.012, on_breach: 'downgrade' })
    const task = 'Write a Python function that parses CSV and fix the bug in this code: def f(x): return x +'
    const downgraded = await run(world, capped, { task, agent_id: undefined })
    expect(downgraded.body, downgraded.text).toMatchObject({ decision: 'downgrade', budget_outcome: 'downgrade' })
  })
})

describe('approvals', () => {
  test('a run that wants a person waits, is approved, runs once under its own id, and not again', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { name: 'Ask first', constraints: { require_approval_above_usdc: 0.005 } })
    const asked = await run(world, tenant)
    expect(asked.body).toMatchObject({ error: 'policy_blocked', outcome: 'review_required' })
    const again = await run(world, tenant)
    expect(again.body.approval_id).toBe(asked.body.approval_id)
    const { approval_id, run_id } = asked.body
    expect(await runsOf(tenant.headers, '?outcome=pending')).toMatchObject([{ run_id }])
    const listed = await world.get('/api/approvals', tenant.headers)
    expect(listed.body).toMatchObject({
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
    const done = await world.post(
      '/api/approvals',
      { ...approve, action_hash: listed.body.approvals[0].action_hash },
      tenant.headers,
    )
    expect(done.body).toMatchObject({
      approval: { status: 'approved', approvals: [{ decision: 'approve' }] },
      run: { run_id, outcome: 'approved' },
    })
    expect((await world.post('/api/approvals', approve, tenant.headers)).status).toBe(409)
    expect((await run(world, tenant, { approval_id, agent_id: 'writer-v1' })).status).toBe(409)

    world.lane.failing = true
    expect((await run(world, tenant, { approval_id })).status).toBe(500)
    world.lane.failing = false
    const ran = await run(world, tenant, { approval_id })
    expect(ran.status, ran.text).toBe(200)
    expect(ran.body.receipt.governance.approval_id).toBe(approval_id)
    expect((await run(world, tenant, { approval_id })).status).toBe(409)
    const { body: jwks } = await world.get('/.well-known/jwks.json')
    expect(verifyReceipt(ran.body.receipt, { jwks }).ok).toBe(true)
    expect(await eventsOf(tenant.tenantId)).toEqual(
      expect.arrayContaining(['approval.requested', 'approval.approved', 'run.completed']),
    )
  })

  test('two of the keys, and not the one that asked; one rejection ends it', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, {
      constraints: { require_approval_above_usdc: 0, approvals_required: 2, separate_approver: true },
    })
    const [one, two] = [await anotherKey(world, tenant), await anotherKey(world, tenant)]
    const asked = await run(world, tenant)
    const approve = { approval_id: asked.body.approval_id, decision: 'approve' }
    expect((await world.post('/api/approvals', approve, tenant.headers)).status).toBe(403)
    expect((await world.post('/api/approvals', approve, one)).body.approval).toMatchObject({
      status: 'pending',
      approvals_required: 2,
    })
    expect((await world.post('/api/approvals', approve, one)).status).toBe(409)
    expect((await world.post('/api/approvals', approve, two)).body.approval.status).toBe('approved')
    const ran = await run(world, tenant, { approval_id: approve.approval_id })
    expect(ran.body.run_id).toBe(asked.body.run_id)

    const other = await run(world, tenant, { task: 'Another joke.' })
    const rejected = await world.post(
      '/api/approvals',
      { approval_id: other.body.approval_id, decision: 'reject' },
      one,
    )
    expect(rejected.body).toMatchObject({
      approval: { status: 'rejected', resolution: 'rejected' },
      run: { outcome: 'blocked' },
    })
    const refused = await run(world, tenant, { task: 'Another joke.', approval_id: other.body.approval_id })
    expect(refused.body).toMatchObject({ error: 'policy_blocked', outcome: 'rejected' })
  })

  test('what is not decided in time is rejected, and what is approved in time is of no use after it (M11)', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
    const late = (await run(world, tenant, { task: 'late' })).body
    const justIn = (await run(world, tenant, { task: 'just in' })).body
    world.clock.advance(86_400_000 - 1)
    expect(
      (await world.post('/api/approvals', { approval_id: justIn.approval_id, decision: 'approve' }, tenant.headers))
        .status,
    ).toBe(200)
    world.clock.advance(1)
    expect(
      (await world.post('/api/approvals', { approval_id: late.approval_id, decision: 'approve' }, tenant.headers))
        .status,
    ).toBe(409)
    expect((await run(world, tenant, { task: 'just in', approval_id: justIn.approval_id })).status).toBe(410)
    await world.service.governance.sweepExpiredApprovals()
    const { body } = await world.get('/api/approvals?status=all', tenant.headers)
    expect(body.approvals.map((one: { status: string; resolution: string }) => [one.status, one.resolution])).toEqual([
      ['approved', 'approved'],
      ['rejected', 'expired'],
    ])
    expect((await runsOf(tenant.headers)).map((one: { outcome: string }) => one.outcome)).toEqual([
      'blocked',
      'blocked',
    ])
  })
})

test('an approved run is executed once, however many try at once', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
  const { approval_id, run_id } = (await run(world, tenant)).body
  await world.post('/api/approvals', { approval_id, decision: 'approve' }, tenant.headers)
  const all = await Promise.all(Array.from({ length: 30 }, () => run(world, tenant, { approval_id })))
  expect(all.map((one) => one.status).sort()).toEqual([200, ...Array(29).fill(409)])
  expect(all.find((one) => one.status === 200)!.body.run_id).toBe(run_id)
})

test('nothing in the body of an approval changes what is approved (M12)', async () => {
  const tenant = await richTenant(world)
  await policy(tenant.headers, { constraints: { require_approval_above_usdc: 0 } })
  const { approval_id } = (await run(world, tenant)).body
  const before = await world.get(`/api/approvals/${approval_id}`, tenant.headers)
  const echo = fc.record(
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
      echo.filter((body) => Object.keys(body).length > 0),
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
  test('only against a denial, only for who holds mandates, once, and for exactly its agent, amount and merchant (M9)', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { denied_agents: ['coder-v1'], max_per_run_usdc: 0.02 } })
    const wanted = {
      agent_id: 'coder-v1',
      amount_usdc: 0.025,
      merchant: 'countersign',
      reason: 'release night',
      expires_in_seconds: 60,
    }
    expect((await world.post('/api/authorize', wanted, tenant.headers)).status).toBe(400)
    const denied = await run(world, tenant, { agent_id: 'coder-v1' })
    const weak = await anotherKey(world, tenant, ['read', 'run', 'control'])
    expect((await world.post('/api/authorize', wanted, weak)).status).toBe(403)
    for (const wrong of [
      { amount_usdc: 0.024 },
      { merchant: 'acme' },
      { agent_id: 'writer-v1' },
      { denied_decision_id: 'dec_none' },
    ])
      expect((await world.post('/api/authorize', { ...wanted, ...wrong }, tenant.headers)).status).toBe(400)
    const issued = await world.post(
      '/api/authorize',
      { ...wanted, denied_decision_id: denied.body.decision_id },
      tenant.headers,
    )
    expect(issued.body).toMatchObject({
      status: 'issued',
      single_use: true,
      scope: { agent_id: 'coder-v1', amount_usdc: 0.025, merchant: 'countersign' },
    })
    const override_token = issued.body.token
    expect((await run(world, tenant, { agent_id: 'analyst-v1', override_token })).status).toBe(400)
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token: `${override_token}x` })).status).toBe(400)
    const all = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        run(world, tenant, { task: `Task ${index}`, agent_id: 'coder-v1', override_token }),
      ),
    )
    expect(all.filter((one) => one.status === 200)).toHaveLength(1)
    expect(all.filter((one) => one.status === 409)).toHaveLength(99)
    const won = all.find((one) => one.status === 200)!.body
    expect(won.receipt.governance.override_id).toBe(issued.body.authorization_id)
    expect(won.policy_applied.filter((one: { granted_by?: string }) => one.granted_by)).toHaveLength(2)
    const audit = await world.db
      .selectFrom('audit_events')
      .select(['type', 'data'])
      .where('tenant_id', '=', tenant.tenantId)
      .execute()
    expect(audit.map((row) => row.type)).toContain('override.issued')
    expect(audit.find((row) => row.type === 'run.admitted')!.data).toMatchObject({
      override_id: issued.body.authorization_id,
    })
  })

  test('it runs out, it comes back when the run fails uncharged, and it cannot pass a hard limit', async () => {
    const tenant = await richTenant(world)
    await policy(tenant.headers, { constraints: { denied_agents: ['coder-v1'] } })
    const wanted = {
      agent_id: 'coder-v1',
      amount_usdc: 0.025,
      merchant: 'countersign',
      reason: 'x',
      expires_in_seconds: 60,
    }
    await run(world, tenant, { agent_id: 'coder-v1' })
    const token = async () => (await world.post('/api/authorize', wanted, tenant.headers)).body.token
    const late = await token()
    world.clock.advance(60_000)
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token: late })).status).toBe(410)
    const override_token = await token()
    world.lane.failing = true
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token })).status).toBe(500)
    world.lane.failing = false
    expect((await run(world, tenant, { agent_id: 'coder-v1', override_token })).status).toBe(200)
    await budget(tenant.headers, { window: 'total', limit_usdc: 0.01 })
    const refused = await run(world, tenant, { agent_id: 'coder-v1', override_token: await token() })
    expect(refused.body).toMatchObject({ error: 'budget_exceeded', outcome: 'blocked' })
    expect(
      (await world.post('/api/authorize', { ...wanted, denied_decision_id: refused.body.decision_id }, tenant.headers))
        .status,
    ).toBe(400)
  })
})

test('a frozen agent is refused at once, and an override does not thaw it', async () => {
  const tenant = await richTenant(world)
  await world.post(
    '/api/control-tower',
    { action: 'freeze', agent_id: 'comedian-v1', reason: 'jokes too good' },
    tenant.headers,
  )
  const refused = await run(world, tenant)
  expect(refused.body).toMatchObject({
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

test('proposed actions of a loop are judged one by one', async () => {
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
  expect(loop.body.actions.map((one: { decision: string }) => one.decision)).toEqual([
    'blocked',
    'review_required',
    'blocked',
    'pass',
  ])
})

test('a refused run never touches the payment: the nonce stays unused on the chain (M8)', async () => {
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
