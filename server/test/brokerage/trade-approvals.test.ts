import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashApprovalPayload } from '../../src/modules/brokerage/approval-payload.ts'
import { createLog } from '../../src/platform/log.ts'
import { createTestClock, type TestClock } from '../clock.ts'
import { anotherKey, counterFaults, whileSequencing } from '../governance/world.ts'
import { startService, type TestService } from '../harness.ts'
import { readAudits } from '../journal.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'

/** Trades that wait for a person, and trades that are refused: what approvers are shown, who decides, and what is kept. */
const CANARY = 'canary-timbuktu-0815'
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
  // Long enough for a slow machine to put an event into the chain, and not much longer: four answers wait for it in vain.
  const env = { BACKGROUND_WORK: 'off', APPROVAL_CONTENT_DAYS: '7', AUDIT_WAIT_MS: '2000' }
  receiver = await openReceiver()
  world = await startService({ clock, log: createLog('trace', sink), env })
})
afterAll(async () => {
  expect(await counterFaults(world)).toEqual([])
  await world?.close()
  await receiver?.close()
})

type Headers = Record<string, string>
type Trader = Awaited<ReturnType<TestService['onboard']>> & { walletId: string }
const openTenant = async (): Promise<Trader> => ({ ...(await world.onboard()), walletId: '' })
const spend = { symbol: 'acme-store', instrument_type: 'spend', side: 'buy', quantity: 40, agent_id: 'buyer-1' }
const trade = (tenant: Trader, body: Record<string, unknown> = {}, headers: Headers = {}) =>
  world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...spend, ...body }, { ...tenant.headers, ...headers })
const addPolicy = async (tenant: Trader, policy: Record<string, unknown>) => {
  const response = await world.post('/api/policies', policy, tenant.headers)
  expect(response.status, response.text).toBe(201)
  return response.body
}
const review = {
  name: 'People first',
  rules: [{ field: 'merchant', op: '=', value: 'acme-store', effect: 'review', reason: 'Somebody reads it.' }],
}
const pendingRuns = async (headers: Headers) =>
  (await world.get('/api/rh/runs?status=pending_approval', headers)).body.runs
const approve = (headers: Headers, runId: string) => world.post('/api/rh/approve', { run_id: runId }, headers)
const decisionsOf = async (tenant: Trader) => (await world.get('/api/decisions', tenant.headers)).body.decisions

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

