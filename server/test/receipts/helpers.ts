import { sql } from 'kysely'
import { createAudit } from '../../src/modules/audit/audit.ts'
import { createReceipts, type ReceiptsDeps } from '../../src/modules/receipts/receipts.ts'
import type { ReceiptDraft } from '../../src/modules/receipts/sign-receipt.ts'
import type { Database } from '../../src/platform/db.ts'
import { createIds } from '../../src/platform/ids.ts'
import { createJournalTask } from '../../src/platform/journal.ts'
import { createKeys } from '../../src/platform/keys.ts'
import { createSequencer } from '../../src/platform/sequencer.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase as cloneTemplate, silentLog } from '../database.ts'

export { silentLog as silent }

/** A test database that can be cleared between tests. */
export async function createTestDatabase() {
  const { url, open, drop } = await cloneTemplate()
  const database = open(5)
  return {
    database,
    url,
    /** Removes all receipts and audit events: much faster than another database. */
    async clear() {
      await database.pool.query(
        `truncate journal, receipts, log_entries, log_tiles, log_head, log_cosignatures, signing_keys, lane_receipts,
                  audit_events, audit_heads`,
      )
      await database.pool.query(`update sequencer_lease set expires_at = '-infinity'`)
    },
    async drop() {
      await database.close()
      await drop()
    },
  }
}

export const ORIGIN = 'log.example/receipts'
export const testKeys = (name = 'a') =>
  createKeys({ signing: `signing secret of the test key set ${name}`, encryption: 'encryption secret of the tests' })

/** Receipts, their log and a sequencer over one database, with a clock that the test controls. */
export function createReceiptsFixture(database: Pick<Database, 'db'>, options: Partial<ReceiptsDeps> = {}) {
  const { db } = database
  const clock = createTestClock()
  const ids = createIds(clock)
  const keys = options.keys ?? testKeys()
  const publicUrl = () => 'https://api.example:8443'
  const receipts = createReceipts({ db, keys, clock, publicUrl, logName: ORIGIN, ...options })
  const { log } = receipts
  const { issueAuditHeads: commitHeads, get: receipt } = receipts
  const audit = createAudit({ db, clock, ids, keys, commitHeads, getReceipt: receipt })
  const tasks = [createJournalTask({ log: silentLog, consumers: [audit.chain, log.consumer] }), audit.headsTask]
  const sequencer = createSequencer({ db, log: silentLog, instance: ids.uuid(), tasks, leaseMs: 60_000 })

  const draft = (overrides: Partial<ReceiptDraft> = {}): ReceiptDraft => ({
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
    salt: null,
    verification: { verified: true },
    settlement: { amount: '10000' },
    prev_hash: null,
    tenant_id: null,
    payer: null,
    ...overrides,
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
    audit,
    tasks,
    sequencer,
    draft,
    issue,
    issueMany: (count: number) => issue(Array.from({ length: count }, () => draft())),
    jwks: () => receipts.jwks(),
  }
}
