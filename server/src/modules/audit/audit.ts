import { canonicalJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Keys } from '../../platform/keys.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid } from '../../platform/problem.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'
import {
  type AuditFilter,
  isEventOf,
  listEvents,
  markCommitted,
  readChain,
  readHeads,
  readUncommittedHeads,
} from './audit.store.ts'
import { auditEvent, createAuditChain } from './audit-chain.ts'

/** The head of one chain as the public log is to state it. */
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
  /** Signs the head and puts it in the queue of the public log; answers the hash that the next head names. */
  commitHead(tx: Tx, head: AuditHeadDraft): Promise<{ hash: string }>
  /** A receipt with its place in the log. */
  receipt(id: string): Promise<unknown>
  /** A chain's head goes into the log at most this often; a busy tenant must not fill it. */
  commitEveryMs?: number
}

export type Audit = ReturnType<typeof createAudit>

const HEADS_A_PASS = 200
const EXPORT_PAGE = 1_000

export function createAudit({ db, clock, ids, keys, commitHead, receipt, commitEveryMs = 60_000 }: AuditDeps) {
  const dueBefore = () => new Date(clock.now().getTime() - commitEveryMs)

  /** Keyed, so that nobody outside can tell whose chain it is, not even by trying every tenant id. */
  const chainName = (tenantId: string) => `audit_${keys.fingerprint(`audit chain of ${tenantId}`).slice(0, 32)}`

  /** Once in the public log, a chain's history can no longer be rewritten, not even by us. */
  const heads: SequencedTask = {
    name: 'audit heads',
    hasWork: async (look) => (await readUncommittedHeads(look, dueBefore(), 1)).length > 0,
    async processBatch(tx) {
      const at = clock.now()
      for (const head of await readUncommittedHeads(tx, dueBefore(), HEADS_A_PASS)) {
        const draft = {
          receipt_id: ids.next('rcpt'),
          chain: head.chain,
          seq: Number(head.seq),
          hash: head.hash,
          prev_hash: head.receipt_hash,
          issued_at: at.toISOString(),
        }
        const { hash } = await commitHead(tx, draft)
        await markCommitted(tx, head, { id: draft.receipt_id, hash }, at)
      }
    },
  }

  /** Where the chain stands, and the receipt by which the public log vouches for it. */
  const checkpoint = async (tenantId: string) => {
    const [head] = await readHeads(db, [tenantId])
    if (!head) return null
    return {
      chain: head.chain,
      seq: Number(head.seq),
      hash: head.hash,
      committed_seq: Number(head.committed_seq),
      receipt: head.receipt_id === null ? null : await receipt(head.receipt_id),
    }
  }

  return {
    /** Both belong into the sequencer, the links before the heads. */
    tasks: [createAuditChain({ chainName }), heads] as const,

    async list(tenantId: string, filter: AuditFilter, page: { limit: number; cursor?: string }) {
      if (page.cursor !== undefined && !(await isEventOf(db, tenantId, page.cursor)))
        throw invalid('The cursor is not the id of an event.')
      const rows = await listEvents(db, tenantId, filter, { ...page, limit: page.limit + 1 })
      const { rows: events, ...paging } = toPage(rows, page.limit)
      return { events: events.map(auditEvent), checkpoint: await checkpoint(tenantId), ...paging }
    },

    /** The chain as it stands now, one event a line, without holding all of it in memory. */
    async *exportLines(tenantId: string, afterSeq: number): AsyncGenerator<string> {
      const [head] = await readHeads(db, [tenantId])
      let after = BigInt(afterSeq)
      while (head && after < head.seq) {
        const rows = await readChain(db, tenantId, after, head.seq, EXPORT_PAGE)
        if (rows.length === 0) return
        yield rows.map((row) => `${canonicalJson(auditEvent(row))}\n`).join('')
        after = rows.at(-1)!.seq
      }
    },
  }
}
