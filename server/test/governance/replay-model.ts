import fc from 'fast-check'
import { expect } from 'vitest'
import { richTenant, run, type Tenant, type World } from './world.ts'

/**
 * Sends random payments under random policies over HTTP, then replays each policy with `simulate`. For every decision
 * three outcomes must agree: the recorded one, the replayed one, and one computed here from the documented rules.
 */
const lanes = {
  'comedian-v1': 10_000,
  'support-v1': 11_000,
  'writer-v1': 13_000,
  'researcher-v2': 23_000,
  'coder-v1': 25_000,
} as const
type Lane = keyof typeof lanes
const lane = fc.constantFrom(...(Object.keys(lanes) as Lane[]))
const oneOf = (values: readonly number[]) => fc.constantFrom(...values)

type Constraints = Partial<{
  max_per_run_usdc: number
  max_per_day_usdc: number
  max_per_month_usdc: number
  max_runs_per_minute: number
  allowed_agents: string[]
  denied_agents: string[]
  denied_merchants: string[]
  allowed_hours_utc: number[]
  require_approval_above_usdc: number
  require_preauth: boolean
}>

const constraints: fc.Arbitrary<Constraints> = fc.record(
  {
    max_per_run_usdc: oneOf([0.01, 0.012, 0.013, 0.025]),
    max_per_day_usdc: oneOf([0.03, 0.05, 0.08, 0.2]),
    max_per_month_usdc: oneOf([0.05, 0.1, 0.3]),
    max_runs_per_minute: oneOf([1, 2, 3, 6]),
    allowed_agents: fc.uniqueArray(lane, { minLength: 2 }),
    denied_agents: fc.uniqueArray(lane, { maxLength: 2 }),
    denied_merchants: fc.constantFrom(['shop'], ['countersign'], []),
    allowed_hours_utc: fc.constantFrom([...Array(24).keys()], [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22]),
    require_approval_above_usdc: oneOf([0.011, 0.02]),
    require_preauth: fc.boolean(),
  },
  { requiredKeys: [] },
)

type Mode = 'enforce' | 'warn' | 'shadow'
type Draft = { mode: Mode; agent_id?: Lane; constraints: Constraints }
const draft: fc.Arbitrary<Draft> = fc.record(
  { mode: fc.constantFrom('enforce', 'enforce', 'warn', 'shadow'), agent_id: lane, constraints },
  { requiredKeys: ['mode', 'constraints'] },
)

type Op =
  | { do: 'run'; lane: Lane; fails: boolean }
  | { do: 'burst'; lanes: Lane[] }
  | { do: 'pay'; lane: Lane; micro: number; merchant: string; end: 'open' | 'voided' | number }
  | { do: 'wait'; ms: number }

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('run' as const), lane, fails: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('burst' as const), lanes: fc.array(lane, { minLength: 2, maxLength: 6 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pay' as const),
      lane,
      micro: oneOf([5_000, 10_000, 20_000]),
      merchant: fc.constantFrom('shop', 'market'),
      end: fc.oneof(fc.constantFrom('open' as const, 'voided' as const), oneOf([1, 4_000, 5_000])),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: oneOf([1_000, 60_000, 3_600_000, 86_400_000]) }),
  },
)

export const history = fc.record({
  drafts: fc.array(draft, { minLength: 1, maxLength: 3 }),
  ops: fc.array(op, { minLength: 4, maxLength: 14 }),
})
export type History = { drafts: Draft[]; ops: Op[] }

type Payment = { agent: string; micro: number; merchant: string; at: Date; preauth: boolean }
type Policy = Draft & { id: string; counters: Map<string, number> }

const worstVerdict = (verdicts: string[]) =>
  ['blocked', 'review_required'].find((verdict) => verdicts.includes(verdict)) ?? 'pass'
const applies = (policy: Policy, payment: Payment) => policy.agent_id === undefined || policy.agent_id === payment.agent
const micro = (usdc: number) => Math.round(usdc * 1e6)

/** The counters of a policy: the name of the window, what a payment adds, and the limit. */
function countersOf(
  { constraints }: Policy,
  { at, micro: amount }: Payment,
): [name: string, adds: number, limit: number][] {
  const iso = at.toISOString()
  const all: [string, number, number | undefined][] = [
    [
      `day ${iso.slice(0, 10)}`,
      amount,
      constraints.max_per_day_usdc === undefined ? undefined : micro(constraints.max_per_day_usdc),
    ],
    [
      `month ${iso.slice(0, 7)}`,
      amount,
      constraints.max_per_month_usdc === undefined ? undefined : micro(constraints.max_per_month_usdc),
    ],
    [`minute ${iso.slice(0, 16)}`, 1, constraints.max_runs_per_minute],
  ]
  return all.filter((counter): counter is [string, number, number] => counter[2] !== undefined)
}

