import { expect, test } from 'vitest'
import { retryDelay } from './live.ts'

test('each attempt waits longer, up to a limit, and not all pages at the same time', () => {
  expect(retryDelay(0, 0.5)).toBe(500)
  expect(retryDelay(3, 0.5)).toBe(4_000)
  expect(retryDelay(20, 0.5)).toBe(15_000)
  expect(retryDelay(3, 0)).toBe(3_000)
  expect(retryDelay(3, 0.99)).toBeGreaterThan(4_500)
})
