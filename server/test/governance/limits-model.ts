import fc from 'fast-check'
import { expect } from 'vitest'
import { counterFaults, richTenant, run, type Tenant, type World } from './world.ts'

/**
 * A small model of payments under a budget, a mandate and a policy. Random operations (hold, spend, release, close,
 * expire, escalate, override, approve) are applied to the model and to the service, and both must agree.
 */
const PRICE = 10_000
const THRESHOLD = 300_000
const MANDATE = 600_000
const TTL_MS = 120_000
const CLOSE_MS = 600_000
const WINDOW_MS = 86_400_000

export type Op =
  | {
      do: 'ask'
      micro: number
      merchant: 'shop' | 'casino'
      mandate: boolean
      override: number | null
      mutate: 'none' | 'amount' | 'merchant'
    }
  | { do: 'reserve-run' }
  | { do: 'close'; index: number; how: 'settled' | 'failed' | 'voided'; share: number }
  | { do: 'run'; fails: boolean; token: number | null }
  | { do: 'decide'; index: number; how: 'approve' | 'reject' }
  | { do: 'authorize'; micro: number; merchant: 'shop' | 'casino' }
  | { do: 'limit'; micro: number }
  | { do: 'wait'; ms: number }
  | { do: 'sweep' }

const amounts = fc.constantFrom(50_000, 100_000, 250_000, 400_000)
const merchant = fc.constantFrom('shop' as const, 'shop' as const, 'casino' as const)
const index = fc.nat({ max: 30 })
const optionalIndex = fc.option(index, { freq: 2 })
const constant = <T extends string>(name: T) => fc.constant(name)

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: constant('ask'),
      micro: amounts,
      merchant,
      mandate: fc.boolean(),
      override: optionalIndex,
      mutate: fc.constantFrom('none', 'none', 'amount', 'merchant'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: constant('reserve-run') }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: constant('close'),
      index,
      how: fc.constantFrom('settled', 'settled', 'failed', 'voided'),
      share: fc.constantFrom(0, 0.3, 1, 1.5),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: constant('run'), fails: fc.boolean(), token: optionalIndex }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: constant('decide'),
      index,
      how: fc.constantFrom('approve', 'approve', 'reject'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: constant('authorize'), micro: amounts, merchant }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: constant('limit'), micro: fc.constantFrom(200_000, 700_000, 1_000_000, 1_500_000) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: constant('wait'),
      ms: fc.constantFrom(1, 1_000, TTL_MS - 1, TTL_MS, CLOSE_MS - 1, CLOSE_MS, WINDOW_MS),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: constant('sweep') }) },
) as fc.Arbitrary<Op>

export const ops = (maxLength: number) => fc.array(op, { minLength: 5, maxLength: maxLength })

type Preauth = {
  id: string
  runId: string
  token: string | null
  micro: number
  merchant: string
  mandate: boolean
  status: 'pending_approval' | 'open' | 'escalated' | 'closed' | 'rejected'
  overrideId: number | null
  expiresAt: number
  closeBy: number
  approval: Approval | null
}
type Approval = { id: string; preauth: Preauth; status: 'pending' | 'approved' | 'rejected'; expiresAt: number }
type Override = { token: string; micro: number; merchant: string; expiresAt: number; used: boolean }

class Model {
  limit = 1_000_000
  spent = 0
  reserved = 0
  mandateSpent = 0
  mandateReserved = 0
  preauths: Preauth[] = []
  approvals: Approval[] = []
  overrides: Override[] = []
  /** Denials that can be overridden, with their time. */
  denials: { micro: number; merchant: string; at: number }[] = []

  hasRoom = (micro: number, mandate: boolean) =>
    this.spent + this.reserved + micro <= this.limit &&
    (!mandate || this.mandateSpent + this.mandateReserved + micro <= MANDATE)

  hold(preauth: Preauth) {
    this.reserved += preauth.micro
    if (preauth.mandate) this.mandateReserved += preauth.micro
  }

