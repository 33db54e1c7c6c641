import { expect, test } from 'vitest'
import { DAY, secondsBetweenPoints, selectTickIntervals } from './chart-scale.ts'

test('the step is the distance of the first two points, or a day without two', () => {
  expect(secondsBetweenPoints(['2026-11-15T00:00:00Z', '2026-11-15T00:15:00Z', '2026-11-16T00:00:00Z'])).toBe(900)
  expect(secondsBetweenPoints(['2026-11-15T00:00:00Z'])).toBe(DAY)
  expect(secondsBetweenPoints([])).toBe(DAY)
})

test('ticks are never finer than the data', () => {
  expect(selectTickIntervals(900)[0]).toBe(900)
  expect(selectTickIntervals(DAY)[0]).toBe(DAY)
  expect(Math.min(...selectTickIntervals(1000))).toBe(1800)
})
