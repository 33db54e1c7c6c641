import { expect, test } from 'vitest'
import { toBudgetUpdate } from './budget-form.tsx'

const draft = {
  budget_id: ' monthly ',
  scope: 'tenant',
  scopeId: '',
  window: 'month',
  parent: '',
  limit: 0.5,
  softLimit: '',
  onBreach: 'block',
  thresholds: '0.5, 80',
  kinds: ['runs'],
}

test('a tenant budget is sent without a scope id, with trimmed text and a numeric limit', () => {
  expect(toBudgetUpdate(draft, true)).toEqual({
    budget_id: 'monthly',
    scope: { type: 'tenant' },
    window: 'month',
    limit_usdc: 0.5,
    soft_limit_usdc: null,
    on_breach: 'block',
    alert_thresholds: [0.5, 80],
    applies_to: ['runs'],
  })
})

test('a budget of an agent carries the agent as scope id, and its parent', () => {
  const update = toBudgetUpdate({ ...draft, scope: 'agent', scopeId: ' writer-v1 ', parent: 'all' }, true)
  expect(update).toMatchObject({ scope: { type: 'agent', id: 'writer-v1' }, parent_id: 'all' })
})

test('a change leaves out what cannot be changed', () => {
  const update = toBudgetUpdate({ ...draft, parent: 'all' }, false)
  expect(update).not.toHaveProperty('scope')
  expect(update).not.toHaveProperty('window')
  expect(update).not.toHaveProperty('parent_id')
})
