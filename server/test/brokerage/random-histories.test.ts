import { afterAll, beforeAll, test } from 'vitest'
import { checkRandomHistories } from './random-histories.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())

test('in random histories no run executes twice, late or outside its terms, and every micro-dollar is accounted for', async () => {
  await checkRandomHistories(world, { numRuns: 8, maxCommands: 30 })
})
