import { sql } from 'kysely'
import type { Db, Tx } from '../../platform/db.ts'

export type EventRow = {
  id: string
  tenant_id: string
  type: string
  occurred_at: Date
  actor: string
  subject: string
  decision: string | null
  policy_ids: string[]
  input_hash: string | null
  data: unknown
}

export type LinkedRow = EventRow & { seq: bigint; prev_hash: string | null; hash: string }

export type Link = { tenant_id: string; seq: number; event_id: string; prev_hash: string | null; hash: string }

export type Head = {
  tenant_id: string
  chain: string
  seq: bigint
  hash: string
  committed_seq: bigint
  receipt_id: string | null
  receipt_hash: string | null
}

export async function isAnyEventQueued(db: Db): Promise<boolean> {
  const { rows } = await sql<{ some: boolean }>`select exists (select 1 from audit_queue) as some`.execute(db)
  return rows[0]!.some
}

export async function readQueuedEvents(tx: Tx, limit: number): Promise<EventRow[]> {
  const { rows } = await sql<EventRow>`
    select event.* from (select event_id from audit_queue order by event_id limit ${limit}) queued
    join audit_events event on event.id = queued.event_id order by event.id
  `.execute(tx)
  return rows
}

export async function readHeads(tx: Tx, tenantIds: readonly string[]): Promise<Head[]> {
  return tx
    .selectFrom('audit_heads')
    .select(['tenant_id', 'chain', 'seq', 'hash', 'committed_seq', 'receipt_id', 'receipt_hash'])
    .where('tenant_id', 'in', [...tenantIds])
    .execute()
}

export async function writeLinks(
  tx: Tx,
  links: readonly Link[],
  heads: readonly { tenant_id: string; chain: string; seq: number; hash: string }[],
) {
  const column = <K extends keyof Link>(name: K) => links.map((link) => link[name])
  await sql`delete from audit_queue where event_id = any(${column('event_id')}::text[])`.execute(tx)
  await sql`
    insert into audit_links (tenant_id, seq, event_id, prev_hash, hash)
    select * from unnest(${column('tenant_id')}::text[], ${column('seq')}::bigint[], ${column('event_id')}::text[],
                         ${column('prev_hash')}::text[], ${column('hash')}::text[])
  `.execute(tx)
  const rows = JSON.stringify(heads)
  await sql`
    insert into audit_heads (tenant_id, chain, seq, hash)
    select * from jsonb_to_recordset(${rows}::jsonb) as head (tenant_id text, chain text, seq bigint, hash text)
    on conflict (tenant_id) do update set seq = excluded.seq, hash = excluded.hash
  `.execute(tx)
}

/** Chains with events newer than their head in the public log, last committed at or before `before`. */
export async function readUncommittedHeads(tx: Tx, before: Date, limit: number): Promise<Head[]> {
  return tx
    .selectFrom('audit_heads')
    .select(['tenant_id', 'chain', 'seq', 'hash', 'committed_seq', 'receipt_id', 'receipt_hash'])
    .where(sql<boolean>`seq > committed_seq`)
    .where((where) => where.or([where('committed_at', 'is', null), where('committed_at', '<=', before)]))
    .orderBy('committed_at', (order) => order.asc().nullsFirst())
    .limit(limit)
    .execute()
}

export async function markCommitted(tx: Tx, head: Head, receipt: { id: string; hash: string }, at: Date) {
  await tx
    .updateTable('audit_heads')
    .set({ committed_seq: head.seq, committed_at: at, receipt_id: receipt.id, receipt_hash: receipt.hash })
    .where('tenant_id', '=', head.tenant_id)
    .execute()
}

const linkedEvents = (tx: Tx, tenantId: string) =>
  tx
    .selectFrom('audit_events')
    .innerJoin('audit_links', 'audit_links.event_id', 'audit_events.id')
    .select([
      'audit_events.id',
      'audit_events.tenant_id',
      'type',
      'occurred_at',
      'actor',
      'subject',
      'decision',
      'policy_ids',
      'input_hash',
      'data',
      'seq',
      'prev_hash',
      'hash',
    ])
    .where('audit_events.tenant_id', '=', tenantId)

export type AuditFilter = { type?: string; subject?: string; since?: string; until?: string }

/** Newest first by (occurred_at, id); the cursor is the id of the last event of the previous page. */
export async function listEvents(
  tx: Tx,
  tenantId: string,
  filter: AuditFilter,
  page: { limit: number; cursor?: string },
): Promise<LinkedRow[]> {
  let query = linkedEvents(tx, tenantId)
  if (filter.type !== undefined) query = query.where('type', '=', filter.type)
  if (filter.subject !== undefined) query = query.where('subject', '=', filter.subject)
  if (filter.since !== undefined) query = query.where('occurred_at', '>=', new Date(filter.since))
  if (filter.until !== undefined) query = query.where('occurred_at', '<', new Date(filter.until))
  if (page.cursor !== undefined)
    query = query.where(
      sql<boolean>`(occurred_at, audit_events.id) < (select occurred_at, id from audit_events where id = ${page.cursor} and tenant_id = ${tenantId})`,
    )
  return query.orderBy('occurred_at', 'desc').orderBy('audit_events.id', 'desc').limit(page.limit).execute()
}

export async function eventExists(tx: Tx, tenantId: string, id: string): Promise<boolean> {
  const row = await tx
    .selectFrom('audit_events')
    .select('id')
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return row !== undefined
}

/** A range of the chain in order, for export. */
export const readChain = (tx: Tx, tenantId: string, after: bigint, upTo: bigint, limit: number): Promise<LinkedRow[]> =>
  linkedEvents(tx, tenantId)
    .where('audit_links.tenant_id', '=', tenantId)
    .where('seq', '>', after)
    .where('seq', '<=', upTo)
    .orderBy('seq')
    .limit(limit)
    .execute()