/** The outcome of a policy for a payment, computed independently of the service; null when it does not apply. */
function expectedOutcome(policy: Policy, payment: Payment): string | null {
  if (!applies(policy, payment)) return null
  const constraints = policy.constraints
  const verdicts: string[] = []
  if (constraints.max_per_run_usdc !== undefined && payment.micro > micro(constraints.max_per_run_usdc))
    verdicts.push('blocked')
  if (constraints.allowed_agents && !constraints.allowed_agents.includes(payment.agent)) verdicts.push('blocked')
  if (constraints.denied_agents?.includes(payment.agent)) verdicts.push('blocked')
  if (constraints.denied_merchants?.includes(payment.merchant)) verdicts.push('blocked')
  if (constraints.allowed_hours_utc && !constraints.allowed_hours_utc.includes(payment.at.getUTCHours()))
    verdicts.push('blocked')
  if (constraints.require_preauth && !payment.preauth) verdicts.push('blocked')
  if (
    constraints.require_approval_above_usdc !== undefined &&
    payment.micro > micro(constraints.require_approval_above_usdc)
  )
    verdicts.push('review_required')
  for (const [name, adds, limit] of countersOf(policy, payment))
    if ((policy.counters.get(name) ?? 0) + adds > limit) verdicts.push('blocked')
  const verdict = worstVerdict(verdicts)
  if (verdict === 'pass' || policy.mode === 'shadow') return hasActiveConstraint(constraints) ? 'pass' : null
  return policy.mode === 'warn' ? 'warning' : verdict
}

/** A policy whose only constraint is `require_preauth: false` has no results. */
const hasActiveConstraint = (constraints: Constraints) =>
  Object.entries(constraints).some(([, value]) => value !== false)

const count = (policy: Policy, payment: Payment, sign: 1 | -1) => {
  for (const [name, adds] of countersOf(policy, payment))
    policy.counters.set(name, (policy.counters.get(name) ?? 0) + sign * adds)
}

/** Runs the history and returns the expected outcome of each policy by run id. */
async function runStory(world: World, tenant: Tenant, policies: Policy[], ops: readonly Op[]) {
  const expected = new Map<string, Map<string, string | null>>()
  const expectAll = (runId: string, verdicts: (string | null)[]) =>
    expected.set(runId, new Map(policies.map((policy, index) => [policy.id, verdicts[index]!])))
  const countAdmitted = (payment: Payment) =>
    policies.filter((policy) => applies(policy, payment)).map((policy) => count(policy, payment, 1))
  let number = 0
  const task = () => {
    number += 1
    return `Joke number ${number}.`
  }

  for (const op of ops) {
    const at = world.clock.now()
    if (op.do === 'wait') world.clock.advance(op.ms)
    if (op.do === 'run') {
      const payment = { agent: op.lane, micro: lanes[op.lane], merchant: 'countersign', at, preauth: false }
      const verdicts = policies.map((policy) => expectedOutcome(policy, payment))
      world.lane.failing = op.fails
      const answer = await run(world, tenant, { task: task(), agent_id: op.lane })
      world.lane.failing = false
      expect([200, 429, 500], answer.text).toContain(answer.status)
      expectAll(answer.body.run_id, verdicts)
      if (answer.status === 200) countAdmitted(payment)
    }
    if (op.do === 'burst') {
      const answers = await Promise.all(op.lanes.map((agent_id) => run(world, tenant, { task: task(), agent_id })))
      answers.forEach(({ status }, index) => {
        const agent = op.lanes[index]!
        if (status === 200) countAdmitted({ agent, micro: lanes[agent], merchant: 'countersign', at, preauth: false })
      })
    }
    if (op.do === 'pay') {
      const payment = { agent: op.lane as string, micro: op.micro, merchant: op.merchant, at, preauth: true }
      const verdicts = policies.map((policy) => expectedOutcome(policy, payment))
      const body = { agent_id: op.lane, amount: String(op.micro), merchant: { id: op.merchant } }
      const answer = await world.post('/api/pre-auth', body, tenant.headers)
      expect([201, 422], answer.text).toContain(answer.status)
      expectAll(answer.body.run_id, verdicts)
      if (answer.body.status === 'open') {
        countAdmitted(payment)
        if (op.end !== 'open') {
          const report =
            op.end === 'voided' ? { outcome: 'voided' } : { outcome: 'settled', actual_amount: String(op.end) }
          expect(
            (await world.post('/api/pre-auth/close', { preauth_id: answer.body.preauth_id, ...report }, tenant.headers))
              .status,
          ).toBe(200)
          settle(policies, payment, op.end === 'voided' ? null : op.end)
        }
      }
    }
  }
  return expected
}

/** A voided payment is not counted; a settled one counts with the charged amount, and as one payment. */
function settle(policies: Policy[], payment: Payment, charged: number | null) {
  for (const policy of policies.filter((policy) => applies(policy, payment))) {
    count(policy, payment, -1)
    if (charged === null) continue
    for (const [name, adds] of countersOf(policy, payment))
      policy.counters.set(name, (policy.counters.get(name) ?? 0) + (name.startsWith('minute') ? adds : charged))
  }
}