describe('an approver of a trade sees what is approved', () => {
  test('the request, the rule that asked, what is normal and what happens next', async () => {
    const tenant = await openTenant()
    expect((await trade(tenant, { quantity: 30 })).status).toBe(200)
    expect((await trade(tenant, { quantity: 10 })).status).toBe(200)
    const policy = await addPolicy(tenant, review)
    const pending = await trade(tenant, { purpose: 'New chairs for the studio.', tags: { project: 'studio' } })
    expect(pending.status, pending.text).toBe(202)
    const rule = {
      policy_id: policy.id,
      name: 'People first',
      sentence: "The policy 'People first' wants a person to approve this. Somebody reads it.",
      version: 1,
      constraint: 'rules[0]',
    }
    const normal = { count_30d: 2, median_usdc: 10, max_usdc: 30, same_30d: 2 }
    const { approval } = pending.body
    expect(approval).toMatchObject({
      rule,
      normal,
      approvals_required: 1,
      next: expect.stringMatching(/^After approval /),
    })
    expect(approval.digest).toBe(hashApprovalPayload(approval))
    const [item] = await pendingRuns(tenant.headers)
    expect(item).toMatchObject({
      run_id: pending.body.run_id,
      request: { ...spend, purpose: 'New chairs for the studio.', tags: { project: 'studio' } },
      rule,
      normal,
      next: approval.next,
    })
    expect(item.approval).toEqual(approval)
  })

  test('the rule of a threshold says the amount, and the one of a closed market why it waits', async () => {
    const tenant = await openTenant()
    const large = await trade(tenant, { quantity: 1_500 })
    expect(large.body.approval.rule).toEqual({
      policy_id: null,
      name: 'Default spend policy',
      sentence:
        'No rule of yours sets a threshold for this trade; the shipped default wants a person to approve trades above 1000 USDC; this one is 1500 USDC.',
      constraint: 'require_approval_above_usdc',
      limit: 1_000,
      asked: 1_500,
    })
    await addPolicy(tenant, review)
    // A rule of the tenant says more than the default of the type.
    expect((await trade(tenant, { quantity: 1_600 })).body.approval.rule.name).toBe('People first')
  })

  test('a symbol that the spender has not traded lately counts none of its trades', async () => {
    const tenant = await openTenant()
    expect((await trade(tenant, { quantity: 30 })).status).toBe(200)
    const elsewhere = await trade(tenant, { symbol: 'other-store', quantity: 1_500 })
    expect(elsewhere.body.approval.normal).toEqual({ count_30d: 1, median_usdc: 30, max_usdc: 30, same_30d: 0 })
  })

  test('how far the price has moved since it was asked for, and for nobody else', async () => {
    const tenant = await openTenant()
    const perp = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.001, leverage: 5 }
    const pending = await trade(tenant, perp)
    expect(pending.status, pending.text).toBe(202)
    const { approval, run_id } = pending.body
    const path = `/api/rh/runs/${run_id}/quote`
    const { status, body } = await world.get(path, tenant.headers)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      run_id,
      session: 'always',
      price_when_asked: approval.quote.price,
      max_drift_bps: approval.quote.max_drift_bps,
      liquidation_price: approval.liquidation_price,
      basis_bps: null,
    })
    const moved = ((body.price - approval.quote.price) / approval.quote.price) * 10_000
    expect(body.drift_bps).toBeCloseTo(moved, 1)
    expect(body.distance_to_liq_pct).toBeCloseTo((body.mark - body.liquidation_price) / body.mark, 4)
    expect((await world.get(path, (await openTenant()).headers)).status).toBe(404)
    expect((await world.get('/api/rh/runs/not-a-run/quote', tenant.headers)).status).toBe(404)
  })

  test('who decided, when and why; the lists tell decisions apart and filter by spender', async () => {
    const tenant = await openTenant()
    const ask = async (quantity: number, spender: string) =>
      (await trade(tenant, { quantity, spender, agent_id: undefined })).body.run_id as string
    const [approved, rejected, waiting] = [
      await ask(1_100, 'buyer-1'),
      await ask(1_200, 'buyer-2'),
      await ask(1_300, 'buyer-2'),
    ]
    expect((await trade(tenant, { quantity: 5 })).status).toBe(200)
    const yes = await world.post('/api/rh/approve', { run_id: approved, reason: 'The desks are due.' }, tenant.headers)
    expect(yes.body.approvals).toMatchObject([{ reason: 'The desks are due.' }])
    await world.post(`/api/rh/runs/${rejected}/cancel`, { reason: 'Too dear.' }, tenant.headers)
    const list = async (query: string) =>
      (await world.get(`/api/rh/runs?${query}`, tenant.headers)).body.runs.map(
        ({ run_id }: { run_id: string }) => run_id,
      )
    expect(await list('approval=pending')).toEqual([waiting])
    expect(await list('approval=approved')).toEqual([approved])
    expect(await list('approval=rejected')).toEqual([rejected])
    expect(await list('approval=all')).toEqual([waiting, rejected, approved])
    expect(await list('approval=all&spender=buyer-2')).toEqual([waiting, rejected])
    const ended = (await world.get(`/api/rh/runs/${rejected}`, tenant.headers)).body
    const keyId = ended.key_id
    expect(ended).toMatchObject({ status: 'cancelled', reason: 'Too dear.', ended_by: keyId })
    const audits = await readAudits(world.db, tenant.tenantId)
    const approvalAudit = audits.find(({ type }) => type === 'rh_run.approved')
    expect(approvalAudit).toMatchObject({ subject: approved, data: { reason: 'The desks are due.' } })
  })

  test('a key without control does not see the request, nor does another tenant', async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, review)
    const agent = await anotherKey(world, tenant, ['read', 'run'])
    const pending = await trade(tenant, { purpose: `Because of ${CANARY}.` }, agent)
    expect(pending.status, pending.text).toBe(202)
    expect(pending.text).not.toContain(CANARY)
    const [seen] = await pendingRuns(agent)
    expect(seen).not.toHaveProperty('request')
    expect(seen.rule.name).toBe('People first')
    const single = await world.get(`/api/rh/runs/${seen.run_id}`, agent)
    expect(single.text).not.toContain(CANARY)
    expect((await world.get(`/api/rh/runs/${seen.run_id}`, tenant.headers)).body.request.purpose).toContain(CANARY)
    expect((await world.get(`/api/rh/runs/${seen.run_id}`, (await openTenant()).headers)).status).toBe(404)
  })

  test('what the caller wrote is in no table, log, event, receipt or metric, and gone after its retention', async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, review)
    await world.post('/api/webhooks', { url: receiver.url, events: ['*'] }, tenant.headers)
    const purpose = `Because of ${CANARY}.`
    const ask = async (headers: Headers = {}) => {
      const { status, text, body } = await trade(tenant, { purpose }, headers)
      expect(status, text).toBe(202)
      return body.run_id as string
    }
    const executed = await ask({ 'idempotency-key': 'with-a-stored-answer' })
    const cancelled = await ask()
    await ask()
    expect((await approve(tenant.headers, executed)).status).toBe(200)
    await world.service.brokerage.brokerage.sweep()
    expect((await world.post(`/api/rh/runs/${cancelled}/cancel`, {}, tenant.headers)).status).toBe(200)
    expect((await trade(tenant, { purpose, symbol: 'other-store' })).status).toBe(200)
    await world.service.sequencer.runOnce()
    for (let sent = -1; sent !== receiver.received.length; ) {
      sent = receiver.received.length
      await world.service.observe.deliveryWorker.deliverDue()
      await world.service.observe.deliveryWorker.idle()
    }
    expect(receiver.received.map(({ json }) => json.type)).toEqual(
      expect.arrayContaining(['rh_run.pending', 'rh_run.approved', 'rh_run.executed', 'rh_run.cancelled']),
    )
    for (const { headers, body } of receiver.received) expect(JSON.stringify(headers) + body).not.toContain(CANARY)
    expect(await findCanary()).toEqual([])
    expect(logText).not.toContain(CANARY)
    for (const path of ['/metrics', '/api/audit?limit=100', '/api/rh/receipts', '/api/decisions'])
      expect((await world.get(path, tenant.headers)).text, path).not.toContain(CANARY)

    const read = async (id: string) => (await world.get(`/api/rh/runs/${id}`, tenant.headers)).body
    expect(await read(executed)).toMatchObject({
      status: 'executed',
      request: { purpose },
      next: expect.stringMatching(/executed/),
    })
    clock.advance(7 * DAY_MS + 1_000)
    expect((await read(executed)).request).toBeNull()
    expect((await read(cancelled)).request).toBeNull()
    expect(await world.service.brokerage.brokerage.pruneContent()).toBeGreaterThanOrEqual(2)
    const { rows } = await world.service.database.pool.query('select content from rh_runs where id = any($1)', [
      [executed, cancelled],
    ])
    expect(rows).toEqual([{ content: null }, { content: null }])
  })
})

