import { afterEach, describe, expect, test } from 'vitest'
import { type AttackName, attacks, expectCaught, expectNothingFalse } from './attacks.ts'
import { createWorld, type World } from './world.ts'

/** A few seeds; `npm run test:soak -- split-view` runs a thousand of each attack and ten thousand honest ones. */
const SEEDS = Array.from({ length: 3 }, (_, i) => i + 1)

let worlds: World[] = []
afterEach(() => {
  for (const world of worlds) world.remove()
  worlds = []
})
const create = async (seed: number) => {
  const world = await createWorld(seed)
  worlds.push(world)
  return world
}

describe('three witnesses, a log and a monitor', () => {
  test.each(Object.keys(attacks) as AttackName[])('%s is caught within one checkpoint', async (name) => {
    for (const seed of SEEDS) await expectCaught(name, await create(seed))
    expect(worlds).toHaveLength(SEEDS.length)
  })

  test('nothing is found in honest logs', async () => {
    for (const seed of SEEDS) await expectNothingFalse(await create(1_000 + seed))
    expect(worlds).toHaveLength(SEEDS.length)
  })
})
