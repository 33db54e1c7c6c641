import type { Budget } from '@countersign/sdk'
import { expect, test } from 'vitest'
import { runsHref, toBudgetTree, toShares } from './budget-tree.ts'

const budget = (budget_id: string, fields: Partial<Budget> = {}): Budget => ({
  budget_id,
  scope: { type: 'tenant', id: 'ten_1' },
  window: 'month',
  limit_usdc: 10,
  soft_limit_usdc: null,
  spent_usdc: 0,
  reserved_usdc: 0,
  remaining_usdc: 10,
  resets_at: null,
  on_breach: 'block',
  alert_thresholds: [],
  applies_to: ['runs'],
  parent_id: null,
  version: 1,
  created_at: '',
  updated_at: '',
  ...fields,
})

test('budgets stand below their parents, the widest scope first', () => {
  const tree = toBudgetTree([
    budget('spender', { scope: { type: 'spender', id: 'a' }, parent_id: 'team' }),
    budget('lost', { scope: { type: 'session', id: 's' }, parent_id: 'gone' }),
    budget('team', { scope: { type: 'team', id: 't' }, parent_id: 'all' }),
    budget('all'),
  ])
  const shape = (nodes: typeof tree): unknown => nodes.map((node) => [node.budget.budget_id, shape(node.children)])
  expect(shape(tree)).toEqual([
    ['all', [['team', [['spender', []]]]]],
    ['lost', []],
  ])
})

test('a parent is marked when its children of the same window may spend more than it allows', () => {
  const mark = (limits: [number, Budget['window']][]) =>
    toBudgetTree([
      budget('all', { limit_usdc: 0.3 }),
      ...limits.map(([limit_usdc, window], index) => budget(`c${index}`, { limit_usdc, window, parent_id: 'all' })),
    ])[0]!.isSmallerThanChildren
  expect(
    mark([
      [0.1, 'month'],
      [0.2, 'month'],
    ]),
  ).toBe(false)
  expect(
    mark([
      [0.1, 'month'],
      [0.200001, 'month'],
    ]),
  ).toBe(true)
  expect(
    mark([
      [0.1, 'month'],
      [5, 'day'],
    ]),
  ).toBe(false)
})

test('the bar is never more than full', () => {
  expect(toShares(budget('a', { spent_usdc: 2, reserved_usdc: 3 }))).toEqual({ spent: 20, reserved: 30 })
  expect(toShares(budget('a', { spent_usdc: 8, reserved_usdc: 30 }))).toEqual({ spent: 80, reserved: 20 })
  expect(toShares(budget('a', { limit_usdc: 0, spent_usdc: 0 }))).toEqual({ spent: 0, reserved: 0 })
})

test('the runs of a budget are found by its scope', () => {
  expect(runsHref(budget('a'))).toBe('#/account/runs')
  expect(runsHref(budget('a', { scope: { type: 'tag', id: 'project=x' } }))).toBe('#/account/runs?tag=project%3Ax')
  expect(runsHref(budget('a', { scope: { type: 'spender', id: 'b' } }))).toBe('#/account/runs?spender=b')
  expect(runsHref(budget('a', { scope: { type: 'session', id: 'b' } }))).toBeUndefined()
  expect(runsHref(budget('a', { applies_to: ['trades'] }))).toBeUndefined()
})
