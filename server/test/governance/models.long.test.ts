import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ops, runModel } from './limits-model.ts'
import { history, runAndReplay } from './replay-model.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

test('model and service agree after every operation of long random histories', async () => {
  await fc.assert(
    fc.asyncProperty(ops(60), (history) => runModel(world, history)),
    { numRuns: 60, endOnFailure: true },
  )
})

test('simulate reproduces every decision of a hundred random histories', async () => {
  let comparedCount = 0
  await fc.assert(
    fc.asyncProperty(history, async (history) => {
      comparedCount += await runAndReplay(world, history)
    }),
    { numRuns: 100, endOnFailure: true },
  )
  console.log(`${comparedCount} decisions compared`)
  expect(comparedCount).toBeGreaterThan(1_000)
})
