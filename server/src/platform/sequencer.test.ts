import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, silent } from '../../test/receipts/helpers.ts'
import type { Db, Tx } from './db.ts'
import { createSequencer, type SequencedTask } from './sequencer.ts'

let opened: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db

beforeAll(async () => {
  opened = await createTestDatabase()
  db = opened.database.db
  await sql`create table numbered (id int primary key, seq int unique, epoch bigint)`.execute(db)
})
afterAll(() => opened.drop())
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
  hasWork: async (look) => {
    const { rows } = await sql<{
      some: boolean
    }>`select exists (select 1 from numbered where seq is null) as some`.execute(look)
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
  },
})

const sequencer = (instance: string, task: SequencedTask, leaseMs = 60_000) =>
  createSequencer({ db, log: silent, instance, tasks: [task], leaseMs, idleMs: 5 })

test('one turn numbers everything that waits, without a gap', async () => {
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

test('a holder that was silent too long finds itself fenced off and writes nothing', async () => {
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

test('a take-over waits for the pass that is under way, and continues where it ended', async () => {
  await add(1, 12)
  const inside = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const first = sequencer(
    'a',
    numbering(async () => {
      inside.resolve()
      await goOn.promise
    }),
    1,
  )
  const firstTurn = first.runOnce()
  await inside.promise
  const second = sequencer('b', numbering())
  // The lease has run out, but its row is locked by the pass under way.
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(await second.runOnce()).toBe(false)
  goOn.resolve()
  await firstTurn
  await expect.poll(() => second.runOnce()).toBe(true)
  expect(await numbers()).toEqual(count(12))
})

test('a task that fails is tried again later, and the others go on', async () => {
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

test('a stop gives the lease back, so that the next process starts at once', async () => {
  const first = sequencer('a', numbering())
  first.start()
  await expect.poll(() => first.isLeader()).toBe(true)
  await first.stop()
  expect(await sequencer('b', numbering()).runOnce()).toBe(true)
})