describe('a trade that needs two approvals', () => {
  test('waits for two identities, in which its maker, the same key again and a key that it made do not count', async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, { ...review, constraints: { approvals_required: 2 } })
    const agent = await anotherKey(world, tenant, ['read', 'run'])
    const first = await anotherKey(world, tenant, ['read', 'control', 'keys'])
    const second = await anotherKey(world, tenant, ['read', 'control'])
    const pending = await trade(tenant, {}, agent)
    expect([pending.status, pending.body.approval?.approvals_required], pending.text).toEqual([202, 2])
    const { run_id } = pending.body
    const vote = await approve(first, run_id)
    expect([vote.status, vote.body.status, vote.body.queued], vote.text).toEqual([200, 'pending_approval', false])
    expect(vote.body).toMatchObject({ approvals_required: 2, approvals: [{ self_approved: false }] })
    const made = await world.post('/api/keys', { name: 'copy', scopes: ['control'] }, first)
    for (const again of [first, { 'x-api-key': made.body.api_key }]) {
      const refused = await approve(again, run_id)
      expect([refused.status, refused.body.code], refused.text).toEqual([409, 'conflict'])
    }
    await world.service.brokerage.brokerage.sweep()
    expect((await world.get(`/api/rh/runs/${run_id}`, first)).body).toMatchObject({
      status: 'pending_approval',
      approvals: [{ key_id: vote.body.approved_by }],
      next: expect.stringMatching(/^After approval /),
    })
    const last = await approve(second, run_id)
    expect([last.status, last.body.status, last.body.queued], last.text).toEqual([200, 'approved', true])
    expect(last.body.approvals).toHaveLength(2)
    await world.service.brokerage.brokerage.sweep()
    expect((await world.get(`/api/rh/runs/${run_id}`, first)).body.status).toBe('executed')
    const votes = (await readAudits(world.db)).filter(({ subject }) => subject === run_id).map(({ type }) => type)
    expect(votes).toEqual(expect.arrayContaining(['rh_run.voted', 'rh_run.approved']))
  })

  test('twenty votes of five identities at once approve it once', async () => {
    const tenant = await openTenant()
    const threshold = { require_approval_above_usdc: 1, approvals_required: 3, max_notional_usdc: 50 }
    await addPolicy(tenant, { name: 'Three', constraints: threshold })
    const agent = await anotherKey(world, tenant, ['read', 'run'])
    const { body } = await trade(tenant, {}, agent)
    expect(body.approval.approvals_required).toBe(3)
    const approvers = await Promise.all(Array.from({ length: 5 }, () => anotherKey(world, tenant, ['control'])))
    const votes = await Promise.all(Array.from({ length: 20 }, (_, at) => approve(approvers[at % 5]!, body.run_id)))
    expect(votes.filter(({ status }) => status === 200)).toHaveLength(3)
    expect(votes.filter((vote) => vote.body.status === 'approved')).toHaveLength(1)
    expect(votes.every(({ status }) => status === 200 || status === 409)).toBe(true)
  })

  test('a policy that wants another one meanwhile is not passed by the votes that it had', async () => {
    const tenant = await openTenant()
    const policy = await addPolicy(tenant, review)
    const agent = await anotherKey(world, tenant, ['read', 'run'])
    const { body } = await trade(tenant, {}, agent)
    await world.call('PATCH', `/api/policies/${policy.id}`, { constraints: { approvals_required: 2 } }, tenant.headers)
    const one = await approve(await anotherKey(world, tenant, ['control']), body.run_id)
    expect([one.status, one.body.status, one.body.approvals_required], one.text).toEqual([200, 'pending_approval', 2])
    const two = await approve(await anotherKey(world, tenant, ['control']), body.run_id)
    expect([two.status, two.body.status], two.text).toEqual([200, 'approved'])
  })
})

