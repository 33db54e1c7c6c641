import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createTestDatabase, silent } from '../../test/receipts/helpers.ts'
import type { Db, Tx } from './db.ts'
import { BatchTooLargeError, createJournalTask, type JournalConsumer, type JournalRow } from './journal.ts'
import { createSequencer } from './sequencer.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  db = testDatabase.database.db
  await sql`create table taken (n bigint generated always as identity, consumer text, value text)`.execute(db)
})
afterAll(() => testDatabase.drop())
beforeEach(async () => {
  await sql`truncate taken, journal`.execute(db)
  await sql`update sequencer_lease set expires_at = '-infinity'`.execute(db)
})

const addReceipts = (...ids: string[]) =>
  sql`insert into journal (at, receipt_id) select now(), id from unnest(${ids}::text[]) as id`.execute(db)

const taken = async (consumer: string) => {
  const { rows } = await sql<{
    value: string
  }>`select value from taken where consumer = ${consumer} order by n`.execute(db)
  return rows.map(({ value }) => value)
}

const countRows = async () => {
  const { rows } = await sql<{ count: bigint }>`select count(*) from journal`.execute(db)
  return Number(rows[0]!.count)
}

/** Notes what it was given in a table of its own. */
const recording = (
  column: 'receipt_id' | 'audits',
  before: (tx: Tx, rows: JournalRow[]) => Promise<void> = async () => {},
): JournalConsumer => ({
  name: column,
  column,
  process: async (tx, rows) => {
    await before(tx, rows)
    const values = rows.map((row) => (column === 'audits' ? row.audits![0]!.id : row.receipt_id!))
    await sql`insert into taken (consumer, value) select ${column}::text, value from unnest(${values}::text[]) as value`.execute(
      tx,
    )
  },
})

const sequencer = (...consumers: JournalConsumer[]) =>
  createSequencer({
    db,
    log: silent,
    instance: 'a',
    tasks: [createJournalTask({ log: silent, consumers })],
    leaseMs: 60_000,
    idleMs: 5,
  })

test('rows reach their consumer once, in the order of the journal, and are gone afterwards', async () => {
  const consumer = sequencer(recording('receipt_id'))
  await addReceipts('a', 'b', 'c')
  await consumer.runOnce()
  await addReceipts('d')
  await consumer.runOnce()
  await consumer.runOnce()
  expect(await taken('receipt_id')).toEqual(['a', 'b', 'c', 'd'])
  expect(await countRows()).toBe(0)
})

test('a row that commits long after rows with higher ids is not lost', async () => {
  const consumer = sequencer(recording('receipt_id'))
  const late = await testDatabase.database.connect()
  await late.query('begin')
  await late.query(`insert into journal (at, receipt_id) values (now(), 'late')`)
  await addReceipts('a', 'b')
  await consumer.runOnce()
  // By now the rows before it are no longer looked for in every pass.
  await sleep(2_200)
  await addReceipts('c')
  await consumer.runOnce()
  await late.query('commit')
  await late.end()
  await expect
    .poll(async () => {
      await consumer.runOnce()
      return taken('receipt_id')
    })
    .toEqual(['a', 'b', 'c', 'late'])
})

test('a process that dies after its batch was written and before the commit numbers nothing twice', async () => {
  await addReceipts('a', 'b')
  let deaths = 2
  const dying = recording('receipt_id', async (tx, rows) => {
    await sql`insert into taken (consumer, value) values ('receipt_id', ${`${rows.length} by a dying process`})`.execute(
      tx,
    )
    if (deaths-- > 0) await sql`select pg_terminate_backend(pg_backend_pid())`.execute(tx)
  })
  await expect(sequencer(dying).runOnce()).rejects.toThrow()
  expect([await taken('receipt_id'), await countRows()]).toEqual([[], 2])
  await sql`update sequencer_lease set expires_at = '-infinity'`.execute(db)
  await expect(sequencer(dying).runOnce()).rejects.toThrow()
  await sql`update sequencer_lease set expires_at = '-infinity'`.execute(db)
  await sequencer(recording('receipt_id')).runOnce()
  expect([await taken('receipt_id'), await countRows()]).toEqual([['a', 'b'], 0])
})

test('a failing consumer keeps its column and its order while the others go on', async () => {
  let broken = true
  const failing = recording('receipt_id', async () => {
    if (broken) throw new Error('The log is damaged.')
  })
  const both = sequencer(failing, recording('audits'))
  await sql`
    insert into journal (tenant_id, at, receipt_id, audits)
    select 'ten_1', now(), 'rcpt_' || n, jsonb_build_array(jsonb_build_object('id', 'aud_' || n)) from generate_series(1, 3) n
  `.execute(db)
  await sql`insert into journal (tenant_id, at, audits) values ('ten_1', now(), '[{"id": "aud_4"}]')`.execute(db)
  await both.runOnce()
  await both.runOnce()
  expect(await taken('audits')).toEqual(['aud_1', 'aud_2', 'aud_3', 'aud_4'])
  expect(await taken('receipt_id')).toEqual([])
  expect(await countRows()).toBe(3)
  broken = false
  await addReceipts('rcpt_4')
  await expect
    .poll(async () => {
      await both.runOnce()
      return taken('receipt_id')
    })
    .toEqual(['rcpt_1', 'rcpt_2', 'rcpt_3', 'rcpt_4'])
  expect(await taken('audits')).toHaveLength(4)
  expect(await countRows()).toBe(0)
})

test('a consumer that finds a batch too large gets a smaller one, and nothing twice', async () => {
  const sizes: number[] = []
  const small = recording('receipt_id', async (_tx, rows) => {
    if (rows.length > 4) throw new BatchTooLargeError(4)
    sizes.push(rows.length)
  })
  const ids = Array.from({ length: 10 }, (_, n) => `rcpt_${n}`)
  await addReceipts(...ids)
  await sequencer(small).runOnce()
  expect(await taken('receipt_id')).toEqual(ids)
  expect(Math.max(...sizes)).toBe(4)
})

test('the table stays small however many rows pass through it', async () => {
  const consumer = sequencer(recording('receipt_id', async (tx) => void (await sql`truncate taken`.execute(tx))))
  let largest = 0
  for (let round = 0; round < 50; round += 1) {
    await sql`
      insert into journal (at, receipt_id, ended)
      select now(), 'rcpt_' || n, jsonb_build_object('text', (select string_agg(md5(n || ':' || part), '') from generate_series(1, 15) part)) from generate_series(1, 1000) n
    `.execute(db)
    await consumer.runOnce()
    const { rows } = await sql<{ bytes: bigint }>`select pg_total_relation_size('journal') as bytes`.execute(db)
    largest = Math.max(largest, Number(rows[0]!.bytes))
  }
  expect(await countRows()).toBe(0)
  // 50,000 rows of about 600 bytes have passed, and what a vacuum comes after is 5,000.
  expect(largest).toBeLessThan(3 * 5_000 * 600)
})
