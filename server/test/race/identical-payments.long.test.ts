import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase, readChallenge, signPayment, spawnService } from '../harness.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let open: Database
let nodes: Awaited<ReturnType<typeof spawnService>>[]
const dataDir = mkdtempSync(join(tmpdir(), 'countersign-race-'))

beforeAll(async () => {
  database = await createTestDatabase()
  open = database.open(2)
  const env = { DATABASE_URL: database.url, COUNTERSIGN_DATA_DIR: dataDir }
  const first = await spawnService(env)
  nodes = [first, await spawnService(env)]
})
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()))
  await open.close()
  await database.drop()
  rmSync(dataDir, { recursive: true, force: true })
})

const count = async (table: string) => Number((await open.pool.query(`select count(*) n from ${table}`)).rows[0].n)
const deadlocks = async () =>
  Number(
    (await open.pool.query('select deadlocks from pg_stat_database where datname = current_database()')).rows[0]
      .deadlocks,
  )

test('500 identical payments at two processes buy one run', async () => {
  const [one] = nodes
  const payer = await one!.payer(1)
  const body = { task: 'Count to three.', agent_id: 'comedian-v1' }
  const header = await signPayment(payer, readChallenge((await one!.post('/api/run', body)).headers))
  const answers = await Promise.all(
    Array.from({ length: 500 }, (_, index) => nodes[index % 2]!.post('/api/run', body, header)),
  )
  const statuses = Map.groupBy(answers, (answer) => answer.status)
  console.log('statuses', Object.fromEntries([...statuses].map(([status, list]) => [status, list.length])))
  expect([...statuses.keys()].sort()).toEqual(statuses.has(409) ? [200, 409] : [200])
  expect(new Set(statuses.get(200)!.map((answer) => answer.text)).size).toBe(1)
  for (const busy of statuses.get(409) ?? []) expect(busy.body).toMatchObject({ retryable: true })
  const later = await nodes[1]!.post('/api/run', body, header)
  expect(later.text).toBe(statuses.get(200)![0]!.text)
  expect(await count('runs')).toBe(1)
  expect(await count('settlements')).toBe(1)
  expect(await count('receipts')).toBe(1)
  expect(await one!.balance(payer.address)).toBe(990_000n)
  expect(await deadlocks()).toBe(0)
})

test('60 payments sent to both processes in different orders: each runs once, no deadlock', async () => {
  const [one] = nodes
  const payer = await one!.payer(10)
  const before = await count('runs')
  const asks = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      const body = { task: `Joke number ${index}.`, agent_id: 'comedian-v1' }
      return { body, header: await signPayment(payer, readChallenge((await one!.post('/api/run', body)).headers)) }
    }),
  )
  for (let round = 0; round < 5; round++) {
    const shuffled = (seed: number) =>
      asks.map((ask, index) => ({ ask, rank: (index * 7919 + seed * 104729) % 1009 })).sort((a, b) => a.rank - b.rank)
    const sent = nodes.flatMap((node, index) =>
      shuffled(round * 2 + index).map(({ ask }) => node.post('/api/run', ask.body, ask.header)),
    )
    for (const answer of await Promise.all(sent)) expect([200, 409]).toContain(answer.status)
  }
  expect((await count('runs')) - before).toBe(60)
  expect(await one!.balance(payer.address)).toBe(10_000_000n - 600_000n)
  expect(await deadlocks()).toBe(0)
  const { rows } = await open.pool.query('select sum(reserved_micro) reserved from limits')
  expect(Number(rows[0].reserved)).toBe(0)
})
