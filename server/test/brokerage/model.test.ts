import { afterAll, beforeAll, test } from 'vitest'
import { checkModel } from './model.ts'
import { openWorld, type World } from './world.ts'

let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(async () => world.close())

test('whatever happens, no run executes twice, late or outside its terms, and every cent is accounted for', async () => {
  await checkModel(world, { numRuns: 8, maxCommands: 30 })
}, 60_000)