describe('a trade that is refused or waits leaves a decision', () => {
  test('with who asked, what for, and the rules and checks that refused it', async () => {
    const tenant = await openTenant()
    const policy = await addPolicy(tenant, { name: 'No shops', constraints: { denied_merchants: ['acme-store'] } })
    const refused = await trade(tenant, { tags: { project: 'studio' } })
    expect(refused.status, refused.text).toBe(422)
    const [decision] = await decisionsOf(tenant)
    expect(decision).toMatchObject({
      decision_id: refused.body.decision_id,
      kind: 'trade',
      run_id: refused.body.run_id,
      agent_id: 'buyer-1',
      spender: 'buyer-1',
      tags: { project: 'studio' },
      merchant: 'acme-store',
      amount: '40000000',
      outcome: 'blocked',
      error: 'policy_blocked',
      message: refused.body.message,
      overridable: false,
    })
    expect(decision.policy_results).toContainEqual(
      expect.objectContaining({ policy_id: policy.id, rule: 'denied_merchants', outcome: 'blocked' }),
    )
    expect((await world.get(`/api/decisions/${decision.decision_id}`, tenant.headers)).body).toEqual(decision)
    expect((await world.get('/api/decisions', (await openTenant()).headers)).body.decisions).toEqual([])
  })

  test('by the brokerage’s own checks too, without an agent, and once for one idempotency key', async () => {
    const tenant = await openTenant()
    const body = { quantity: 20_000, agent_id: undefined }
    const refused = await trade(tenant, body, { 'idempotency-key': 'once' })
    expect([refused.status, refused.body.error], refused.text).toEqual([422, 'budget_exceeded'])
    expect((await trade(tenant, body, { 'idempotency-key': 'once' })).text).toBe(refused.text)
    const decisions = await decisionsOf(tenant)
    expect(decisions).toHaveLength(1)
    expect(decisions[0]).toMatchObject({ agent_id: null, spender: expect.stringMatching(/^key:/) })
    expect(decisions[0].policy_results).toContainEqual(
      expect.objectContaining({
        policy_id: null,
        policy_name: 'Default spend policy',
        rule: 'order_notional',
        outcome: 'blocked',
        limit: 10_000,
        asked: 20_000,
      }),
    )
  })

  test('when it waits for a person; the decision says if whoever asked approved it itself', async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, review)
    const { body } = await trade(tenant)
    const [waiting] = await decisionsOf(tenant)
    expect(waiting).toMatchObject({ decision_id: body.decision_id, outcome: 'review_required', self_approved: false })
    expect((await approve(tenant.headers, body.run_id)).body.self_approved).toBe(true)
    expect((await decisionsOf(tenant))[0]).toMatchObject({ self_approved: true })
  })

  test('no override is issued for it, and the refusal says what helps instead', async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, { name: 'No shops', constraints: { denied_merchants: ['acme-store'] } })
    const { body } = await trade(tenant)
    const wanted = { agent_id: 'buyer-1', amount_usdc: 40, merchant: 'acme-store', reason: 'Just this once' }
    for (const named of [{ denied_decision_id: body.decision_id }, {}]) {
      const refused = await world.post('/api/authorize', { ...wanted, ...named }, tenant.headers)
      expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_request'])
    }
    const named = await world.post(
      '/api/authorize',
      { ...wanted, denied_decision_id: body.decision_id },
      tenant.headers,
    )
    expect(named.body.message).toMatch(/a trade, and no override applies to trades/)
  })
})

