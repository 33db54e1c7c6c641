import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PaymentFacts } from '../assess/payment-facts.ts'
import { evaluateRuleList, type Rule, type RuleInput, readRule } from './policy-rules.ts'

/** Of allow rules, the smallest change names the nearest one, and makes it hold. */
const AT = new Date('2026-11-16T08:20:00.000Z')
const facts = (changes: Partial<PaymentFacts> = {}): PaymentFacts => ({
  kind: 'preauth',
  action: 'preauth',
  agentId: 'writer',
  spender: 'fleet',
  lane: null,
  team: null,
  keyId: 'key_1',
  tags: { project: 'apollo' },
  amountMicro: 1_000_000n,
  merchants: ['shop', 'shop.example'],
  network: 'eip155:8453',
  sessionId: null,
  at: AT,
  preauthorised: false,
  ...changes,
})
const allow = (field: string, op: string, value: RuleInput['value']): RuleInput => ({
  field,
  op,
  value,
  effect: 'allow',
})
const evaluate = (rules: readonly RuleInput[], of = facts()) =>
  evaluateRuleList(rules.map(readRule), of).find(({ rule }) => rule === 'rules.allow')!.finding

test.each([
  [
    'an amount just above a limit, not the first rule',
    [allow('merchant', '=', 'other'), allow('amount_usdc', '<=', 0.1), allow('amount_usdc', '<=', 0.9)],
    {
      path: 'rules[2].value',
      from: 0.9,
      to: 1,
      text: 'Change rules[2] (amount_usdc is at most 0.9) to 1. Or add an allow rule.',
    },
  ],
  [
    'an amount that must be below',
    [allow('amount_usdc', '<', 1), allow('agent_id', 'in', ['a', 'b'])],
    { path: 'rules[0].value', from: 1, to: 1.000001 },
  ],
  [
    'one entry more in a list before another value, and before a value far away',
    [allow('agent_id', '=', 'x'), allow('tags.project', 'in', ['zeus', 'hera'])],
    { path: 'rules[1].value', add: 'apollo' },
  ],
  [
    'one entry less in a list',
    [allow('merchant', 'not_in', ['shop', 'x'])],
    { path: 'rules[0].value', remove: 'shop' },
  ],
  [
    'waiting half an hour, before the amount has to be ten times as high',
    [allow('amount_usdc', '<=', 0.1), allow('hour_utc', '>=', 9)],
    { retry_at: '2026-11-16T09:00:00.000Z' },
  ],
  ['a value for another', [allow('agent_id', '=', 'x')], { path: 'rules[0].value', from: 'x', to: 'fleet' }],
] as const)('%s', (_, rules, change) => {
  expect(evaluate(rules as readonly RuleInput[])).toMatchObject({ verdict: 'blocked', smallest_change: change })
})

test('a rule about a field that the payment does not have is the last choice, and is not called a change of a value', () => {
  const only = evaluate([allow('session_id', '=', 's-1')]).smallest_change!
  expect(only).toEqual({
    text: 'Change the request so that this holds: session_id is s-1. Or add an allow rule.',
    path: 'rules',
  })
  const other = evaluate([allow('session_id', '=', 's-1'), allow('agent_id', '=', 'x')]).smallest_change!
  expect(other.path).toBe('rules[1].value')
})

test('rules of other effects keep their places in the list', () => {
  const deny: RuleInput = { field: 'amount_usdc', op: '>', value: 5, effect: 'deny' }
  expect(evaluate([deny, allow('amount_usdc', '<=', 0.5)]).smallest_change).toMatchObject({ path: 'rules[1].value' })
})

/** Applies a change to the rules, or moves the payment to the time that it names. */
function applyChange(rules: readonly Rule[], change: NonNullable<ReturnType<typeof evaluate>['smallest_change']>) {
  if (change.retry_at !== undefined) return { rules, at: new Date(change.retry_at) }
  const index = Number(/^rules\[(\d+)\]\.value$/.exec(change.path ?? '')?.[1])
  const changed = rules.map((rule, place) => {
    if (place !== index) return rule
    if (change.add !== undefined) return { ...rule, value: [...(rule.value as string[]), change.add] as string[] }
    if (change.remove !== undefined)
      return { ...rule, value: (rule.value as string[]).filter((entry) => entry !== change.remove) }
    return { ...rule, value: change.to as number }
  })
  return { rules: changed as Rule[], at: undefined }
}

test('whatever the rules are, the change makes the policy pass', () => {
  const name = fc.constantFrom('writer', 'fleet', 'a', 'b', 'shop', 'x')
  const amount = fc.integer({ min: 0, max: 3_000_000 }).map((micro) => micro / 1_000_000)
  const rule = fc.oneof(
    fc.tuple(fc.constant('amount_usdc'), fc.constantFrom('=', '!=', '<', '<=', '>', '>='), amount),
    fc.tuple(fc.constant('hour_utc'), fc.constantFrom('=', '<', '<=', '>', '>='), fc.integer({ min: 0, max: 23 })),
    fc.tuple(fc.constantFrom('agent_id', 'merchant', 'spender', 'tags.project'), fc.constantFrom('=', '!='), name),
    fc.tuple(
      fc.constantFrom('agent_id', 'merchant', 'tags.project'),
      fc.constantFrom('in', 'not_in'),
      fc.uniqueArray(name, { minLength: 1, maxLength: 4 }),
    ),
  )
  fc.assert(
    fc.property(
      fc.array(rule, { minLength: 1, maxLength: 6 }),
      fc.bigInt({ min: 1n, max: 3_000_000n }),
      (inputs, amountMicro) => {
        const rules = inputs.map(([field, op, value], index) => readRule(allow(field, op, value), index))
        const of = facts({ amountMicro })
        const [finding] = evaluateRuleList(rules, of)
        if (finding!.finding.verdict === 'pass') return
        const change = finding!.finding.smallest_change!
        if (change.path === 'rules') return
        const applied = applyChange(rules, change)
        const after = evaluateRuleList(applied.rules, { ...of, ...(applied.at && { at: applied.at }) })
        expect(after[0]!.finding.verdict, JSON.stringify({ inputs, change })).toBe('pass')
      },
    ),
    { numRuns: 2_000 },
  )
})
