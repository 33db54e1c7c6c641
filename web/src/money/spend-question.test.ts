import { expect, test } from 'vitest'
import { readQuestion } from './spend-question.ts'

const today = new Date(2026, 10, 16, 9)
const read = (search: string) => readQuestion(new URLSearchParams(search), today)

test('without an address the last 30 days by spender stand beside the 30 before them', () => {
  expect(read('')).toEqual({
    grouping: 'spender',
    tag: 'project',
    now: { from: '2026-10-18', to: '2026-11-16' },
    before: { from: '2026-09-18', to: '2026-10-17' },
  })
})

test('the address names grouping, tag and periods, and what it says wrongly is left out', () => {
  expect(read('group=tag&tag=cost&from=2026-11-01&to=2026-11-02&compare=none')).toEqual({
    grouping: 'tag',
    tag: 'cost',
    now: { from: '2026-11-01', to: '2026-11-02' },
    before: undefined,
  })
  const other = 'from=2026-11-01&to=2026-11-02&compare=other&from2=2026-01-01&to2=2026-01-31'
  expect(read(other).before).toEqual({ from: '2026-01-01', to: '2026-01-31' })
  expect(read('from=2026-11-01&to=2026-11-02&compare=other').before).toEqual({ from: '2026-10-30', to: '2026-10-31' })
  expect(read('group=colour').grouping).toBe('spender')
})
