import { describe, expect, test } from 'vitest'
import type { CounterState } from '../../src/modules/governance/limit-counters.ts'
import type { PaymentFacts } from '../../src/modules/governance/payment-facts.ts'
import { appliesTo, evaluatePolicy, type Policy } from '../../src/modules/governance/policy.ts'
import type { Constraints } from '../../src/modules/governance/policy-constraints.ts'
import { type RuleInput, readRule } from '../../src/modules/governance/policy-rules.ts'
import { type Mode, type Outcome, worstOutcome } from '../../src/modules/governance/rule-result.ts'
import { endOf, periodOf, type Window } from '../../src/modules/governance/windows.ts'

const facts: PaymentFacts = {
  kind: 'run',
  action: 'run',
  agentId: 'writer-v1',
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

const used =
  (micro: bigint) =>
  (demand: { expectedLimitMicro: bigint }): CounterState => ({
    limitMicro: demand.expectedLimitMicro,
    softLimitMicro: null,
    spentMicro: micro,
    reservedMicro: 0n,
  })

const decide = (policy: Policy, asked: Partial<PaymentFacts> = {}, usedMicro = 0n) =>
  evaluatePolicy(policy, { ...facts, ...asked }, policy.mode, used(usedMicro))

/** Every comparison at its edge: one micro, one hour, one name to either side. */
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

test.each(table)('%j asked with %o is %s', (constraints, { used: usedMicro, ...asked }, outcome) => {
  const results = decide(policyOf(constraints), asked, usedMicro)
  expect(worstOutcome(results)).toBe(outcome)
  for (const result of results) expect(result.reason.length).toBeGreaterThan(5)
})

test('modes: what would be blocked warns or is only recorded', () => {
  const [warned] = decide(policyOf({ max_per_run_usdc: 0 }, [], 'warn'))
  expect(warned).toMatchObject({ verdict: 'blocked', outcome: 'warning' })
  const [hidden] = decide(policyOf({ max_per_run_usdc: 0 }, [], 'shadow'))
  expect(hidden).toMatchObject({ verdict: 'blocked', outcome: 'pass' })
})

describe('rules of the legacy shape', () => {
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

  test.each(['toString', 'constructor', '__proto__', 'hasOwnProperty'])('%s is no field and no operation', (name) => {
    expect(() => readRule(rule(name, 'eq', 1, 'deny'), 0)).toThrow(/unknown/)
    expect(() => readRule(rule('agent_id', name, 'x', 'deny'), 0)).toThrow(/unknown/)
  })
})

describe('the smallest change that would have allowed it does allow it', () => {
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
    const [refused] = decide(policyOf(constraints), {}, usedMicro)
    const change = refused!.smallest_change!
    expect(change.path).toBe(`constraints.${name}`)
    expect(worstOutcome(decide(policyOf({ [name!]: change.to }), {}, usedMicro))).toBe('pass')
    if (typeof change.to === 'number' && name!.endsWith('_usdc'))
      expect(worstOutcome(decide(policyOf({ [name!]: (change.to * 1e6 - 1) / 1e6 }), {}, usedMicro))).not.toBe('pass')
  })

  test('hours: at the time it names it passes, a moment before it does not', () => {
    const policy = policyOf({ allowed_hours_utc: { start: 20, end: 22 } })
    const at = new Date(decide(policy)[0]!.smallest_change!.retry_at!)
    expect(at.toISOString()).toBe('2026-11-16T20:00:00.000Z')
    expect(worstOutcome(decide(policy, { at }))).toBe('pass')
    expect(worstOutcome(decide(policy, { at: new Date(at.getTime() - 1) }))).toBe('blocked')
  })
})

test('a policy speaks to its tenant, its agent or its key, and to the keys that took that key’s place', () => {
  const policy = policyOf({})
  const asked = { keyId: 'key_2', agentId: 'writer-v1' }
  expect(appliesTo(policy, asked)).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'agent', agent_id: 'writer-v1' }, asked)).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'agent', agent_id: 'coder-v1' }, asked)).toBe(false)
  expect(
    appliesTo({ ...policy, identity_type: 'api_key', key_id: 'key_1', keyIds: new Set(['key_1', 'key_2']) }, asked),
  ).toBe(true)
  expect(appliesTo({ ...policy, identity_type: 'api_key', key_id: 'key_1', keyIds: new Set(['key_1']) }, asked)).toBe(
    false,
  )
})

describe('windows', () => {
  test.each([
    ['minute', '2026-11-16T15:30:59.999Z', '2026-11-16T15:31:00.000Z'],
    ['day', '2026-11-16T23:59:59.999Z', '2026-11-17T00:00:00.000Z'],
    ['week', '2026-11-22T23:59:59.999Z', '2026-11-23T00:00:00.000Z'],
    ['month', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00.000Z'],
    ['quarter', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
    ['year', '2026-12-31T23:59:59.999Z', '2027-01-01T00:00:00.000Z'],
  ] as [Window, string, string][])('a %s ends at its last millisecond', (window, last, next) => {
    const start = new Date('2026-11-16T15:30:00Z')
    expect(periodOf(window, new Date(last))).toBe(periodOf(window, start))
    expect(periodOf(window, new Date(next))).not.toBe(periodOf(window, start))
    expect(endOf(window, start)?.toISOString()).toBe(next)
  })

  test('a total never ends', () => {
    expect([periodOf('total', facts.at), endOf('total', facts.at)]).toEqual(['total', null])
  })
})
