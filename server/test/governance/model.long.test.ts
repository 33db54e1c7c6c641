import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { live, ops } from './model.ts'
import { story, tellAndReplay } from './time-machine.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

test('long lives of money: model and service agree after every step', async () => {
  await fc.assert(
    fc.asyncProperty(ops(60), (told) => live(world, told)),
    { numRuns: 60, endOnFailure: true },
  )
})

test('a hundred random histories: simulate equals what was said live on every decision', async () => {
  let compared = 0
  await fc.assert(
    fc.asyncProperty(story, async (told) => {
      compared += await tellAndReplay(world, told)
    }),
    { numRuns: 100, endOnFailure: true },
  )
  console.log(`${compared} decisions compared`)
  expect(compared).toBeGreaterThan(1_000)
})
