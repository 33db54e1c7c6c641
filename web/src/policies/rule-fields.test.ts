import { expect, test } from 'vitest'
import { requestSchemas } from '../schema/request-schemas.ts'
import { describeRule, describeRuleProblem, ruleFields, ruleOperators } from './rule-fields.ts'

const { field, op } = requestSchemas.PolicyCreate!.properties!.rules!.items!.properties!

test('the fields and operators are those that the API describes', () => {
  const described = /^One of (.*), tags\.<name>\./.exec(field!.description!)![1]!.split(', ')
  expect(Object.keys(ruleFields)).toEqual(described)
  expect(Object.keys(ruleOperators)).toEqual(
    [.../^One of (.*)\.$/.exec(op!.description!)![1]!.matchAll(/([a-z_]+)(?: \([^)]*\))?(?:, |$)/g)].map(
      ([, name]) => name,
    ),
  )
})

test('a rule is said in words', () => {
  expect(describeRule({ field: 'amount_usdc', op: '>', value: 1, effect: 'deny' })).toBe(
    'deny when amount_usdc is above 1',
  )
  expect(describeRule({ field: 'lane', op: 'in', value: ['a', 'b'], effect: 'allow' })).toBe(
    'allow when lane is one of a, b',
  )
})

test.each([
  [{ field: 'colour', op: 'eq', value: 'red' }, 'field'],
  [{ field: 'lane', op: 'like', value: 'a' }, 'op'],
  [{ field: 'lane', op: 'gt', value: 'a' }, 'op'],
  [{ field: 'lane', op: 'in', value: 'a' }, 'value'],
  [{ field: 'lane', op: 'eq', value: ['a'] }, 'value'],
  [{ field: 'amount_usdc', op: 'gt', value: '1' }, 'value'],
  [{ field: 'action', op: 'eq', value: 'dance' }, 'value'],
])('%j is refused at its field', (rule, part) => {
  expect(describeRuleProblem(rule)?.field).toBe(part)
})

test('a tag, an alias and a list are fine', () => {
  expect(describeRuleProblem({ field: 'tags.project', op: '=', value: 'apollo' })).toBeUndefined()
  expect(describeRuleProblem({ field: 'agent_id', op: 'nin', value: ['a'] })).toBeUndefined()
})
