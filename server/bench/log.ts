/**
 * Measures the receipt log as it grows: the cost of an append at each size, and the time to build an inclusion proof from
 * the database. Starts its own PostgreSQL with fsync on.
 * Run: node launch.mjs server/bench/log.ts [largest size]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../src/adapters/postgres/embedded.ts'
import { openDatabase } from '../src/platform/db.ts'
import { createLog } from '../src/platform/log.ts'
import { migrate } from '../src/platform/migrate.ts'
import { percentile, queueReceipts, timeAppends, timeProofs } from '../test/receipts/fill-log.ts'
import { createReceiptsFixture } from '../test/receipts/helpers.ts'

const LEAVES = 1_000
const ROUNDS = 9
const PROOFS = 1_000
const CHUNK = 2_000
const largest = Number(process.argv[2] ?? 1_000_000)
const sizes = [1_000, 10_000, 100_000, 1_000_000].filter((size) => size <= largest)

const dataDir = mkdtempSync(join(tmpdir(), 'countersign-bench-'))
const serverLog = createLog('error')
const postgres = await startEmbeddedPostgres({ dataDir, log: serverLog, systemDir: join(dataDir, 'system') })
const database = openDatabase(postgres.connection, { max: 5, log: serverLog })
try {
  await migrate(database)
  const { db, log, sequencer } = createReceiptsFixture(database)
  const append = () => sequencer.runOnce()
  const rows = []
  let size = 0
  await append()
  for (const targetSize of sizes) {
    while (size < targetSize) {
      const count = Math.min(CHUNK, targetSize - size)
      await queueReceipts(db, size, count)
      await append()
      size += count
    }
    const appends = await timeAppends(db, append, size, LEAVES, ROUNDS)
    size += LEAVES * ROUNDS
    const { times, hashes } = await timeProofs(log, size, PROOFS)
    rows.push({
      leaves: targetSize,
      'append, µs per leaf': Math.round((percentile(appends, 0.5) / LEAVES) * 1000),
      'proof p50, ms': Number(percentile(times, 0.5).toFixed(2)),
      'proof p99, ms': Number(percentile(times, 0.99).toFixed(2)),
      'longest proof, hashes': hashes,
    })
    console.table(rows.slice(-1))
  }
  console.table(rows)
  const [first, last] = [rows[0]!, rows.at(-1)!]
  const growth = last['append, µs per leaf'] / first['append, µs per leaf']
  console.log(`Appending at ${last.leaves} leaves costs ${growth.toFixed(2)} times what it costs at ${first.leaves}.`)
} finally {
  await database.close()
  await postgres.stop()
  rmSync(dataDir, { recursive: true, force: true })
}
