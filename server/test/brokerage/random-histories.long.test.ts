import { afterAll, beforeAll, test } from 'vitest'
import { checkRandomHistories } from './random-histories.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())

test('the same guarantees hold in longer and many more random histories', async () => {
  await checkRandomHistories(world, { numRuns: 120, maxCommands: 80 })
})
