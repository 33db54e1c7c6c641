import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase, readChallenge, signPayment, spawnService } from '../harness.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let openDatabase: Database
let nodes: Awaited<ReturnType<typeof spawnService>>[]
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-race-'))

beforeAll(async () => {
  database = await createTestDatabase()
  openDatabase = database.open(2)
  const env = { DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: dataDir }
  const first = await spawnService(env)
  nodes = [first, await spawnService(env)]
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()))
  await openDatabase.close()
  await database.drop()
  rmSync(dataDir, { recursive: true, force: true })
})

const count = async (table: string) =>
  Number((await openDatabase.pool.query(`select count(*) n from ${table}`)).rows[0].n)
const deadlocks = async () =>
  Number(
    (await openDatabase.pool.query('select deadlocks from pg_stat_database where datname = current_database()')).rows[0]
      .deadlocks,
  )

type Response = Awaited<ReturnType<(typeof nodes)[number]['post']>>

/** Copies of one payment all get the same result, except those that get a 409 while the first copy is in progress. */
function expectOneResult(responses: Response[]): string {
  const [finished, inProgress] = [
    responses.filter(({ status }) => status === 200),
    responses.filter(({ status }) => status !== 200),
  ]
  for (const { status, body } of inProgress) {
    expect(status).toBe(409)
    expect(body).toMatchObject({ retryable: true })
  }
  const results = new Set(finished.map(({ text }) => text))
  expect(results.size).toBe(1)
  return [...results][0]!
}

test('500 identical payments sent to two processes buy one run', async () => {
  const [firstNode] = nodes
  const payer = await firstNode!.payer(1)
  const body = { task: 'Count to three.', agent_id: 'comedian-v1' }
  const header = await signPayment(payer, readChallenge((await firstNode!.post('/api/run', body)).headers))
  const responses = await Promise.all(
    Array.from({ length: 500 }, (_, index) => nodes[index % 2]!.post('/api/run', body, header)),
  )
  const storedResponse = expectOneResult(responses)
  const replay = await nodes[1]!.post('/api/run', body, header)
  expect([replay.status, replay.text]).toEqual([200, storedResponse])
  expect(await count('runs')).toBe(1)
  expect(await count('settlements')).toBe(1)
  expect(await count('receipts')).toBe(1)
  expect(await firstNode!.balance(payer.address)).toBe(990_000n)
  expect(await deadlocks()).toBe(0)
})

test('60 payments sent to both processes in different orders buy one run each, without a deadlock', async () => {
  const [firstNode] = nodes
  const payer = await firstNode!.payer(10)
  const before = await count('runs')
  const requests = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const body = { task: `Joke number ${index}.`, agent_id: 'comedian-v1' }
      return {
        body,
        header: await signPayment(payer, readChallenge((await firstNode!.post('/api/run', body)).headers)),
      }
    }),
  )
  const responses = new Map(requests.map((request) => [request, [] as Response[]]))
  for (let round = 0; round < 5; round++) {
    const shuffleBySeed = (seed: number) =>
      requests
        .map((request, index) => ({ request, rank: (index * 7919 + seed * 104729) % 1009 }))
        .sort((a, b) => a.rank - b.rank)
    const requestsInFlight = nodes.flatMap((node, index) =>
      shuffleBySeed(round * 2 + index).map(async ({ request }) =>
        responses.get(request)!.push(await node.post('/api/run', request.body, request.header)),
      ),
    )
    await Promise.all(requestsInFlight)
  }
  for (const copies of responses.values()) expectOneResult(copies)
  expect((await count('runs')) - before).toBe(60)
  expect(await firstNode!.balance(payer.address)).toBe(10_000_000n - 600_000n)
  expect(await deadlocks()).toBe(0)
  const { rows } = await openDatabase.pool.query('select sum(reserved_micro) reserved from limits')
  expect(Number(rows[0].reserved)).toBe(0)
})
