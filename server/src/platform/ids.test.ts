import { expect, test } from 'vitest'
import { createTestClock } from '../../test/clock.ts'
import { createIds } from './ids.ts'

test('ids sort in the order of their creation, within one millisecond and when the clock goes back', () => {
  const clock = createTestClock('2026-01-01T00:00:00.000Z')
  const ids = createIds(clock)
  const created = Array.from({ length: 10_000 }, (_, index) => {
    if (index === 3_000) clock.advance(5)
    if (index === 6_000) clock.advance(-1_000)
    return ids.next('run')
  })
  expect([...created].sort()).toEqual(created)
  expect(new Set(created).size).toBe(created.length)
  expect(created[0]).toMatch(/^run_[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})
