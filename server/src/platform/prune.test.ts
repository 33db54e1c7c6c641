import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { pruneInBatches } from './prune.ts'

test('deletes until nothing is left', async () => {
  const batches = [5_000, 5_000, 12, 0, 7]
  expect(await pruneInBatches(async () => batches.shift()!)).toBe(10_012)
  expect(batches).toEqual([7])
})

test('stops when its time is up, and the rest is left for the next sweep', async () => {
  let batches = 0
  await pruneInBatches(async () => {
    batches += 1
    await delay(10)
    return 1
  }, 25)
  expect(batches).toBeLessThanOrEqual(4)
  expect(batches).toBeGreaterThan(0)
})
