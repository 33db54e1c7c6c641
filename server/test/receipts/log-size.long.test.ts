import { parseCheckpoint, verifyInclusion } from '@countersign/proof'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Db } from '../../src/platform/db.ts'
import { queueReceipts, timeProofs } from './fill-log.ts'
import { createReceiptsFixture, createTestDatabase } from './helpers.ts'

const SIZE = 100_000
const CHUNK = 2_000
const LEAVES = 500

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
afterAll(() => testDatabase.drop())

/** Counts the tiles that an append writes: a measure of its cost that does not depend on the machine. */
async function tilesWritten(db: Db, from: number, append: () => Promise<unknown>): Promise<number> {
  await queueReceipts(db, from, LEAVES)
  const { rows: before } = await sql<{
    next: string
  }>`select pg_snapshot_xmax(pg_current_snapshot())::text as next`.execute(db)
  await append()
  const { rows } = await sql<{
    count: number
  }>`select count(distinct (level, index))::int as count from log_tiles where xmin::text::bigint >= ${before[0]!.next}::bigint`.execute(
    db,
  )
  return rows[0]!.count
}

test('with a hundred thousand receipts a proof has log n hashes, and an append writes as few tiles as before', async () => {
  const { db, log, receipts, sequencer } = createReceiptsFixture(testDatabase.database)
  const append = () => sequencer.runOnce()
  await queueReceipts(db, 0, 1_000)
  await append()
  const small = await tilesWritten(db, 1_000, append)
  for (let size = 1_000 + LEAVES; size < SIZE; size += CHUNK) {
    await queueReceipts(db, size, Math.min(CHUNK, SIZE - size))
    await append()
  }
  const { hashes } = await timeProofs(log, SIZE, 300)
  expect(hashes).toBe(Math.ceil(Math.log2(SIZE)))

  const { size, root } = parseCheckpoint(await log.checkpoint())!
  expect(size).toBe(SIZE)
  for (const index of [0, 1, 255, 256, 65_535, 65_536, 99_998, 99_999]) {
    const { rows } = await sql<{
      receipt_id: string
    }>`select receipt_id from log_entries where log_index = ${index}`.execute(db)
    const { leaf_hash: leafHash, log: place } = await receipts.proof(rows[0]!.receipt_id, { witnessed: false })
    expect(verifyInclusion({ leafHash, index, size, root, proof: place!.inclusion_proof })).toBe(true)
  }
  // Three tiles of leaves at most, and one of each level above them.
  const large = await tilesWritten(db, SIZE, append)
  expect(small).toBeGreaterThan(0)
  expect(large).toBeLessThanOrEqual(3 + Math.ceil(Math.log(SIZE) / Math.log(256)))
})
