import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, silent } from '../../test/receipts/helpers.ts'
import type { Db, Tx } from './db.ts'
import { createSequencer, type SequencedTask } from './sequencer.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  db = testDatabase.database.db
  await sql`create table numbered (id int primary key, seq int unique, epoch bigint)`.execute(db)
})
afterAll(() => testDatabase.drop())
beforeEach(async () => {
  await sql`truncate numbered`.execute(db)
  await sql`update sequencer_lease set expires_at = '-infinity'`.execute(db)
})

const add = (from: number, to: number) =>
  sql`insert into numbered (id) select generate_series(${from}::int, ${to}::int)`.execute(db)

const numbers = async () =>
  (await sql<{ seq: number | null }>`select seq from numbered order by seq`.execute(db)).rows.map(({ seq }) => seq)

const count = (length: number) => Array.from({ length }, (_, i) => i)

const numbering = (between: (tx: Tx) => Promise<void> = async () => {}): SequencedTask => ({
  name: 'numbering',
  hasWork: async (db) => {
    const { rows } = await sql<{
      some: boolean
    }>`select exists (select 1 from numbered where seq is null) as some`.execute(db)
    return rows[0]!.some
  },
  processBatch: async (tx) => {
    const { rows } = await sql<{ next: number }>`select coalesce(max(seq) + 1, 0) as next from numbered`.execute(tx)
    await between(tx)
    await sql`
      update numbered set seq = place from (
        select id, ${rows[0]!.next}::int + row_number() over (order by id) - 1 as place from numbered where seq is null order by id limit 10
      ) batch where batch.id = numbered.id
    `.execute(tx)
    return true
  },
})

const sequencer = (instance: string, task: SequencedTask, leaseMs = 60_000) =>
  createSequencer({ db, log: silent, instance, tasks: [task], leaseMs, idleMs: 5 })

test('one run numbers everything that waits, without gaps', async () => {
  await add(1, 35)
  expect(await sequencer('a', numbering()).runOnce()).toBe(true)
  expect(await numbers()).toEqual(count(35))
})

test('while one process holds the lease, another numbers nothing', async () => {
  const first = sequencer('a', numbering())
  expect(await first.runOnce()).toBe(true)
  await add(1, 3)
  expect(await sequencer('b', numbering()).runOnce()).toBe(false)
  expect(await numbers()).toEqual([null, null, null])
})

test('a holder whose lease was taken over is fenced off and writes nothing', async () => {
  const first = sequencer('a', numbering())
  await first.runOnce()
  await sql`update sequencer_lease set expires_at = '-infinity'`.execute(db)
  await add(1, 5)
  const second = sequencer('b', numbering())
  expect(await second.runOnce()).toBe(true)
  await add(6, 9)
  expect(await first.runOnce()).toBe(false)
  expect((await numbers()).filter((seq) => seq === null)).toHaveLength(4)
  expect(await second.runOnce()).toBe(true)
  expect(await numbers()).toEqual(count(9))
})

test('a take-over waits for the running batch and continues where it ended', async () => {
  await add(1, 12)
  const inside = Promise.withResolvers<void>()
  const resume = Promise.withResolvers<void>()
  const first = sequencer(
    'a',
    numbering(async () => {
      inside.resolve()
      await resume.promise
    }),
    1,
  )
  const firstRun = first.runOnce()
  await inside.promise
  const second = sequencer('b', numbering())
  // The lease has expired, but its row is locked by the running batch.
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await second.runOnce()).toBe(false)
  resume.resolve()
  await firstRun
  await expect.poll(() => second.runOnce()).toBe(true)
  expect(await numbers()).toEqual(count(12))
})

test('a failing task is retried later and does not stop the others', async () => {
  await add(1, 4)
  let fails = 1
  const failing: SequencedTask = {
    name: 'failing',
    hasWork: async () => fails > 0,
    processBatch: async () => {
      fails -= 1
      throw new Error('not now')
    },
  }
  const both = createSequencer({ db, log: silent, instance: 'a', tasks: [failing, numbering()], idleMs: 5 })
  both.start()
  await expect.poll(numbers).toEqual(count(4))
  await both.stop()
  expect(fails).toBe(0)
})

test('stopping releases the lease, so that the next process starts at once', async () => {
  const first = sequencer('a', numbering())
  first.start()
  await expect.poll(() => first.isLeader()).toBe(true)
  await first.stop()
  expect(await sequencer('b', numbering()).runOnce()).toBe(true)
})
