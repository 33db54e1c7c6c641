import { describe, expect, test } from 'vitest'
import type { PaymentFacts } from '../../src/modules/governance/assess/payment-facts.ts'
import type { CounterState } from '../../src/modules/governance/counters/limit-counters.ts'
import { endOf, isRolling, periodOf, sliceEnd, type Window } from '../../src/modules/governance/counters/windows.ts'
import {
  appliesTo,
  contentHash,
  evaluatePolicy,
  type Policy,
  policyDemands,
  unselectedResult,
} from '../../src/modules/governance/rules/evaluate-policy.ts'
import type { Constraints } from '../../src/modules/governance/rules/policy-constraints.ts'
import { type RuleInput, readRule } from '../../src/modules/governance/rules/policy-rules.ts'
import {
  type Mode,
  type Outcome,
  type SmallestChange,
  worstOutcome,
} from '../../src/modules/governance/rules/rule-result.ts'

const facts: PaymentFacts = {
  kind: 'run',
  action: 'run',
  agentId: 'writer-v1',
  spender: null,
  lane: 'writer-v1',
  team: null,
  keyId: 'key_2',
  tags: {},
  amountMicro: 20_000n,
  merchants: ['countersign', 'pay.example', '0xabc'],
  network: 'eip155:8453',
  sessionId: 's1',
  at: new Date('2026-11-16T15:30:00Z'),
  preauthorised: false,
}

const policyOf = (constraints: Constraints, rules: RuleInput[] = [], mode: Mode = 'enforce'): Policy => ({
  id: 'pol_1',
  version: 1,
  content_hash: 'sha256:0',
  name: 'P',
  mode,
  identity_type: 'tenant',
  agent_id: null,
  key_id: null,
  key_prefix: null,
  audit_trail_required: false,
  constraints,
  rules: rules.map(readRule),
  keyIds: new Set(),
})

const counterWith =
  (micro: bigint) =>
  (demand: { expectedLimitMicro: bigint }): CounterState => ({
    limitMicro: demand.expectedLimitMicro,
    softLimitMicro: null,
    spentMicro: micro,
    reservedMicro: 0n,
  })

const decide = (policy: Policy, payment: Partial<PaymentFacts> = {}, usedMicro = 0n) =>
  evaluatePolicy(policy, { ...facts, ...payment }, policy.mode, counterWith(usedMicro))

/** Every constraint exactly at its limit and one step beyond it. */
const table: [constraints: Constraints, asked: Partial<PaymentFacts> & { used?: bigint }, outcome: Outcome][] = [
  [{}, {}, 'pass'],
  [{ max_per_run_usdc: 0.02 }, {}, 'pass'],
  [{ max_per_run_usdc: 0.019999 }, {}, 'blocked'],
  [{ max_per_run_usdc: 0 }, { amountMicro: 0n }, 'pass'],
  [{ max_per_day_usdc: 0.05 }, { used: 30_000n }, 'pass'],
  [{ max_per_day_usdc: 0.05 }, { used: 30_001n }, 'blocked'],
  [{ max_per_month_usdc: 0.05 }, { used: 30_000n }, 'pass'],
  [{ max_per_month_usdc: 0.05 }, { used: 30_001n }, 'blocked'],
  [{ max_runs_per_minute: 3 }, { used: 2n }, 'pass'],
  [{ max_runs_per_minute: 3 }, { used: 3n }, 'blocked'],
  [{ max_runs_per_minute: 0 }, {}, 'blocked'],
  [{ allowed_agents: ['writer-v1'] }, {}, 'pass'],
  [{ allowed_agents: ['Writer-v1'] }, {}, 'blocked'],
  [{ allowed_agents: [] }, {}, 'blocked'],
  [{ denied_agents: ['writer-v1'] }, {}, 'blocked'],
  [{ denied_agents: ['coder-v1'] }, {}, 'pass'],
  [{ allowed_agents: ['writer-v1'], denied_agents: ['writer-v1'] }, {}, 'blocked'],
  [{ allowed_merchants: ['countersign'] }, {}, 'pass'],
  [{ allowed_merchants: ['PAY.example'] }, {}, 'pass'],
  [{ allowed_merchants: ['0xABC'] }, {}, 'pass'],
  [{ allowed_merchants: ['acme'] }, {}, 'blocked'],
  [{ denied_merchants: ['pay.example'] }, {}, 'blocked'],
  [{ denied_merchants: ['acme'] }, {}, 'pass'],
  [{ allowed_networks: ['eip155:8453'] }, {}, 'pass'],
  [{ allowed_networks: ['eip155:1'] }, {}, 'blocked'],
  [{ allowed_networks: ['eip155:1'] }, { network: null }, 'pass'],
  [{ allowed_hours_utc: { start: 15, end: 16 } }, {}, 'pass'],
  [{ allowed_hours_utc: { start: 16, end: 24 } }, {}, 'blocked'],
  [{ allowed_hours_utc: { start: 9, end: 15 } }, {}, 'blocked'],
  [{ allowed_hours_utc: { start: 22, end: 16 } }, {}, 'pass'],
  [{ allowed_hours_utc: { start: 0, end: 24 } }, {}, 'pass'],
  [{ allowed_hours_utc: [14, 15] }, {}, 'pass'],
  [{ allowed_hours_utc: [14, 16] }, {}, 'blocked'],
  [{ allowed_hours_utc: [] }, {}, 'blocked'],
  [{ require_approval_above_usdc: 0.02 }, {}, 'pass'],
  [{ require_approval_above_usdc: 0.019999 }, {}, 'review_required'],
  [{ require_approval_above_usdc: 0, max_per_run_usdc: 0.01 }, {}, 'blocked'],
  [{ require_preauth: true }, {}, 'blocked'],
  [{ require_preauth: true }, { preauthorised: true }, 'pass'],
  [{ require_preauth: false }, {}, 'pass'],
  [{ allowed_instruments: ['equity'] }, {}, 'pass'],
  [{ allowed_instruments: ['equity'] }, { instrument: 'perp' }, 'blocked'],
  [{ denied_instruments: ['perp'] }, { instrument: 'perp' }, 'blocked'],
  [{ denied_instruments: ['perp'] }, { instrument: 'equity' }, 'pass'],
  [{ max_leverage: 2 }, { leverage: 2 }, 'pass'],
  [{ max_leverage: 2 }, { leverage: 2.1 }, 'blocked'],
  [{ max_notional_usdc: 1 }, { notionalMicro: 1_000_000n }, 'pass'],
  [{ max_notional_usdc: 1 }, { notionalMicro: 1_000_001n }, 'blocked'],
]

