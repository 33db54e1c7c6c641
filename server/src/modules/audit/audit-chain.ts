import { hashJson } from '../../platform/canonical.ts'
import type { JournalAudit, JournalConsumer } from '../../platform/journal.ts'
import { type Head, insertEvents, type LinkedRow, readHeads } from './audit.store.ts'

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

/** Writes audit events as links of their tenants' chains: each contains the hash of the tenant's previous event. */
export function createAuditChain({ chainName }: { chainName(tenantId: string): string }): JournalConsumer {
  return {
    name: 'audit chains',
    column: 'audits',

    async process(tx, rows) {
      const tenantIds = [...new Set(rows.map((row) => row.tenant_id!))]
      const heads = new Map((await readHeads(tx, tenantIds)).map((head) => [head.tenant_id, toHead(head)]))
      const events: LinkedRow[] = []
      for (const { tenant_id, audits } of rows)
        for (const audit of audits!) {
          const head = heads.get(tenant_id!) ?? emptyHead(chainName(tenant_id!))
          const link = { seq: BigInt(head.seq + 1), prev_hash: head.hash }
          const event = toEvent(tenant_id!, audit)
          const hash = hashJson(toUnhashedEvent({ ...event, ...link }))
          events.push({ ...event, ...link, hash })
          const occurredAt = event.occurred_at.getTime()
          heads.set(tenant_id!, {
            chain: head.chain,
            seq: head.seq + 1,
            hash,
            newestAt: Math.max(head.newestAt, occurredAt),
            latenessMs: Math.max(head.latenessMs, head.newestAt - occurredAt),
          })
        }
      await insertEvents(
        tx,
        events,
        [...heads].map(([tenant_id, { chain, seq, hash, newestAt, latenessMs }]) => ({
          tenant_id,
          chain,
          seq,
          hash: hash!,
          newest_at: new Date(newestAt).toISOString(),
          lateness_ms: latenessMs,
        })),
      )
    },
  }
}

type ChainHead = { chain: string; seq: number; hash: string | null; newestAt: number; latenessMs: number }

const emptyHead = (chain: string): ChainHead => ({
  chain,
  seq: 0,
  hash: null,
  newestAt: Number.NEGATIVE_INFINITY,
  latenessMs: 0,
})

const toHead = ({ chain, seq, hash, newest_at, lateness_ms }: Head): ChainHead => ({
  chain,
  seq: Number(seq),
  hash,
  newestAt: newest_at?.getTime() ?? Number.NEGATIVE_INFINITY,
  latenessMs: Number(lateness_ms),
})

const toEvent = (tenant_id: string, audit: JournalAudit) => ({
  tenant_id,
  id: audit.id,
  type: audit.type,
  occurred_at: new Date(audit.occurred_at),
  actor: audit.actor,
  subject: audit.subject,
  decision: audit.decision ?? null,
  policy_ids: audit.policy_ids ?? [],
  input_hash: audit.input_hash ?? null,
  data: audit.data ?? {},
})

const toUnhashedEvent = (row: Omit<LinkedRow, 'hash'>): Omit<AuditEvent, 'hash'> => ({
  id: row.id,
  seq: Number(row.seq),
  type: row.type,
  occurred_at: row.occurred_at.toISOString(),
  actor: row.actor,
  subject: row.subject,
  decision: row.decision,
  policy_ids: row.policy_ids,
  input_hash: row.input_hash,
  data: row.data,
  prev_hash: row.prev_hash,
})

export const toAuditEvent = (row: LinkedRow): AuditEvent => ({ ...toUnhashedEvent(row), hash: row.hash })
