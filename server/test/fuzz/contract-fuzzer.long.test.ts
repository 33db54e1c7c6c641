import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, spawnService } from '../harness.ts'
import { fuzz } from './fuzz.ts'
import { openSurroundings, type Surroundings } from './world.ts'

/** A minute each. `npm run fuzz` sends as many as one likes, `npm run test:soak` 200,000. */
const REQUESTS = 6_000
const FIXED_SEED = 14

let database: Awaited<ReturnType<typeof createTestDatabase>>
let surroundings: Surroundings
let service: Awaited<ReturnType<typeof spawnService>>

beforeAll(async () => {
  database = await createTestDatabase()
  surroundings = await openSurroundings()
  service = await spawnService({ ...surroundings.env, DATABASE_URL: database.url, LOG_LEVEL: 'error' })
})
afterAll(async () => {
  await service?.stop()
  await surroundings?.close()
  await database?.drop()
})

test.each([
  ['a fixed seed', FIXED_SEED],
  ["today's seed", Math.floor(Date.now() / 86_400_000)],
])(
  'every operation is reached, and no mutated request breaks the contract: %s',
  async (_name, seed) => {
    const { findings, reached, sent } = await fuzz({
      url: service.url,
      surroundings,
      seed,
      requests: REQUESTS,
      print: console.log,
    })
    expect(findings, `npm run fuzz -- --seed=${seed} --only=INDEX\n${service.output().slice(-4_000)}`).toEqual([])
    expect(reached.length).toBeGreaterThan(140)
    expect(sent).toBeGreaterThan(REQUESTS * 0.95)
  },
  900_000,
)
