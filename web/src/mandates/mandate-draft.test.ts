import { expect, test } from 'vitest'
import { findSchemaErrors } from '../schema/json-schema.ts'
import { requestSchemas } from '../schema/request-schemas.ts'
import {
  describeConstraint,
  draftAllowing,
  draftLike,
  emptyDraft,
  findMandateProblems,
  toMandateCreate,
} from './mandate-draft.ts'

const full = {
  ...emptyDraft(),
  name: 'Trip',
  agent: 'buyer',
  holderKey: 'key_1',
  minAmount: 0.01,
  maxAmount: 0.5,
  budget: 2,
  payees: ['shop.example', '{"id":"a","website":"https://a.example"}'],
  frequency: 'DAILY',
  maxOccurrences: 3,
  notBefore: '2030-01-01',
  notAfter: '2030-02-01',
  expiresAt: '2030-03-01T10:00',
}

test('everything that the form has goes into a request that the schema takes', () => {
  const body = toMandateCreate(full)
  expect(findSchemaErrors(requestSchemas, requestSchemas.MandateCreate!, body)).toEqual([])
  const types = requestSchemas.MandateCreate!.properties!.constraints!.items!.oneOf!.length
  expect(body.constraints).toHaveLength(types)
})

test('a form with a name alone is a mandate without constraints', () => {
  expect(toMandateCreate({ ...emptyDraft(), name: ' All ' })).toEqual({ name: 'All', constraints: [] })
})

test('a mandate like another has its constraints', () => {
  const { constraints } = toMandateCreate(full)
  const draft = draftLike({
    name: 'Trip',
    agent_id: 'buyer',
    holder_key_id: 'key_1',
    constraints: constraints as never,
  })
  expect(toMandateCreate(draft).constraints).toEqual(constraints)
  const atomic = { type: 'payment.budget', currency: 'USDC', max: '1500000' }
  expect(draftLike({ name: 'A', agent_id: null, holder_key_id: null, constraints: [atomic] }).budget).toBe(1.5)
})

test('what refused a payment is changed so that it fits, and nothing else', () => {
  const result = { policy_id: null, outcome: 'blocked', reason: '' }
  const allow = (rule: string, fields: object) => draftAllowing(full, { ...result, rule, ...fields }).draft
  expect(allow('payment.amount_range', { asked: 0.7 })).toEqual({ ...full, maxAmount: 0.7 })
  expect(allow('payment.amount_range', { asked: 0.001 })).toEqual({ ...full, minAmount: 0.001 })
  expect(allow('payment.budget', { smallest_change: { text: '', to: 2.5 } })).toEqual({ ...full, budget: 2.5 })
  expect(allow('payment.allowed_payees', { asked: 'b.example' }).payees).toContain('b.example')
  expect(allow('mandate', { smallest_change: { text: 'Use another.' } })).toEqual(full)
})

test('what the service would refuse is said at its field', () => {
  const fields = (change: object) => findMandateProblems({ ...full, ...change }).map(({ field }) => field)
  expect(fields({})).toEqual([])
  expect(fields({ name: ' ' })).toEqual(['name'])
  expect(fields({ budget: 'much' })).toEqual(['budget'])
  expect(fields({ minAmount: 1 })).toEqual(['minAmount'])
  expect(fields({ maxAmount: '' })).toEqual(['maxAmount'])
  expect(fields({ maxOccurrences: 1.5 })).toEqual(['maxOccurrences'])
})

test('a constraint is said in words', () => {
  expect(toMandateCreate(full).constraints.map((constraint) => describeConstraint(constraint as never))).toEqual([
    'one payment is from 0.01 USDC to 0.5 USDC',
    'all payments together are 2 USDC at most',
    'only to shop.example, {"id":"a","website":"https://a.example"}',
    'daily, 3 times at most',
    'not before 2030-01-01, not after 2030-02-01',
  ])
})
