import { parseCheckpoint, verifyInclusion } from '@countersign/proof'
import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { percentile, queueReceipts, timeAppends, timeProofs } from './fill-log.ts'
import { createReceiptsBench, createTestDatabase } from './helpers.ts'

const SIZE = 100_000
const CHUNK = 2_000
const LEAVES = 500
const ROUNDS = 9

let opened: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  opened = await createTestDatabase()
})
afterAll(() => opened.drop())

test('with a hundred thousand receipts a proof takes milliseconds and log n hashes, and appending costs what it did', async () => {
  const { db, log, receipts, sequencer } = createReceiptsBench(opened.database)
  const append = () => sequencer.turn()
  await queueReceipts(db, 0, 1_000)
  await append()
  const small = await timeAppends(db, append, 1_000, LEAVES, ROUNDS)
  for (let size = 1_000 + LEAVES * ROUNDS; size < SIZE; size += CHUNK) {
    await queueReceipts(db, size, Math.min(CHUNK, SIZE - size))
    await append()
  }
  const { times, hashes } = await timeProofs(log, SIZE, 300)
  expect(hashes).toBe(Math.ceil(Math.log2(SIZE)))
  expect(percentile(times, 0.5)).toBeLessThan(5)

  const { size, root } = parseCheckpoint(await log.checkpoint())!
  expect(size).toBe(SIZE)
  for (const index of [0, 1, 255, 256, 65_535, 65_536, 99_998, 99_999]) {
    const { rows } = await sql<{
      receipt_id: string
    }>`select receipt_id from log_entries where log_index = ${index}`.execute(db)
    const { leaf_hash: leafHash, log: place } = await receipts.proof(rows[0]!.receipt_id, { witnessed: false })
    expect(verifyInclusion({ leafHash, index, size, root, proof: place!.inclusion_proof })).toBe(true)
  }
  const large = await timeAppends(db, append, SIZE, LEAVES, ROUNDS)
  // The best of several, since whatever else the machine does only ever makes an append slower.
  expect(large[0]! / small[0]!).toBeLessThan(2)
})