  settle(preauth: Preauth, charged: number) {
    this.reserved -= preauth.micro
    this.spent += charged
    if (preauth.mandate) {
      this.mandateReserved -= preauth.micro
      this.mandateSpent += charged
    }
  }
}

export async function runModel(world: World, ops: readonly Op[]): Promise<void> {
  const tenant = await richTenant(world)
  const { headers } = tenant
  const model = new Model()
  await world.post('/api/budgets', { budget_id: 'b', window: 'total', limit_usdc: 1 }, headers)
  const mandate = await world.post(
    '/api/mandates',
    {
      name: 'm',
      agent_id: 'buyer',
      constraints: [{ type: 'payment.budget', currency: 'USDC', max: '600000' }],
    },
    headers,
  )
  await world.post(
    '/api/policies',
    { constraints: { denied_merchants: ['casino'], require_approval_above_usdc: THRESHOLD / 1e6 } },
    headers,
  )
  const mandateId: string = mandate.body.id
  for (const op of ops) {
    await operations[op.do](world, tenant, mandateId, model, op as never)
    await compare(world, headers, mandateId, model)
  }
  const { body } = await world.get('/api/pre-auth?limit=100', headers)
  const statuses = new Map(
    body.preauths.map((row: { preauth_id: string; status: string }) => [row.preauth_id, row.status]),
  )
  for (const preauth of model.preauths) expect(statuses.get(preauth.id), preauth.id).toBe(preauth.status)
}

async function compare(world: World, headers: Record<string, string>, mandateId: string, model: Model) {
  const [budgets, remaining, faults] = await Promise.all([
    world.get('/api/budgets', headers),
    world.get(`/api/mandates/${mandateId}/remaining`, headers),
    counterFaults(world),
  ])
  const [budget] = budgets.body.budgets
  const micro = (usdc: number) => Math.round(usdc * 1e6)
  expect({
    spent: micro(budget.spent_usdc),
    reserved: micro(budget.reserved_usdc),
    limit: micro(budget.limit_usdc),
  }).toEqual({ spent: model.spent, reserved: model.reserved, limit: model.limit })
  expect({ spent: Number(remaining.body.spent), reserved: Number(remaining.body.reserved) }).toEqual({
    spent: model.mandateSpent,
    reserved: model.mandateReserved,
  })
  expect(faults).toEqual([])
}

const pick = <T>(list: readonly T[], index: number): T | undefined =>
  list.length === 0 ? undefined : list[index % list.length]
type Step<D extends Op['do']> = (
  world: World,
  tenant: Tenant,
  mandateId: string,
  model: Model,
  op: Extract<Op, { do: D }>,
) => Promise<void>