test.each(table)('%j for a payment with %o gives %s', (constraints, { used: usedMicro, ...payment }, outcome) => {
  const results = decide(policyOf(constraints), payment, usedMicro)
  expect(worstOutcome(results)).toBe(outcome)
  for (const { rule, reason } of results) expect(reason).toContain(rule === 'require_preauth' ? 'pre-authorised' : rule)
})

test('a blocked payment only warns in warn mode, and is only recorded in shadow mode', () => {
  const [withWarning] = decide(policyOf({ max_per_run_usdc: 0 }, [], 'warn'))
  expect(withWarning).toMatchObject({ verdict: 'blocked', outcome: 'warning' })
  const [inShadow] = decide(policyOf({ max_per_run_usdc: 0 }, [], 'shadow'))
  expect(inShadow).toMatchObject({ verdict: 'blocked', outcome: 'pass' })
})

describe('legacy rules', () => {
  const rule = (field: string, op: string, value: RuleInput['value'], effect: RuleInput['effect']): RuleInput => ({
    field,
    op,
    value,
    effect,
  })
  test.each([
    [[rule('agent_id', 'eq', 'writer-v1', 'deny')], 'blocked'],
    [[rule('agent_id', '!=', 'writer-v1', 'deny')], 'pass'],
    [[rule('amount_usdc', 'gt', 0.02, 'deny')], 'pass'],
    [[rule('amount_usdc', 'gte', 0.02, 'deny')], 'blocked'],
    [[rule('amount_usdc', '<', 0.02, 'deny')], 'pass'],
    [[rule('price_usdc', '<=', 0.02, 'review')], 'review_required'],
    [[rule('merchant', 'in', ['countersign', 'x'], 'deny')], 'blocked'],
    [[rule('merchant', 'not_in', ['countersign', 'x'], 'deny')], 'pass'],
    [[rule('merchant', 'eq', 'PAY.example', 'deny')], 'blocked'],
    [[rule('merchant', 'in', ['0xABC'], 'deny')], 'blocked'],
    [[rule('merchant', 'ne', '0xABC', 'deny')], 'pass'],
    [[rule('merchant', 'not_in', ['acme'], 'deny')], 'blocked'],
    [[rule('merchant', 'eq', 'pay.example', 'allow')], 'pass'],
    [[rule('hour_utc', '>', 15, 'deny')], 'pass'],
    [[rule('hour_utc', '>=', 15, 'deny')], 'blocked'],
    [[rule('leverage', '>', 0, 'deny')], 'pass'],
    [[rule('agent_id', 'eq', 'writer-v1', 'allow')], 'pass'],
    [[rule('agent_id', 'eq', 'coder-v1', 'allow')], 'blocked'],
    [[rule('agent_id', 'eq', 'coder-v1', 'allow'), rule('session_id', 'eq', 's1', 'allow')], 'pass'],
    [[rule('agent_id', 'eq', 'writer-v1', 'allow'), rule('action', 'eq', 'run', 'deny')], 'blocked'],
    [[rule('action', 'eq', 'run', 'review'), rule('network', 'eq', 'eip155:8453', 'deny')], 'blocked'],
  ] as [RuleInput[], Outcome][])('%j is %s', (rules, outcome) => {
    expect(worstOutcome(decide(policyOf({}, rules)))).toBe(outcome)
  })

  test.each(['toString', 'constructor', '__proto__', 'hasOwnProperty'])(
    '%s is rejected as a field and as an operator',
    (name) => {
      expect(() => readRule(rule(name, 'eq', 1, 'deny'), 0)).toThrow(/unknown/)
      expect(() => readRule(rule('agent_id', name, 'x', 'deny'), 0)).toThrow(/unknown/)
    },
  )
})

