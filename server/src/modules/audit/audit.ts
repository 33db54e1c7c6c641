import { canonicalJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { JournalConsumer } from '../../platform/journal.ts'
import type { Keys } from '../../platform/keys.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid } from '../../platform/problem.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'
import {
  type AuditFilter,
  findSeq,
  listEvents,
  markCommitted,
  readChain,
  readHeads,
  readUncommittedHeads,
} from './audit.store.ts'
import { createAuditChain, toAuditEvent } from './audit-chain.ts'

/** The head of one chain, as it goes into the public log. */
export type AuditHeadDraft = {
  receipt_id: string
  chain: string
  seq: number
  hash: string
  prev_hash: string | null
  issued_at: string
}

export type AuditDeps = {
  db: Db
  clock: Clock
  ids: Ids
  keys: Pick<Keys, 'fingerprint'>
  /** Signs heads and issues their receipts for the public log; returns the hashes that the next heads refer to. */
  commitHeads(tx: Tx, heads: readonly AuditHeadDraft[]): Promise<string[]>
  /** A receipt with its log inclusion proof. */
  getReceipt(id: string): Promise<unknown>
  /** A chain's head goes into the log at most this often, so that a busy tenant does not fill it. */
  commitEveryMs?: number
}

export type Audit = ReturnType<typeof createAudit>

const HEADS_PER_BATCH = 200
const HEADS_CHECK_MS = 1_000
const EXPORT_PAGE_SIZE = 1_000

export function createAudit({ db, clock, ids, keys, commitHeads, getReceipt, commitEveryMs = 60_000 }: AuditDeps) {
  const dueBefore = () => new Date(clock.now().getTime() - commitEveryMs)

  /** Keyed, so that outsiders cannot find out whose chain it is, not even by trying every tenant id. */
  const chainName = (tenantId: string) => `audit_${keys.fingerprint(`audit chain of ${tenantId}`).slice(0, 32)}`

  const chain = createAuditChain({ chainName })
  // A head becomes due when its chain grows or by time; between the two there is no need to look.
  let lookedAt = Number.NEGATIVE_INFINITY

  /** Commits chain heads to the public log: after that not even the operator can rewrite the history. */
  const headsTask: SequencedTask = {
    name: 'audit heads',
    async hasWork(tx) {
      const now = clock.now().getTime()
      if (now - lookedAt < HEADS_CHECK_MS) return false
      const isDue = (await readUncommittedHeads(tx, dueBefore(), 1)).length > 0
      if (!isDue) lookedAt = now
      return isDue
    },
    async processBatch(tx) {
      const at = clock.now()
      const heads = await readUncommittedHeads(tx, dueBefore(), HEADS_PER_BATCH)
      const drafts = heads.map((head) => ({
        receipt_id: ids.next('rcpt'),
        chain: head.chain,
        seq: Number(head.seq),
        hash: head.hash,
        prev_hash: head.receipt_hash,
        issued_at: at.toISOString(),
      }))
      const hashes = await commitHeads(tx, drafts)
      const receipts = drafts.map(({ receipt_id }, index) => ({ id: receipt_id, hash: hashes[index]! }))
      await markCommitted(tx, heads, receipts, at)
      // The receipts of the heads are in the journal now.
      return true
    },
  }

  /** The chain's head, and the receipt that proves the head in the public log. */
  const readCheckpoint = async (tenantId: string) => {
    const [head] = await readHeads(db, [tenantId])
    if (!head) return null
    return {
      chain: head.chain,
      seq: Number(head.seq),
      hash: head.hash,
      committed_seq: Number(head.committed_seq),
      receipt: head.receipt_id === null ? null : await getReceipt(head.receipt_id),
    }
  }

  return {
    /** Links events from the journal into their chains. */
    chain: {
      ...chain,
      async process(tx, rows) {
        await chain.process(tx, rows)
        lookedAt = Number.NEGATIVE_INFINITY
      },
    } satisfies JournalConsumer,
    /** For the sequencer, after the journal: links come before heads. */
    headsTask,

    async list(tenantId: string, filter: AuditFilter, page: { limit: number; cursor?: string }) {
      const beforeSeq = page.cursor === undefined ? undefined : await findSeq(db, tenantId, page.cursor)
      if (page.cursor !== undefined && beforeSeq === undefined) throw invalid('The cursor is not the id of an event.')
      const { rows, examinedTo } = await listEvents(db, tenantId, filter, { limit: page.limit + 1, beforeSeq })
      const { rows: events, next_cursor: nextPage } = toPage(rows, page.limit)
      const next_cursor = nextPage ?? examinedTo ?? null
      const checkpoint = await readCheckpoint(tenantId)
      return { events: events.map(toAuditEvent), checkpoint, has_more: next_cursor !== null, next_cursor }
    },

    /** The whole chain, one event per line, read page by page. */
    async *exportLines(tenantId: string, afterSeq: number): AsyncGenerator<string> {
      const [head] = await readHeads(db, [tenantId])
      let after = BigInt(afterSeq)
      while (head && after < head.seq) {
        const rows = await readChain(db, tenantId, after, head.seq, EXPORT_PAGE_SIZE)
        if (rows.length === 0) return
        yield rows.map((row) => `${canonicalJson(toAuditEvent(row))}\n`).join('')
        after = rows.at(-1)!.seq
      }
    },
  }
}
