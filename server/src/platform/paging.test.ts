import { expect, test } from 'vitest'
import { toPage } from './paging.ts'

const rows = [{ id: 'run_3' }, { id: 'run_2' }, { id: 'run_1' }]

test('a page has at most `limit` rows, and its cursor is the id of its last row', () => {
  expect(toPage(rows, 2)).toEqual({ rows: [{ id: 'run_3' }, { id: 'run_2' }], has_more: true, next_cursor: 'run_2' })
})

test('a list that ends exactly with the page has no next page', () => {
  expect(toPage(rows, 3)).toEqual({ rows, has_more: false, next_cursor: null })
  expect(toPage([], 3)).toEqual({ rows: [], has_more: false, next_cursor: null })
})

test('a list whose rows have no id names its own cursor', () => {
  const versions = [{ version: 9 }, { version: 8 }]
  expect(toPage(versions, 1, (row) => String(row.version))).toEqual({
    rows: [{ version: 9 }],
    has_more: true,
    next_cursor: '9',
  })
})

test('cutting a page does not change the rows', () => {
  const { rows: page } = toPage(rows, 3)
  page.reverse()
  expect(rows[0]).toEqual({ id: 'run_3' })
})
