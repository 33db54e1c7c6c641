import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import { stringifyWithBigints } from '../../platform/json.ts'
import { MAX_EXAMINED } from '../../platform/paging.ts'

/** An event with its place in the chain of its tenant. */
export type LinkedRow = {
  tenant_id: string
  seq: bigint
  id: string
  type: string
  occurred_at: Date
  actor: string
  subject: string
  decision: string | null
  policy_ids: string[]
  input_hash: string | null
  data: unknown
  prev_hash: string | null
  hash: string
}

export type Head = {
  tenant_id: string
  chain: string
  seq: bigint
  hash: string
  newest_at: Date | null
  lateness_ms: bigint
  committed_seq: bigint
  receipt_id: string | null
  receipt_hash: string | null
}

const headColumns = [
  'tenant_id',
  'chain',
  'seq',
  'hash',
  'newest_at',
  'lateness_ms',
  'committed_seq',
  'receipt_id',
  'receipt_hash',
] as const

export async function readHeads(tx: Tx, tenantIds: readonly string[]): Promise<Head[]> {
  return tx
    .selectFrom('audit_heads')
    .select(headColumns)
    .where('tenant_id', 'in', [...tenantIds])
    .execute()
}

type NewHead = {
  tenant_id: string
  chain: string
  seq: number
  hash: string
  newest_at: string
  lateness_ms: number
}

/** Writes events with their links, and the new heads of their chains, in one statement. */
export async function insertEvents(tx: Tx, events: readonly LinkedRow[], heads: readonly NewHead[]) {
  await sql`
    with linked as (
      insert into audit_events (tenant_id, seq, id, type, occurred_at, actor, subject, decision, policy_ids, input_hash, data, prev_hash, hash)
      select tenant_id, seq, id, type, occurred_at, actor, subject, decision, policy_ids, input_hash, data, prev_hash, hash
      from jsonb_to_recordset(${stringifyWithBigints(events)}::jsonb) as event (
        tenant_id text, seq bigint, id text, type text, occurred_at timestamptz, actor text, subject text, decision text, policy_ids text[],
        input_hash text, data jsonb, prev_hash text, hash text)
    )
    insert into audit_heads (tenant_id, chain, seq, hash, newest_at, lateness_ms)
    select * from jsonb_to_recordset(${JSON.stringify(heads)}::jsonb)
      as head (tenant_id text, chain text, seq bigint, hash text, newest_at timestamptz, lateness_ms bigint)
    on conflict (tenant_id) do update
      set seq = excluded.seq, hash = excluded.hash, newest_at = excluded.newest_at, lateness_ms = excluded.lateness_ms
  `.execute(tx)
}

/** Chains with events newer than their head in the public log, last committed at or before `before`. */
export async function readUncommittedHeads(tx: Tx, before: Date, limit: number): Promise<Head[]> {
  return tx
    .selectFrom('audit_heads')
    .select(headColumns)
    .where(sql<boolean>`seq > committed_seq`)
    .where((where) => where.or([where('committed_at', 'is', null), where('committed_at', '<=', before)]))
    .orderBy('committed_at', (order) => order.asc().nullsFirst())
    .limit(limit)
    .execute()
}

export async function markCommitted(
  tx: Tx,
  heads: readonly Head[],
  receipts: readonly { id: string; hash: string }[],
  at: Date,
) {
  const tenantIds = heads.map(({ tenant_id }) => tenant_id)
  const seqs = heads.map(({ seq }) => seq.toString())
  const receiptIds = receipts.map(({ id }) => id)
  const hashes = receipts.map(({ hash }) => hash)
  await sql`
    update audit_heads head
    set committed_seq = committed.seq, committed_at = ${at}, receipt_id = committed.receipt_id, receipt_hash = committed.receipt_hash
    from unnest(${tenantIds}::text[], ${seqs}::bigint[], ${receiptIds}::text[], ${hashes}::text[])
      as committed (tenant_id, seq, receipt_id, receipt_hash)
    where head.tenant_id = committed.tenant_id
  `.execute(tx)
}

const linkedEvents = (tx: Tx, tenantId: string) =>
  tx
    .selectFrom('audit_events')
    .select([
      'tenant_id',
      'seq',
      'id',
      'type',
      'occurred_at',
      'actor',
      'subject',
      'decision',
      'policy_ids',
      'input_hash',
      'data',
      'prev_hash',
      'hash',
    ])
    .where('tenant_id', '=', tenantId)

