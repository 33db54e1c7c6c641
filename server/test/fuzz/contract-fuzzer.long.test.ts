import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, spawnService } from '../harness.ts'
import { fuzz } from './fuzz.ts'
import { openSurroundings, type Surroundings } from './world.ts'

/** `npm run fuzz` and `npm run test:soak` take the date as seed and send more; a change lands or not by the same requests every day. */
const REQUESTS = 8_000
const SEED = 14

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

test('every operation is reached, and no mutated request breaks the contract', async () => {
  const { findings, reached, sent } = await fuzz({
    url: service.url,
    surroundings,
    seed: SEED,
    requests: REQUESTS,
    print: console.log,
  })
  expect(findings, `npm run fuzz -- --seed=${SEED} --only=INDEX\n${service.output().slice(-4_000)}`).toEqual([])
  expect(reached.length).toBeGreaterThan(140)
  expect(sent).toBeGreaterThan(REQUESTS * 0.95)
}, 900_000)
