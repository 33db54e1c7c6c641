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

/** An event as its tenant sees it. The hash covers all of it but itself, so what is shown is what was hashed. */
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

const BATCH = 2_000

/** Links what was recorded since the last pass: each event carries the hash of the one before it of the same tenant. */
export function createAuditChain({ chainName }: { chainName(tenantId: string): string }): SequencedTask {
  return {
    name: 'audit chains',
    hasWork: isAnyEventQueued,

    async processBatch(tx) {
      const rows = await readQueuedEvents(tx, BATCH)
      if (rows.length === 0) return
      const tenantIds = [...new Set(rows.map((row) => row.tenant_id))]
      const known = await readHeads(tx, tenantIds)
      const heads = new Map(
        known.map(({ tenant_id, chain, seq, hash }) => [tenant_id, { chain, seq: Number(seq), hash }]),
      )
      const links: Link[] = []
      for (const row of rows) {
        const before = heads.get(row.tenant_id)
        const seq = (before?.seq ?? 0) + 1
        const prev_hash = before?.hash ?? null
        const hash = hashJson(unhashedEvent(row, seq, prev_hash))
        links.push({ tenant_id: row.tenant_id, seq, event_id: row.id, prev_hash, hash })
        heads.set(row.tenant_id, { chain: before?.chain ?? chainName(row.tenant_id), seq, hash })
      }
      await writeLinks(
        tx,
        links,
        [...heads].map(([tenant_id, head]) => ({ tenant_id, ...head })),
      )
    },
  }
}

const unhashedEvent = (row: EventRow, seq: number, prev_hash: string | null): Omit<AuditEvent, 'hash'> => ({
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

export const auditEvent = (row: LinkedRow): AuditEvent => ({
  ...unhashedEvent(row, Number(row.seq), row.prev_hash),
  hash: row.hash,
})