export type AuditFilter = {
  type?: string
  actor?: string
  subject?: string
  spender?: string
  team?: string
  since?: string
  until?: string
}

/** The types that the index by type leaves out; see the migration. */
const FREQUENT_TYPES = ['run.admitted', 'run.completed']

/**
 * Newest first, by the place in the chain; only events before `beforeSeq`. `examinedTo` is the last event that was looked
 * at, when there may be more behind it.
 */
export async function listEvents(
  tx: Tx,
  tenantId: string,
  { type, actor, subject, spender, team, since, until }: AuditFilter,
  { limit, beforeSeq }: { limit: number; beforeSeq?: bigint },
  maxExamined = MAX_EXAMINED,
): Promise<{ rows: LinkedRow[]; examinedTo?: string }> {
  const hasIndex = subject !== undefined || (type !== undefined && !FREQUENT_TYPES.includes(type))
  const isFiltered = [type, actor, spender, team].some((filter) => filter !== undefined)
  const isExamined = isFiltered && !hasIndex
  let query = linkedEvents(tx, tenantId)
  let examinedFrom: bigint | undefined
  if (isExamined || since !== undefined || until !== undefined) {
    const range = await readRange(tx, tenantId, since, until)
    if (!range) return { rows: [] }
    const last = beforeSeq !== undefined && beforeSeq <= range.last_seq ? beforeSeq - 1n : range.last_seq
    const first = last - BigInt(maxExamined) + 1n
    if (isExamined && first > range.first_seq) examinedFrom = first
    query = query.where('seq', '>=', examinedFrom ?? range.first_seq).where('seq', '<=', last)
  } else if (beforeSeq !== undefined) query = query.where('seq', '<', beforeSeq)
  if (type !== undefined) query = query.where('type', '=', type)
  if (type !== undefined && !FREQUENT_TYPES.includes(type))
    query = query.where(sql<boolean>`type not in ('run.admitted', 'run.completed')`)
  if (actor !== undefined) query = query.where('actor', '=', actor)
  if (subject !== undefined) query = query.where('subject', '=', subject)
  if (spender !== undefined) query = query.where(sql<boolean>`data->>'spender' = ${spender}`)
  if (team !== undefined) query = query.where(sql<boolean>`data->>'team' = ${team}`)
  if (since !== undefined) query = query.where('occurred_at', '>=', new Date(since))
  if (until !== undefined) query = query.where('occurred_at', '<', new Date(until))
  const rows = await query.orderBy('seq', 'desc').limit(limit).execute()
  if (rows.length === limit || examinedFrom === undefined) return { rows }
  return { rows, examinedTo: await findId(tx, tenantId, examinedFrom) }
}

async function findId(tx: Tx, tenantId: string, seq: bigint): Promise<string | undefined> {
  const row = await tx
    .selectFrom('audit_events')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('seq', '=', seq)
    .executeTakeFirst()
  return row?.id
}

async function readRange(tx: Tx, tenantId: string, since?: string, until?: string) {
  const { rows } = await sql<{ first_seq: bigint; last_seq: bigint }>`
    select first_seq, last_seq from audit_range(${tenantId}, ${since ? new Date(since) : null}, ${until ? new Date(until) : null})
  `.execute(tx)
  return rows[0]
}

export async function findSeq(tx: Tx, tenantId: string, id: string): Promise<bigint | undefined> {
  const row = await tx
    .selectFrom('audit_events')
    .select('seq')
    .where('id', '=', id)
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return row?.seq
}

/** The place of an event that occurred in this range of time. */
export async function findLink(
  tx: Tx,
  tenantId: string,
  id: string,
  { since, until }: { since: Date; until: Date },
): Promise<{ seq: bigint; hash: string } | undefined> {
  const { rows } = await sql<{ seq: bigint; hash: string }>`
    select event.seq, event.hash from audit_range(${tenantId}, ${since}, ${until}) place
    join audit_events event on event.tenant_id = ${tenantId} and event.seq between place.first_seq and place.last_seq
    where event.id = ${id}
  `.execute(tx)
  return rows[0]
}

/** A range of the chain in order, for export. */
export const readChain = (tx: Tx, tenantId: string, after: bigint, upTo: bigint, limit: number): Promise<LinkedRow[]> =>
  linkedEvents(tx, tenantId).where('seq', '>', after).where('seq', '<=', upTo).orderBy('seq').limit(limit).execute()