describe('a policy with audit_trail_required', () => {
  const link = {
    event_id: expect.stringMatching(/^aud_/),
    seq: expect.any(Number),
    hash: expect.stringMatching(/^sha256:/),
  }
  const audited = async () => {
    const tenant = await openTenant()
    await addPolicy(tenant, {
      name: 'On the record',
      audit_trail_required: true,
      constraints: { denied_merchants: ['bad-store'] },
    })
    await addPolicy(tenant, {
      ...review,
      rules: [{ field: 'merchant', op: '=', value: 'read-store', effect: 'review' }],
    })
    return tenant
  }

  test('no trade is answered while the chain is stuck; the same key gets the stored answer with its place later', async () => {
    const tenant = await audited()
    const symbols = { executed: 'acme-store', refused: 'bad-store', waiting: 'read-store' }
    const statuses: Record<string, number> = { executed: 200, refused: 422, waiting: 202 }
    for (const [name, symbol] of Object.entries(symbols)) {
      const stuck = await trade(tenant, { symbol }, { 'idempotency-key': name })
      expect([stuck.status, stuck.body.code, stuck.body.retryable], stuck.text).toEqual([503, 'unavailable', true])
      const { run_id } = stuck.body
      await world.service.sequencer.runOnce()
      const answer = await trade(tenant, { symbol }, { 'idempotency-key': name })
      expect([answer.status, answer.body.run_id, answer.body.audit], answer.text).toEqual([
        statuses[name],
        run_id,
        link,
      ])
      expect((await trade(tenant, { symbol }, { 'idempotency-key': name })).text).toBe(answer.text)
      const { events } = (await world.get('/api/audit?limit=100', tenant.headers)).body
      const event = events.find(({ id }: { id: string }) => id === answer.body.audit.event_id)
      expect(event).toMatchObject({ subject: run_id, seq: answer.body.audit.seq, hash: answer.body.audit.hash })
    }
  })

  test('without a key the 503 says not to repeat the trade and where it is', async () => {
    const tenant = await audited()
    const stuck = await trade(tenant)
    expect([stuck.status, stuck.body.retryable]).toEqual([503, false])
    expect(stuck.body.next_action).toContain(`/api/rh/runs/${stuck.body.run_id}`)
    expect((await world.get(`/api/rh/runs/${stuck.body.run_id}`, tenant.headers)).body.status).toBe('executed')
    const answered = await whileSequencing(world, trade(tenant))
    expect([answered.status, answered.body.audit]).toEqual([200, link])
  })

  test('no answer has one where no policy asks for it', async () => {
    const tenant = await openTenant()
    expect((await trade(tenant)).body).not.toHaveProperty('audit')
  })
})