export async function runAndReplay(world: World, { drafts, ops }: History): Promise<number> {
  const tenant = await richTenant(world)
  const policies: Policy[] = []
  for (const draft of drafts) {
    const createResponse = await world.post('/api/policies', draft, tenant.headers)
    expect(createResponse.status, createResponse.text).toBe(201)
    policies.push({ ...draft, id: createResponse.body.id, counters: new Map() })
  }
  const expected = await runStory(world, tenant, policies, ops)
  let comparedCount = 0
  for (const policy of policies) {
    const { mode, agent_id, constraints } = policy
    const answer = await world.post(
      '/api/policies/simulate',
      { policy: { mode, agent_id, constraints }, replaces: policy.id, limit: 5_000 },
      tenant.headers,
    )
    expect(answer.status, answer.text).toBe(200)
    for (const { run_id, recorded, simulated, change, kind } of answer.body.results) {
      const outcome = simulated.policy_results.length === 0 ? null : simulated.outcome
      expect(
        { run_id, kind, outcome },
        JSON.stringify({ policy: { mode, agent_id, constraints }, simulated, recorded }),
      ).toEqual({ run_id, kind, outcome: recorded.policy_outcome })
      if (expected.has(run_id))
        expect({ run_id, kind, outcome }).toEqual({ run_id, kind, outcome: expected.get(run_id)!.get(policy.id) })
      expect({ run_id, change }).toEqual({ run_id, change: 'none' })
      comparedCount += 1
    }
    expect(answer.body).toMatchObject({ changed: 0, money: { difference_usdc: 0 } })
  }
  return comparedCount
}

/** Histories that reach every limit exactly and then exceed it; they run before the random ones. */
export const edgeCaseHistories: History[] = [
  {
    // Exactly at the limit: 13 + 13 + 10 + 10 = 46 thousand; failed and voided payments are not counted.
    drafts: [
      { mode: 'enforce', constraints: { max_per_run_usdc: 0.013, max_per_day_usdc: 0.046, max_per_month_usdc: 0.06 } },
    ],
    ops: [
      { do: 'run', lane: 'writer-v1', fails: false },
      { do: 'run', lane: 'writer-v1', fails: true },
      { do: 'pay', lane: 'writer-v1', micro: 10_000, merchant: 'shop', end: 'voided' },
      { do: 'run', lane: 'writer-v1', fails: false },
      { do: 'run', lane: 'researcher-v2', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'wait', ms: 86_400_000 },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
    ],
  },
  {
    // Charged less than was held: the rest can be spent exactly; the payment still counts as one.
    drafts: [
      { mode: 'enforce', constraints: { max_per_day_usdc: 0.024 } },
      { mode: 'enforce', constraints: { max_runs_per_minute: 3 } },
      { mode: 'warn', constraints: { max_per_day_usdc: 0.02, max_runs_per_minute: 1 } },
    ],
    ops: [
      { do: 'pay', lane: 'coder-v1', micro: 20_000, merchant: 'shop', end: 4_000 },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'wait', ms: 60_000 },
      { do: 'burst', lanes: ['comedian-v1', 'comedian-v1', 'support-v1'] },
      { do: 'wait', ms: 86_400_000 },
      { do: 'burst', lanes: ['comedian-v1', 'comedian-v1', 'comedian-v1', 'support-v1', 'writer-v1'] },
      { do: 'run', lane: 'comedian-v1', fails: false },
    ],
  },
  {
    drafts: [
      {
        mode: 'enforce',
        constraints: { require_approval_above_usdc: 0.013, denied_agents: ['coder-v1'], denied_merchants: ['shop'] },
      },
      {
        mode: 'shadow',
        agent_id: 'writer-v1',
        constraints: { allowed_agents: ['comedian-v1'], allowed_hours_utc: [0, 1, 2] },
      },
      { mode: 'enforce', agent_id: 'support-v1', constraints: { require_preauth: true } },
    ],
    ops: [
      { do: 'run', lane: 'writer-v1', fails: false },
      { do: 'run', lane: 'researcher-v2', fails: false },
      { do: 'run', lane: 'coder-v1', fails: false },
      { do: 'run', lane: 'support-v1', fails: false },
      { do: 'pay', lane: 'support-v1', micro: 13_000, merchant: 'market', end: 'open' },
      { do: 'pay', lane: 'support-v1', micro: 13_001, merchant: 'market', end: 'open' },
      { do: 'pay', lane: 'support-v1', micro: 5_000, merchant: 'shop', end: 'open' },
      { do: 'wait', ms: 3_600_000 },
      { do: 'run', lane: 'writer-v1', fails: false },
    ],
  },
  {
    // While one run takes the last place in the minute, others need an approval: later runs are blocked.
    drafts: [{ mode: 'enforce', constraints: { max_runs_per_minute: 2, require_approval_above_usdc: 0.02 } }],
    ops: Array.from({ length: 12 }, (): Op[] => [
      { do: 'run', lane: 'comedian-v1', fails: false },
      { do: 'burst', lanes: ['coder-v1', 'comedian-v1', 'coder-v1', 'researcher-v2', 'coder-v1'] },
      { do: 'wait', ms: 60_000 },
    ]).flat(),
  },
]