const operations: { [D in Op['do']]: Step<D> } = {
  async ask(world, tenant, mandateId, model, { micro, merchant, mandate: names, override: index, mutate }) {
    // The mandate binds the buyer, named or not.
    const mandate = true
    const now = world.clock.now().getTime()
    const override = index === null ? undefined : pick(model.overrides, index)
    // An override is used for its own payment, or with one field changed.
    const amount = override ? (mutate === 'amount' ? override.micro + 1 : override.micro) : micro
    const merchantId = override ? (mutate === 'merchant' ? 'elsewhere' : override.merchant) : merchant
    const body = {
      agent_id: 'buyer',
      merchant: { id: merchantId },
      amount: String(amount),
      ttl_seconds: TTL_MS / 1000,
      ...(names && { mandate_id: mandateId }),
      ...(override && { override_token: override.token }),
    }
    const answer = await world.post('/api/pre-auth', body, tenant.headers)
    if (override) {
      const refusal = override.used
        ? 409
        : override.expiresAt <= now
          ? 410
          : amount !== override.micro || merchantId !== override.merchant
            ? 400
            : undefined
      if (refusal) return void expect(answer.status, answer.text).toBe(refusal)
    }
    const isDenied = merchantId === 'casino' && !override
    if (isDenied || !model.hasRoom(amount, mandate)) {
      expect(answer.status, answer.text).toBe(422)
      if (isDenied) model.denials.push({ micro: amount, merchant: merchantId, at: now })
      model.preauths.push(toPreauth(answer.body, amount, merchantId, mandate, 'rejected', now))
      return
    }
    expect(answer.status, answer.text).toBe(201)
    const needsApproval = amount > THRESHOLD
    const preauth = toPreauth(
      answer.body,
      amount,
      merchantId,
      mandate,
      needsApproval ? 'pending_approval' : 'open',
      now,
    )
    expect(answer.body.status).toBe(preauth.status)
    model.preauths.push(preauth)
    if (needsApproval) {
      preauth.overrideId = override && merchantId === 'casino' ? model.overrides.indexOf(override) : null
      preauth.approval = { id: answer.body.approval_id, preauth, status: 'pending', expiresAt: now + WINDOW_MS }
      model.approvals.push(preauth.approval)
      return
    }
    model.hold(preauth)
    if (override && merchantId === 'casino') override.used = true
  },

  async 'reserve-run'(world, tenant, _, model) {
    const now = world.clock.now().getTime()
    const body = {
      agent_id: 'comedian-v1',
      merchant: { id: 'countersign' },
      amount: '50000',
      ttl_seconds: TTL_MS / 1000,
    }
    const answer = await world.post('/api/pre-auth', body, tenant.headers)
    const hasRoom = model.hasRoom(50_000, false)
    expect(answer.status, answer.text).toBe(hasRoom ? 201 : 422)
    const preauth = toPreauth(answer.body, 50_000, 'countersign', false, hasRoom ? 'open' : 'rejected', now)
    model.preauths.push(preauth)
    if (hasRoom) model.hold(preauth)
  },

  async close(world, tenant, _, model, { index, how: outcome, share }) {
    const preauth = pick(model.preauths, index)
    if (!preauth) return
    const now = world.clock.now().getTime()
    const charged = outcome === 'settled' ? Math.round(preauth.micro * share) : 0
    const body = {
      preauth_id: preauth.id,
      outcome: outcome,
      ...(outcome === 'settled' && { actual_amount: String(charged) }),
    }
    const answer = await world.post('/api/pre-auth/close', body, tenant.headers)
    if ((preauth.status !== 'open' && preauth.status !== 'escalated') || charged > preauth.micro)
      return void expect(answer.status, answer.text).toBe(409)
    expect(answer.body, answer.text).toMatchObject({
      charged: String(charged),
      released: String(preauth.micro - charged),
      late: now >= preauth.closeBy,
    })
    preauth.status = 'closed'
    model.settle(preauth, charged)
  },

  async run(world, tenant, _, model, { fails, token }) {
    const preauth = token === null ? undefined : pick(model.preauths, token)
    const now = world.clock.now().getTime()
    world.lane.failing = fails
    const answer = await run(world, tenant, {
      task: `joke at ${now} ${Math.random()}`,
      ...(preauth?.token && { preauth_token: preauth.token }),
    })
    world.lane.failing = false
    if (preauth?.token) {
      const refusal =
        preauth.status !== 'open'
          ? 409
          : preauth.expiresAt <= now
            ? 410
            : preauth.merchant !== 'countersign'
              ? 400
              : undefined
      if (refusal) return void expect(answer.status, answer.text).toBe(refusal)
      expect(answer.status, answer.text).toBe(fails ? 500 : 200)
      expect(answer.body.run_id).toBe(preauth.runId)
      preauth.status = 'closed'
      return model.settle(preauth, fails ? 0 : PRICE)
    }
    if (!model.hasRoom(PRICE, false)) return void expect(answer.status, answer.text).toBe(429)
    expect(answer.status, answer.text).toBe(fails ? 500 : 200)
    if (!fails) model.spent += PRICE
  },

  async decide(world, tenant, _, model, { index, how: outcome }) {
    const approval = pick(model.approvals, index)
    if (!approval) return
    const now = world.clock.now().getTime()
    const { preauth } = approval
    const answer = await world.post('/api/approvals', { approval_id: approval.id, decision: outcome }, tenant.headers)
    if (approval.status !== 'pending') return void expect(answer.status, answer.text).toBe(409)
    if (approval.expiresAt <= now) {
      expect(answer.status, answer.text).toBe(409)
      approval.status = 'rejected'
      preauth.status = 'rejected'
      return
    }
    if (outcome === 'reject') {
      expect(answer.status, answer.text).toBe(200)
      approval.status = 'rejected'
      preauth.status = 'rejected'
      return
    }
    const override = preauth.overrideId === null ? undefined : model.overrides[preauth.overrideId]!
    const isUsable = !override || (!override.used && override.expiresAt > now)
    const isDenied = preauth.merchant === 'casino' && !override
    if (isDenied || !isUsable || !model.hasRoom(preauth.micro, preauth.mandate))
      return void expect(answer.status, answer.text).toBe(409)
    expect(answer.status, answer.text).toBe(200)
    approval.status = 'approved'
    if (override) override.used = true
    const storedResponse = await world.get(`/api/pre-auth/${preauth.id}`, tenant.headers)
    Object.assign(preauth, {
      status: 'open',
      token: storedResponse.body.token,
      expiresAt: now + TTL_MS,
      closeBy: now + CLOSE_MS,
    })
    model.hold(preauth)
  },

  async authorize(world, tenant, _, model, { micro, merchant }) {
    const now = world.clock.now().getTime()
    const answer = await world.post(
      '/api/authorize',
      { agent_id: 'buyer', amount_usdc: micro / 1e6, merchant, reason: 'because', expires_in_seconds: 600 },
      tenant.headers,
    )
    const hasDenial = model.denials.some(
      (denial) => denial.micro === micro && denial.merchant === merchant && denial.at > now - 86_400_000,
    )
    expect(answer.status, answer.text).toBe(hasDenial ? 200 : 400)
    if (hasDenial)
      model.overrides.push({ token: answer.body.token, micro, merchant, expiresAt: now + 600_000, used: false })
  },

  async limit(world, tenant, _, model, { micro }) {
    const answer = await world.post('/api/budgets', { budget_id: 'b', limit_usdc: micro / 1e6 }, tenant.headers)
    const isAccepted = micro >= model.spent + model.reserved
    expect(answer.status, answer.text).toBe(isAccepted ? 200 : 400)
    if (isAccepted) model.limit = micro
  },

  async wait(world, _tenant, _mandate, _model, { ms }) {
    world.clock.advance(ms)
  },

  async sweep(world, _tenant, _mandate, model) {
    const now = world.clock.now().getTime()
    await world.service.governance.sweepOrphanedPreauths()
    await world.service.governance.sweepExpiredApprovals()
    for (const preauth of model.preauths)
      if (preauth.status === 'open' && preauth.closeBy <= now) preauth.status = 'escalated'
    for (const approval of model.approvals) {
      if (approval.status !== 'pending' || approval.expiresAt > now) continue
      approval.status = 'rejected'
      approval.preauth.status = 'rejected'
    }
  },
}

const toPreauth = (
  body: { preauth_id: string; run_id: string; token?: string | null },
  micro: number,
  merchant: string,
  mandate: boolean,
  status: Preauth['status'],
  now: number,
): Preauth => ({
  id: body.preauth_id,
  runId: body.run_id,
  token: body.token ?? null,
  micro,
  merchant,
  mandate,
  status,
  overrideId: null,
  expiresAt: now + TTL_MS,
  closeBy: now + CLOSE_MS,
  approval: null,
})