describe('the suggested smallest change makes the payment pass', () => {
  /** A list is changed by one entry, because a trace does not repeat lists. */
  const applyChange = (value: unknown, { to, add, remove }: SmallestChange) => {
    if (!Array.isArray(value)) return to
    return add !== undefined ? [...value, add] : value.filter((entry) => entry !== remove)
  }
  const constraintsTable: [Constraints, bigint][] = [
    [{ max_per_run_usdc: 0.01 }, 0n],
    [{ require_approval_above_usdc: 0.005 }, 0n],
    [{ max_per_day_usdc: 0.03 }, 25_000n],
    [{ max_runs_per_minute: 2 }, 2n],
    [{ allowed_agents: ['coder-v1'] }, 0n],
    [{ denied_merchants: ['pay.example', 'other'] }, 0n],
    [{ allowed_networks: [] }, 0n],
  ]
  test.each(constraintsTable)('%j', (constraints, usedMicro) => {
    const [name] = Object.keys(constraints) as (keyof Constraints)[]
    const [refusal] = decide(policyOf(constraints), {}, usedMicro)
    const change = refusal!.smallest_change!
    expect(change.path).toBe(`constraints.${name}`)
    expect(worstOutcome(decide(policyOf({ [name!]: applyChange(constraints[name!], change) }), {}, usedMicro))).toBe(
      'pass',
    )
    if (typeof change.to === 'number' && name!.endsWith('_usdc'))
      expect(worstOutcome(decide(policyOf({ [name!]: (change.to * 1e6 - 1) / 1e6 }), {}, usedMicro))).not.toBe('pass')
  })

  test('a payment outside the allowed hours passes at retry_at, and not a millisecond before', () => {
    const policy = policyOf({ allowed_hours_utc: { start: 20, end: 22 } })
    const at = new Date(decide(policy)[0]!.smallest_change!.retry_at!)
    expect(at.toISOString()).toBe('2026-11-16T20:00:00.000Z')
    expect(worstOutcome(decide(policy, { at }))).toBe('pass')
    expect(worstOutcome(decide(policy, { at: new Date(at.getTime() - 1) }))).toBe('blocked')
  })
})

test('a policy applies to its tenant, its agent, or its key and the successors of that key', () => {
  const policy = policyOf({})
  const payment = facts
  expect(appliesTo(policy, payment)).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'agent', agent_id: 'writer-v1' }, payment)).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'agent', agent_id: 'coder-v1' }, payment)).toBe(false)
  expect(
    appliesTo({ ...policy, identity_type: 'api_key', key_id: 'key_1', keyIds: new Set(['key_1', 'key_2']) }, payment),
  ).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'api_key', key_id: 'key_1', keyIds: new Set(['key_1']) }, payment)).toBe(
    false,
  )
})

test('a policy for a team applies to that team only', () => {
  const policy: Policy = { ...policyOf({}), identity_type: 'team', identity_id: 'sales' }
  expect(appliesTo(policy, { ...facts, team: 'sales' })).toBe(true)
  expect(appliesTo(policy, { ...facts, team: 'legal' })).toBe(false)
  expect(appliesTo(policy, facts)).toBe(false)
})

