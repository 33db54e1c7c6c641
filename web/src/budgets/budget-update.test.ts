import { expect, test } from 'vitest'
import { toBudgetUpdate } from './budget-update.ts'

function createForm(fields: Record<string, string>): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.set(name, value)
  return form
}

const fields = { budget_id: ' monthly ', scope: 'tenant', window: 'month', limit_usdc: '0.5', on_breach: 'block' }

test('a tenant budget is sent without a scope id, with trimmed text and a numeric limit', () => {
  expect(toBudgetUpdate(createForm(fields))).toEqual({
    budget_id: 'monthly',
    scope: { type: 'tenant' },
    window: 'month',
    limit_usdc: 0.5,
    on_breach: 'block',
  })
})

test('a budget of an agent carries the agent as scope id', () => {
  const update = toBudgetUpdate(createForm({ ...fields, scope: 'agent', scope_id: ' writer-v1 ' }))
  expect(update.scope).toEqual({ type: 'agent', id: 'writer-v1' })
})
