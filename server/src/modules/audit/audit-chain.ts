import { hashJson } from '../../platform/canonical.ts'
import type { SequencedTask } from '../../platform/sequencer.ts'
import {
  type EventRow,
  isAnyEventQueued,
  type Link,
  type LinkedRow,
  readHeads,
  readQueuedEvents,
  writeLinks,
} from './audit.store.ts'

/** An event as its tenant sees it. `hash` covers every other field, so what is shown is what was hashed. */
export type AuditEvent = {
  id: string
  seq: number
  type: string
  occurred_at: string
  actor: string
  subject: string
  decision: string | null
  policy_ids: string[]
  input_hash: string | null
  data: unknown
  prev_hash: string | null
  hash: string
}

const BATCH_SIZE = 2_000

/** Links the events recorded since the last batch: each contains the hash of the tenant's previous event. */
export function createAuditChain({ chainName }: { chainName(tenantId: string): string }): SequencedTask {
  return {
    name: 'audit chains',
    hasWork: isAnyEventQueued,

    async processBatch(tx) {
      const rows = await readQueuedEvents(tx, BATCH_SIZE)
      if (rows.length === 0) return
      const tenantIds = [...new Set(rows.map((row) => row.tenant_id))]
      const storedHeads = await readHeads(tx, tenantIds)
      const heads = new Map(
        storedHeads.map(({ tenant_id, chain, seq, hash }) => [tenant_id, { chain, seq: Number(seq), hash }]),
      )
      const links: Link[] = []
      for (const row of rows) {
        const head = heads.get(row.tenant_id)
        const seq = (head?.seq ?? 0) + 1
        const prev_hash = head?.hash ?? null
        const hash = hashJson(toUnhashedEvent(row, seq, prev_hash))
        links.push({ tenant_id: row.tenant_id, seq, event_id: row.id, prev_hash, hash })
        heads.set(row.tenant_id, { chain: head?.chain ?? chainName(row.tenant_id), seq, hash })
      }
      await writeLinks(
        tx,
        links,
        [...heads].map(([tenant_id, head]) => ({ tenant_id, ...head })),
      )
    },
  }
}

const toUnhashedEvent = (row: EventRow, seq: number, prev_hash: string | null): Omit<AuditEvent, 'hash'> => ({
  id: row.id,
  seq,
  type: row.type,
  occurred_at: row.occurred_at.toISOString(),
  actor: row.actor,
  subject: row.subject,
  decision: row.decision,
  policy_ids: row.policy_ids,
  input_hash: row.input_hash,
  data: row.data,
  prev_hash,
})

export const toAuditEvent = (row: LinkedRow): AuditEvent => ({
  ...toUnhashedEvent(row, Number(row.seq), row.prev_hash),
  hash: row.hash,
})
