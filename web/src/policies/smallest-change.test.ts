import { expect, test } from 'vitest'
import { toPath } from '../schema/json-path.ts'
import { applySmallestChange, changeHref } from './smallest-change.ts'

const draft = {
  name: 'A',
  constraints: { max_per_run_usdc: 0.02, allowed_agents: ['a'], denied_agents: ['b'] },
  rules: [
    { field: 'lane', op: 'eq', value: 'x', effect: 'deny' },
    { field: 'amount_usdc', op: 'lte', value: 1, effect: 'allow' },
  ],
}
const apply = (change: object) => applySmallestChange(draft, { smallest_change: { text: 'Text.', ...change } })

test('a limit is raised to exactly what was asked, and nothing else changes', () => {
  expect(apply({ path: 'constraints.max_per_run_usdc', from: 0.02, to: 0.025 })).toEqual({
    draft: { ...draft, constraints: { ...draft.constraints, max_per_run_usdc: 0.025 } },
    words: 'max_per_run_usdc goes from 0.02 to 0.025.',
  })
})

test('a list gets or loses one entry', () => {
  expect(apply({ path: 'constraints.allowed_agents', add: 'c' })).toMatchObject({
    draft: { constraints: { allowed_agents: ['a', 'c'] } },
  })
  expect(apply({ path: 'constraints.denied_agents', remove: 'b' })).toMatchObject({
    draft: { constraints: { denied_agents: [] } },
    words: "'b' is removed from denied_agents.",
  })
})

test('a rule is changed by its value, or removed when it denies', () => {
  expect(apply({ path: 'rules[1].value', from: 1, to: 2 })).toMatchObject({ draft: { rules: [{}, { value: 2 }] } })
  expect(apply({ path: 'rules[0]' })).toEqual({
    draft: { ...draft, rules: [draft.rules[1]] },
    words: 'The rule “deny when lane is x” is removed.',
  })
})

test('what is done already, or is no change of the policy, is said and not done', () => {
  expect(apply({ path: 'constraints.max_per_run_usdc', from: 0.01, to: 0.015 })).toEqual({
    reason: 'max_per_run_usdc is 0.02 already.',
  })
  expect(apply({ path: 'constraints.max_per_day_usdc', from: 1, to: 2 })).toHaveProperty('reason')
  expect(apply({ path: 'rules' })).toEqual({ reason: 'Text.' })
  expect(apply({ retry_at: '2030-01-01T00:00:00Z' })).toEqual({ reason: 'Text.' })
  expect(apply({ path: 'preauth_token' })).toEqual({ reason: 'Text.' })
})

test('a change leads to the policy, the budget or a new mandate', () => {
  const result = { policy_id: null, rule: 'limit_usdc', outcome: 'blocked', reason: '' }
  const change = { text: '', path: 'constraints.max_per_run_usdc', to: 2 }
  expect(changeHref('dec_1', 0, { ...result, policy_id: 'pol_1', smallest_change: change })).toBe(
    '#/account/policies/pol_1/edit?decision=dec_1&rule=0',
  )
  expect(changeHref('dec_1', 0, { ...result, budget_id: 'b', smallest_change: { text: '', to: 2 } })).toBe(
    '#/account/budgets/b?limit=2&decision=dec_1',
  )
  expect(
    changeHref('dec_1', 1, { ...result, mandate_id: 'man_1', rule: 'payment.budget', smallest_change: change }),
  ).toBe('#/account/mandates/new?decision=dec_1&rule=1&like=man_1')
  expect(changeHref('dec_1', 0, { ...result, smallest_change: { text: 'Ask later.' } })).toBeUndefined()
  expect(toPath('rules[1].value')).toEqual(['rules', 1, 'value'])
})
