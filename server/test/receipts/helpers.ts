import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { pino } from 'pino'
import { createReceipts } from '../../src/modules/receipts/receipts.ts'
import type { ReceiptDraft } from '../../src/modules/receipts/sign-receipt.ts'
import { createTransparencyLog, type TransparencyLogDeps } from '../../src/modules/receipts/transparency-log.ts'
import { createTestClock } from '../../src/platform/clock.ts'
import { type Database, openDatabase } from '../../src/platform/db.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { migrate } from '../../src/platform/migrate.ts'
import { createSequencer } from '../../src/platform/sequencer.ts'

const host = process.env.COUNTERSIGN_TEST_PG!
export const silent = pino({ level: 'silent' })
const connection = (database: string) => ({ host, port: 5432, user: 'countersign', database })

export async function createTestDatabase(): Promise<{ database: Database; name: string; drop(): Promise<void> }> {
  const name = `receipts_${randomBytes(4).toString('hex')}`
  const admin = openDatabase(connection('countersign'), { max: 1, log: silent })
  await admin.pool.query(`create database ${name}`)
  const database = openDatabase(connection(name), { max: 5, log: silent })
  await migrate(database)
  return {
    database,
    name,
    async drop() {
      await database.close()
      await admin.pool.query(`drop database ${name} with (force)`)
      await admin.close()
    },
  }
}

export const openNamed = (name: string) => openDatabase(connection(name), { max: 3, log: silent })

export const ORIGIN = 'log.example/receipts'
export const testKeys = (name = 'a') =>
  createKeys({ signing: `signing secret of the test key set ${name}`, encryption: 'encryption secret of the tests' })

/** Receipts, their log and a sequencer over one database, with a clock that stands still. */
export function createReceiptsBench(
  database: Database,
  options: Partial<TransparencyLogDeps> & { keys?: ReturnType<typeof testKeys> } = {},
) {
  const { db } = database
  const clock = createTestClock()
  const ids = createIds(clock)
  const keys = options.keys ?? testKeys()
  const log = createTransparencyLog({
    db,
    clock,
    origin: ORIGIN,
    signers: [keys.signer('log')],
    witnesses: [],
    ...options,
  })
  const receipts = createReceipts({ db, keys, clock, log, publicUrl: () => 'https://api.example:8443' })
  const sequencer = createSequencer({ db, log: silent, instance: ids.uuid(), tasks: [log.task], leaseMs: 60_000 })

  const draft = (change: Partial<ReceiptDraft> = {}): ReceiptDraft => ({
    receipt_id: ids.next('rcpt'),
    run_id: ids.next('run'),
    loop_id: null,
    issued_at: clock.now().toISOString(),
    kind: 'run',
    agent_id: 'analyst-v1',
    route: { recommended_agent_id: 'analyst-v1' },
    pricing: { price_usdc: 0.01, amount: '10000' },
    governance: { decision: 'approved' },
    request_hash: `sha256:${'1'.repeat(64)}`,
    input_hash: `sha256:${'2'.repeat(64)}`,
    output_hash: `sha256:${'3'.repeat(64)}`,
    verification: { verified: true },
    settlement: { amount: '10000' },
    prev_hash: null,
    tenant_id: null,
    payer: null,
    ...change,
  })

  const issue = async (drafts: readonly ReceiptDraft[]) => {
    const signed = drafts.map(receipts.sign)
    const rows = JSON.stringify(signed.map(({ row }) => row))
    await sql`select issue_receipt(row) from jsonb_array_elements(${rows}::jsonb) as row`.execute(db)
    return signed
  }

  return {
    db,
    clock,
    ids,
    keys,
    log,
    receipts,
    sequencer,
    draft,
    issue,
    issueMany: (count: number) => issue(Array.from({ length: count }, () => draft())),
    jwks: () => receipts.jwks(),
  }
}
