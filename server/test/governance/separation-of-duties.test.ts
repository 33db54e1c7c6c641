import { verifyReceipt } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readAudits } from '../journal.ts'
import { anotherKey, openWorld, richTenant, run, type Tenant, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

type Headers = Record<string, string>
type OwnKey = { headers: Headers; keyId: string }

/** A key that another key of the tenant makes. */
async function makeKey(
  maker: { headers: Headers },
  scopes: string[],
  bonds: Record<string, unknown> = {},
): Promise<OwnKey> {
  const { body } = await world.post('/api/keys', { name: 'k', scopes, ...bonds }, maker.headers)
  return { headers: { 'x-api-key': body.api_key }, keyId: body.key_id }
}

async function rotate(maker: { headers: Headers }, keyId: string): Promise<OwnKey> {
  const { body } = await world.post(`/api/keys/${keyId}/rotate`, {}, maker.headers)
  return { headers: { 'x-api-key': body.api_key }, keyId: body.key_id }
}

const keyIdOf = async (headers: Headers) => (await world.get('/api/me', headers)).body.key_id as string
/** The control tower shows the log's checkpoint, which exists once something was sequenced. */
async function controlTower(tenant: Tenant) {
  await world.service.sequencer.runOnce()
  return (await world.get('/api/control-tower', tenant.headers)).body
}
const AGENT = ['read', 'run']
const APPROVER = ['read', 'control']

/** A tenant whose runs need an approval. */
async function reviewedTenant(constraints: Record<string, unknown> = {}): Promise<Tenant> {
  const tenant = await richTenant(world)
  const body = { name: 'Review', constraints: { require_approval_above_usdc: 0, ...constraints } }
  expect((await world.post('/api/policies', body, tenant.headers)).status).toBe(201)
  return tenant
}

let task = 0
const ask = async (tenant: Tenant, headers: Headers): Promise<string> => {
  task += 1
  const { body } = await run(world, tenant, { task: `Joke ${task}.` }, headers)
  expect(body.outcome).toBe('review_required')
  return body.approval_id
}
const decide = (headers: Headers, approval_id: string, decision = 'approve') =>
  world.post('/api/approvals', { approval_id, decision }, headers)
const expectSelfDecisionRefused = (response: { status: number; body: Record<string, unknown> }) => {
  expect([response.status, response.body.code]).toEqual([403, 'forbidden'])
}

describe('whoever asked cannot approve', () => {
  test('neither the key that asked, nor the key that made it, nor a key that it made', async () => {
    const tenant = await reviewedTenant()
    const asker = await makeKey(tenant, ['read', 'run', 'control', 'keys'])
    const child = await makeKey(asker, APPROVER)
    const grandchild = await makeKey(await makeKey(asker, ['read', 'control', 'keys']), APPROVER)
    const approvalId = await ask(tenant, asker.headers)
    for (const headers of [asker.headers, tenant.headers, child.headers, grandchild.headers]) {
      expectSelfDecisionRefused(await decide(headers, approvalId))
      expectSelfDecisionRefused(await decide(headers, approvalId, 'reject'))
    }
    const { body } = await world.get(`/api/approvals/${approvalId}`, tenant.headers)
    expect(body).toMatchObject({ status: 'pending', approvals: [], self_approved: false })
  })

  test('nor a key bound to the same spender, whoever made it', async () => {
    const tenant = await reviewedTenant()
    const asker = await makeKey(tenant, AGENT, { spender: 'bot' })
    const sameSpender = await world.post(
      `/api/admin/tenants/${tenant.tenantId}/keys`,
      { scopes: APPROVER, spender: 'bot' },
      { 'x-admin-key': world.service.adminKey },
    )
    const approvalId = await ask(tenant, asker.headers)
    expectSelfDecisionRefused(await decide({ 'x-api-key': sameSpender.body.api_key }, approvalId))
    const otherSpender = await makeKey(tenant, APPROVER, { spender: 'other' })
    expect((await decide(otherSpender.headers, approvalId)).body.approval.status).toBe('approved')
  })

  test('nor its successor by rotation, nor the successor of its maker, nor through a revoked key', async () => {
    const tenant = await reviewedTenant()
    const middle = await makeKey(tenant, ['read', 'run', 'control', 'keys'])
    const asker = await makeKey(middle, ['read', 'run', 'control'])
    await makeKey(tenant, APPROVER)
    const approvalId = await ask(tenant, asker.headers)
    const successor = await rotate(middle, asker.keyId)
    const rotatedMaker = await rotate(tenant, await keyIdOf(tenant.headers))
    await world.call('DELETE', `/api/keys/${middle.keyId}`, undefined, rotatedMaker.headers)
    for (const { headers } of [successor, rotatedMaker, asker, tenant])
      expectSelfDecisionRefused(await decide(headers, approvalId))
  })

  test('another key of the same maker decides, and nothing says self_approved', async () => {
    const tenant = await reviewedTenant()
    const [asker, approver] = [await makeKey(tenant, AGENT), await makeKey(tenant, APPROVER)]
    const approvalId = await ask(tenant, asker.headers)
    const { status, body } = await decide(approver.headers, approvalId)
    expect([status, body.self_approved, body.approval.self_approved]).toEqual([200, false, false])
    const audit = (await readAudits(world.db, tenant.tenantId)).find((event) => event.type === 'approval.approved')!
    expect(audit.actor).toBe(approver.keyId)
    expect(audit.data).not.toHaveProperty('self_approved')
    const completed = await run(world, tenant, { task: `Joke ${task}.`, approval_id: approvalId }, asker.headers)
    expect(completed.status).toBe(200)
    expect(completed.body.receipt.governance).not.toHaveProperty('self_approved')
  })

  test('a pre-authorisation is no other', async () => {
    const tenant = await reviewedTenant()
    const asker = await makeKey(tenant, AGENT, { spender: 'buyer' })
    const approver = await makeKey(tenant, APPROVER)
    const body = { agent_id: 'buyer', merchant: { id: 'shop', pay_to: `0x${'ab'.repeat(20)}` }, amount_usdc: 5 }
    const preauth = (await world.post('/api/pre-auth', body, asker.headers)).body
    expectSelfDecisionRefused(await decide(tenant.headers, preauth.approval_id))
    expect((await decide(approver.headers, preauth.approval_id)).body.approval.status).toBe('approved')
  })
})

describe('one identity has one vote', () => {
  test('two keys of one identity do not make the two approvals that a policy requires', async () => {
    const tenant = await reviewedTenant({ approvals_required: 2 })
    const asker = await makeKey(tenant, AGENT)
    const voter = await makeKey(tenant, ['read', 'control', 'keys'])
    const child = await makeKey(voter, APPROVER)
    const approvalId = await ask(tenant, asker.headers)
    expect((await decide(voter.headers, approvalId)).body.approval.status).toBe('pending')
    const successor = await rotate(tenant, voter.keyId)
    for (const { headers } of [voter, child, successor])
      expect([(await decide(headers, approvalId)).status, 'voted']).toEqual([409, 'voted'])
    const other = await makeKey(tenant, APPROVER)
    expect((await decide(other.headers, approvalId)).body.approval.status).toBe('approved')
  })

  test('two keys of one identity that vote at once count once', async () => {
    const tenant = await reviewedTenant({ approvals_required: 2 })
    const asker = await makeKey(tenant, AGENT)
    const voter = await makeKey(tenant, ['read', 'control', 'keys'])
    const children = await Promise.all(Array.from({ length: 5 }, () => makeKey(voter, APPROVER)))
    for (let round = 0; round < 3; round += 1) {
      const approvalId = await ask(tenant, asker.headers)
      const statuses = await Promise.all(
        [voter, ...children.map(() => voter), children[round]!].map(
          async ({ headers }) => (await decide(headers, approvalId)).status,
        ),
      )
      expect(statuses.filter((status) => status === 200)).toHaveLength(1)
      expect((await world.get(`/api/approvals/${approvalId}`, tenant.headers)).body.status).toBe('pending')
    }
  })

  test('a key that votes while its maker makes it and votes too counts once', async () => {
    const tenant = await reviewedTenant({ approvals_required: 2 })
    const asker = await makeKey(tenant, AGENT)
    const voter = await makeKey(tenant, ['read', 'control', 'keys'])
    for (let round = 0; round < 8; round += 1) {
      const approvalId = await ask(tenant, asker.headers)
      const makeAndVote = async () => (await decide((await makeKey(voter, APPROVER)).headers, approvalId)).status
      const statuses = await Promise.all([
        makeAndVote(),
        decide(voter.headers, approvalId).then(({ status }) => status),
      ])
      expect(statuses.sort()).toEqual([200, 409])
    }
  })
})

describe('a tenant with a single key', () => {
  test('decides for itself, and decision, record, receipt, audit event and control tower say so', async () => {
    const tenant = await reviewedTenant()
    const approvalId = await ask(tenant, tenant.headers)
    const { status, body } = await decide(tenant.headers, approvalId)
    expect([status, body.self_approved, body.approval.self_approved]).toEqual([200, true, true])
    expect((await world.get(`/api/approvals/${approvalId}`, tenant.headers)).body.self_approved).toBe(true)
    expect((await world.get(`/api/decisions/${body.approval.decision_id}`, tenant.headers)).body.self_approved).toBe(
      true,
    )
    const audits = await readAudits(world.db, tenant.tenantId)
    expect(audits.find((event) => event.type === 'approval.approved')!.data.self_approved).toBe(true)
    const completed = await run(world, tenant, { task: `Joke ${task}.`, approval_id: approvalId })
    expect(completed.body.receipt.governance).toMatchObject({ approval_id: approvalId, self_approved: true })
    const { body: jwks } = await world.get('/.well-known/jwks.json')
    expect(verifyReceipt(completed.body.receipt, { jwks }).ok).toBe(true)
    expect(await controlTower(tenant)).toMatchObject({
      self_approved: true,
      self_approved_count: 1,
    })
  })

  test('may have keys without control, expired and revoked keys, and the overlap of its own rotation', async () => {
    const tenant = await reviewedTenant()
    const asker = await makeKey(tenant, AGENT)
    const revoked = await makeKey(tenant, APPROVER)
    await makeKey(tenant, APPROVER, { expires_at: new Date(world.clock.now().getTime() + 60_000).toISOString() })
    expectSelfDecisionRefused(await decide(tenant.headers, await ask(tenant, tenant.headers)))
    world.clock.advance(60_000)
    expectSelfDecisionRefused(await decide(tenant.headers, await ask(tenant, tenant.headers)))
    await world.call('DELETE', `/api/keys/${revoked.keyId}`, undefined, tenant.headers)
    const successor = await rotate(tenant, await keyIdOf(tenant.headers))
    const [first, second] = [await ask(tenant, asker.headers), await ask(tenant, tenant.headers)]
    expect((await decide(tenant.headers, first)).body.self_approved).toBe(true)
    expect((await decide(successor.headers, second)).body.self_approved).toBe(true)
  })

  test('cannot when the tenant has turned it off', async () => {
    const tenant = await reviewedTenant()
    const approvalId = await ask(tenant, tenant.headers)
    expect((await world.call('PUT', '/api/settings', { self_approval: 'never' }, tenant.headers)).status).toBe(200)
    expectSelfDecisionRefused(await decide(tenant.headers, approvalId))
    const approver = await anotherKey(world, tenant, APPROVER)
    expect((await decide(approver, approvalId)).body).toMatchObject({ self_approved: false })
  })

  test('cannot where the policy asks for a separate approver', async () => {
    const tenant = await reviewedTenant({ separate_approver: true })
    expectSelfDecisionRefused(await decide(tenant.headers, await ask(tenant, tenant.headers)))
  })

  test('rejects its own request without approving anything', async () => {
    const tenant = await reviewedTenant()
    const { status, body } = await decide(tenant.headers, await ask(tenant, tenant.headers), 'reject')
    expect([status, body.approval.status, body.self_approved]).toEqual([200, 'rejected', false])
  })

  test('says self_approved in the receipt of a pre-authorised payment too', async () => {
    const tenant = await reviewedTenant()
    const body = { agent_id: 'buyer', merchant: { id: 'shop', pay_to: `0x${'ab'.repeat(20)}` }, amount_usdc: 5 }
    const preauth = (await world.post('/api/pre-auth', body, tenant.headers)).body
    expect((await decide(tenant.headers, preauth.approval_id)).body.self_approved).toBe(true)
    const closed = await world.post(
      '/api/pre-auth/close',
      { preauth_id: preauth.preauth_id, outcome: 'settled' },
      tenant.headers,
    )
    const { body: receipt } = await world.get(closed.body.receipt_url, tenant.headers)
    expect(JSON.stringify(receipt)).toContain('"self_approved":true')
  })
})

describe('a rule about a key', () => {
  test('binds the keys that it made, directly or through others, so that making a key is no way around a policy', async () => {
    const tenant = await richTenant(world)
    const agent = await makeKey(tenant, ['read', 'run', 'keys'])
    const other = await makeKey(tenant, AGENT)
    const policy = {
      name: 'No jokes',
      identity_type: 'api_key',
      api_key: agent.headers['x-api-key'],
      constraints: { denied_agents: ['comedian-v1'] },
    }
    expect((await world.post('/api/policies', policy, tenant.headers)).status).toBe(201)
    const child = await makeKey(agent, ['read', 'run', 'keys'])
    const grandchild = await makeKey(child, AGENT)
    const successor = await rotate(child, grandchild.keyId)
    for (const { headers } of [agent, child, grandchild, successor])
      expect((await run(world, tenant, {}, headers)).status).toBe(429)
    for (const headers of [other.headers, tenant.headers])
      expect((await run(world, tenant, {}, headers)).status).toBe(200)
  })

  test('counts what the keys spend that it made, so that making a key is no way around a budget', async () => {
    const tenant = await richTenant(world)
    const agent = await makeKey(tenant, ['read', 'run', 'keys'])
    const budget = { scope: { type: 'key', id: agent.keyId }, window: 'total', limit_usdc: 0.015 }
    expect((await world.post('/api/budgets', budget, tenant.headers)).status).toBe(200)
    const child = await makeKey(agent, AGENT)
    expect((await run(world, tenant, {}, child.headers)).status).toBe(200)
    for (const { headers } of [child, agent, await makeKey(agent, AGENT)])
      expect((await run(world, tenant, {}, headers)).body.error).toBe('budget_exceeded')
    expect((await run(world, tenant)).status).toBe(200)
  })
})

describe('a trade that waits for a person', () => {
  const trade = async (tenant: Tenant, headers: Headers): Promise<string> => {
    const order = { symbol: 'BTC-PERP', instrument_type: 'perp', side: 'long', quantity: 0.01, leverage: 2 }
    const { status, body } = await world.post('/api/rh/run', { tenant_id: tenant.tenantId, ...order }, headers)
    expect(status).toBe(202)
    return body.run_id
  }
  const approve = (headers: Headers, run_id: string) => world.post('/api/rh/approve', { run_id }, headers)

  test('is not approved by the identity that asked for it, but by another', async () => {
    const tenant = await richTenant(world)
    const asker = await makeKey(tenant, ['read', 'run', 'control', 'keys'], { spender: 'trader' })
    const approver = await makeKey(tenant, APPROVER)
    const runId = await trade(tenant, asker.headers)
    const child = await makeKey(asker, APPROVER)
    const sameSpender = await makeKey(tenant, APPROVER, { spender: 'trader' })
    const successor = await rotate(asker, asker.keyId)
    for (const { headers } of [asker, tenant, child, sameSpender, successor])
      expectSelfDecisionRefused(await approve(headers, runId))
    const { status, body } = await approve(approver.headers, runId)
    expect([status, body.self_approved, body.approved_by]).toEqual([200, false, approver.keyId])
  })

  test('is approved by a single key with self_approved in answer, record, audit event, receipt and control tower', async () => {
    const tenant = await richTenant(world)
    const runId = await trade(tenant, tenant.headers)
    expect((await approve(tenant.headers, runId)).body.self_approved).toBe(true)
    expect((await world.get(`/api/rh/runs/${runId}`, tenant.headers)).body.self_approved).toBe(true)
    const audits = await readAudits(world.db, tenant.tenantId)
    expect(audits.find((event) => event.type === 'rh_run.approved')!.data.self_approved).toBe(true)
    expect(await controlTower(tenant)).toMatchObject({ self_approved: true, self_approved_count: 1 })
    await world.service.brokerage.brokerage.sweep()
    const { body } = await world.get('/api/rh/receipts', tenant.headers)
    expect(body[0].approval).toMatchObject({ required: true, self_approved: true })
    await world.call('PUT', '/api/settings', { self_approval: 'never' }, tenant.headers)
    expectSelfDecisionRefused(await approve(tenant.headers, await trade(tenant, tenant.headers)))
  })
})

describe('whoever was denied cannot override', () => {
  const OWNER = ['read', 'run', 'mandate']

  async function deniedTenant(): Promise<Tenant> {
    const tenant = await richTenant(world)
    const body = { name: 'No code', constraints: { denied_agents: ['coder-v1'] } }
    expect((await world.post('/api/policies', body, tenant.headers)).status).toBe(201)
    return tenant
  }
  const beDenied = async (tenant: Tenant, headers: Headers): Promise<string> => {
    task += 1
    const { status, body } = await run(world, tenant, { agent_id: 'coder-v1', task: `Code ${task}.` }, headers)
    expect(status).toBe(429)
    return body.decision_id
  }
  const authorize = (headers: Headers, denied_decision_id?: string) =>
    world.post(
      '/api/authorize',
      {
        agent_id: 'coder-v1',
        amount_usdc: 0.025,
        merchant: 'countersign',
        reason: 'r',
        ...(denied_decision_id && { denied_decision_id }),
      },
      headers,
    )

  test('neither the key that was denied nor its maker, what it made, its successor or its spender, named or not', async () => {
    const tenant = await deniedTenant()
    const asker = await makeKey(tenant, [...OWNER, 'control', 'keys'], { spender: 'bot' })
    const child = await makeKey(asker, OWNER)
    const decisionId = await beDenied(tenant, asker.headers)
    const successor = await rotate(asker, asker.keyId)
    const sameSpender = await makeKey(tenant, OWNER, { spender: 'bot' })
    for (const { headers } of [asker, tenant, child, successor, sameSpender]) {
      expectSelfDecisionRefused(await authorize(headers, decisionId))
      expectSelfDecisionRefused(await authorize(headers))
    }
    const other = await makeKey(tenant, ['mandate'])
    const override = await authorize(other.headers, decisionId)
    expect([override.status, override.body.self_approved]).toEqual([200, false])
    const completed = await run(
      world,
      tenant,
      { agent_id: 'coder-v1', override_token: override.body.token },
      asker.headers,
    )
    expect(completed.status).toBe(200)
    expect(completed.body.receipt.governance).not.toHaveProperty('self_approved')
  })

  test("nor by overriding somebody else's denial of the same payment and using that override", async () => {
    const tenant = await deniedTenant()
    const [asker, other] = [await makeKey(tenant, OWNER), await makeKey(tenant, [...OWNER, 'control'])]
    const othersDenial = await beDenied(tenant, other.headers)
    const override = await authorize(asker.headers, othersDenial)
    expect(override.status).toBe(200)
    const used = await run(world, tenant, { agent_id: 'coder-v1', override_token: override.body.token }, asker.headers)
    expectSelfDecisionRefused(used)
    expect(
      (await run(world, tenant, { agent_id: 'coder-v1', override_token: override.body.token }, other.headers)).status,
    ).toBe(200)
  })

  test('the only key with control may, and answer, receipt, audit event and control tower say self_approved', async () => {
    const tenant = await deniedTenant()
    const decisionId = await beDenied(tenant, tenant.headers)
    const override = await authorize(tenant.headers, decisionId)
    expect([override.status, override.body.self_approved]).toEqual([200, true])
    const audits = await readAudits(world.db, tenant.tenantId)
    expect(audits.find((event) => event.type === 'override.issued')!.data.self_approved).toBe(true)
    expect((await world.get(`/api/decisions/${decisionId}`, tenant.headers)).body.self_approved).toBe(true)
    expect(await controlTower(tenant)).toMatchObject({ self_approved: true, self_approved_count: 1 })
    const completed = await run(world, tenant, { agent_id: 'coder-v1', override_token: override.body.token })
    expect(completed.body.receipt.governance).toMatchObject({ self_approved: true })
    await world.call('PUT', '/api/settings', { self_approval: 'never' }, tenant.headers)
    expectSelfDecisionRefused(await authorize(tenant.headers, decisionId))
  })

  test('mandate_ids on a key narrow what it may override', async () => {
    const tenant = await richTenant(world)
    await world.post('/api/policies', { name: 'Small', constraints: { max_per_run_usdc: 1 } }, tenant.headers)
    const mandate = async (agent_id: string) =>
      (await world.post('/api/mandates', { name: 'm', agent_id, constraints: [] }, tenant.headers)).body.mandate_id
    const [ofBuyer, ofOther] = [await mandate('buyer'), await mandate('other')]
    const asker = await makeKey(tenant, AGENT)
    const narrowed = await makeKey(tenant, ['mandate'], { mandate_ids: [ofBuyer] })
    const free = await makeKey(tenant, ['mandate'])
    const denied = async (agent_id: string, mandate_id?: string) => {
      const merchant = { id: 'shop', pay_to: `0x${'ab'.repeat(20)}` }
      const body = { agent_id, merchant, amount_usdc: 5, ...(mandate_id && { mandate_id }) }
      return (await world.post('/api/pre-auth', body, asker.headers)).body.decision_id as string
    }
    const override = (headers: Headers, agent_id: string, denied_decision_id: string) =>
      world.post(
        '/api/authorize',
        { agent_id, amount_usdc: 5, merchant: 'shop', reason: 'r', denied_decision_id },
        headers,
      )
    expect((await override(narrowed.headers, 'buyer', await denied('buyer', ofBuyer))).status).toBe(200)
    expect((await override(narrowed.headers, 'buyer', await denied('buyer'))).status).toBe(200)
    expectSelfDecisionRefused(await override(narrowed.headers, 'other', await denied('other', ofOther)))
    expectSelfDecisionRefused(await override(narrowed.headers, 'other', await denied('other')))
    expectSelfDecisionRefused(await override(narrowed.headers, 'nobody', await denied('nobody')))
    expect((await override(free.headers, 'other', await denied('other', ofOther))).status).toBe(200)
  })
})