test('a payment that leaves out the field of a rule is blocked once, by the name of the field', () => {
  const rule: RuleInput = { field: 'team', op: 'eq', value: 'sales', effect: 'deny' }
  const missing = { verdict: 'blocked', field_required: 'team' }
  const results = decide(policyOf({ max_per_run_usdc: 1 }, [rule]))
  expect(results.filter(({ verdict }) => verdict === 'blocked')).toMatchObject([{ ...missing, rule: 'rules[0]' }])
  // An allow rule has no result of its own, and another one that holds does not stand in for the missing field.
  const allows: RuleInput[] = [
    { ...rule, effect: 'allow' },
    { field: 'agent_id', op: 'eq', value: 'writer-v1', effect: 'allow' },
  ]
  const allowResults = decide(policyOf({}, allows)).filter(({ verdict }) => verdict === 'blocked')
  expect(allowResults).toMatchObject([{ ...missing, rule: 'rules[0]' }])
  expect(unselectedResult(policyOf({}), 'enforce', 'team')).toMatchObject({ ...missing, rule: 'identity' })
})

test('a counted constraint names its counter, and binds only when it is enforced', () => {
  const policy = policyOf({ max_per_run_usdc: 1, max_per_day_usdc: 1 })
  const counter = 'policy:pol_1:max_per_day_usdc'
  const results = decide(policy)
  expect(results.map((result) => [result.rule, result.counter])).toEqual([
    ['max_per_run_usdc', undefined],
    ['max_per_day_usdc', counter],
  ])
  expect(Object.hasOwn(results[0]!, 'counter')).toBe(false)
  expect(policyDemands(policy, facts, 'enforce')).toMatchObject([{ scope: counter, enforce: true }])
  expect(policyDemands(policy, facts, 'warn')).toMatchObject([{ scope: counter, enforce: false }])
  const withoutCounters = evaluatePolicy(policy, facts, 'enforce', () => undefined)
  expect(withoutCounters.map(({ rule }) => rule)).toEqual(['max_per_run_usdc'])
})

test('the hash of a policy covers its content and not the shown start of its key', () => {
  const { id: _, version: __, content_hash: ___, keyIds: ____, ...content } = policyOf({ max_per_run_usdc: 1 })
  expect(contentHash({ ...content, key_prefix: 'csk_abc' })).toBe(contentHash(content))
  expect(contentHash({ ...content, mode: 'warn' })).not.toBe(contentHash(content))
  expect(contentHash(content)).toMatch(/^sha256:[0-9a-f]{64}$/)
})

describe('windows', () => {
  test.each([
    ['minute', '2026-11-16T15:30:59.999Z', '2026-11-16T15:31:00.000Z'],
    ['day', '2026-11-16T23:59:59.999Z', '2026-11-17T00:00:00.000Z'],
    ['week', '2026-11-22T23:59:59.999Z', '2026-11-23T00:00:00.000Z'],
    ['two_weeks', '2026-11-22T23:59:59.999Z', '2026-11-23T00:00:00.000Z'],
    ['month', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'],
    ['quarter', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
    ['year', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
  ] as [Window, string, string][])('a %s window ends with its last millisecond', (window, last, next) => {
    const start = new Date('2026-11-16T15:30:00Z')
    expect(periodOf(window, new Date(last))).toBe(periodOf(window, start))
    expect(periodOf(window, new Date(next))).not.toBe(periodOf(window, start))
    expect(endOf(window, start)?.toISOString()).toBe(next)
  })

  test.each([
    ['minute', 'minute:2026-11-16T15:30'],
    ['week', 'week:2026-11-16T00:00'],
    ['two_weeks', 'two_weeks:2026-11-09T00:00'],
    ['quarter', 'quarter:2026-10-01T00:00'],
    ['rolling_24h', 'rolling_24h'],
  ] as [Window, string][])('a %s window is stored as %s', (window, name) => {
    expect(periodOf(window, facts.at)).toBe(name)
  })

  test('a total window never ends', () => {
    expect([periodOf('total', facts.at), endOf('total', facts.at)]).toEqual(['total', null])
    expect([isRolling('total'), sliceEnd('total', facts.at)]).toEqual([false, undefined])
  })

  test.each([
    ['rolling_24h', '2026-11-17T15:35:00.000Z', '2026-11-17T15:40:00.000Z'],
    ['rolling_7d', '2026-11-23T16:00:00.000Z', '2026-11-23T16:00:00.000Z'],
    ['rolling_30d', '2026-12-16T18:00:00.000Z', '2026-12-16T18:00:00.000Z'],
  ] as [Window, string, string][])(
    'an amount counts in %s for its length, and at most a slice longer',
    (window, end, endFiveMinutesLater) => {
      expect(sliceEnd(window, facts.at)?.toISOString()).toBe(end)
      expect(sliceEnd(window, new Date(facts.at.getTime() + 299_999))?.toISOString()).toBe(end)
      expect(sliceEnd(window, new Date(facts.at.getTime() + 300_000))?.toISOString()).toBe(endFiveMinutesLater)
      expect([isRolling(window), endOf(window, facts.at)]).toEqual([true, null])
    },
  )
})
