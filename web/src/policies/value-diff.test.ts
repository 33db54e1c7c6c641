import { expect, test } from 'vitest'
import { findDifferences } from './value-diff.ts'

test('fields are added, removed and changed by their path', () => {
  const from = { name: 'a', constraints: { max_per_run_usdc: 1, require_mandate: true } }
  const to = { name: 'b', constraints: { max_per_run_usdc: 2, max_leverage: 3 } }
  expect(findDifferences(from, to)).toEqual([
    { path: 'name', kind: 'changed', from: 'a', to: 'b' },
    { path: 'constraints.max_per_run_usdc', kind: 'changed', from: 1, to: 2 },
    { path: 'constraints.require_mandate', kind: 'removed', from: true },
    { path: 'constraints.max_leverage', kind: 'added', to: 3 },
  ])
  expect(findDifferences(from, from)).toEqual([])
})

test('a list of names differs by its entries', () => {
  expect(findDifferences({ list: ['a', 'b'] }, { list: ['b', 'c'] })).toEqual([
    { path: 'list', kind: 'removed', from: 'a' },
    { path: 'list', kind: 'added', to: 'c' },
  ])
})

test('a rule that was removed does not change the rules after it', () => {
  const [one, two, three] = [{ field: 'lane' }, { field: 'team' }, { field: 'spender' }]
  expect(findDifferences([one, two, three], [two, three])).toEqual([{ path: '[0]', kind: 'removed', from: one }])
  expect(findDifferences([one], [{ field: 'lane', value: 1 }])).toEqual([{ path: '[0].value', kind: 'added', to: 1 }])
})
