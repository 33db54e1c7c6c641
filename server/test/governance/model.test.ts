import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { live, ops } from './model.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world?.close())

test('whatever happens in whatever order, no counter passes its limit and everything ends once (M7, M9, M10)', async () => {
  await fc.assert(
    fc.asyncProperty(ops(25), (told) => live(world, told)),
    { numRuns: 6, endOnFailure: true },
  )
}, 60_000)
