import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { ReceiptKind } from './receipt-kinds.ts'
import type { ReceiptRow } from './receipts.steps.ts'
import { payerKey } from './sign-receipt.ts'

/** Only the public columns: without the tenant, no public query can leak it. */
const publicReceipts = (tx: Tx) =>
  tx
    .selectFrom('receipts')
    .leftJoin('log_entries', 'log_entries.receipt_id', 'receipts.id')
    .select([
      'receipts.id',
      'receipts.run_id',
      'receipts.kind',
      'receipts.body',
      'receipts.hash',
      'receipts.prev_hash',
      'log_entries.log_index',
    ])
    .where('receipts.kind', '<>', 'attestation')

/** Whose payer an address is: it has signed payments of this tenant, only of others, or of no tenant. */
export async function findPayerOwner(tx: Tx, tenantId: string, address: string): Promise<'own' | 'other' | 'unknown'> {
  const { rows } = await sql<{ own: boolean; other: boolean }>`
    select exists (select 1 from receipts where payer = ${payerKey(address)} and tenant_id = ${tenantId}) as own,
           exists (select 1 from receipts where payer = ${payerKey(address)} and tenant_id <> ${tenantId}) as other`.execute(
    tx,
  )
  const { own, other } = rows[0]!
  if (own) return 'own'
  return other ? 'other' : 'unknown'
}

export type StoredReceipt = {
  id: string
  run_id: string | null
  kind: string
  body: string
  hash: string
  prev_hash: string | null
  log_index: bigint | null
}

export type ReceiptFilter = {
  agent_id?: string
  kind?: ReceiptKind
  run_id?: string
  payer?: string
  since?: string
  until?: string
}

/** Newest first by (issued_at, id); the cursor is the id of the last receipt of the page before. */
export async function listReceipts(
  tx: Tx,
  filter: ReceiptFilter,
  page: { limit: number; cursor?: string },
): Promise<StoredReceipt[]> {
  let query = tx.selectFrom('receipts').select(['id', 'run_id', 'kind', 'body', 'hash', 'prev_hash', 'issued_at'])
  if (filter.agent_id !== undefined) query = query.where('agent_id', '=', filter.agent_id)
  if (filter.run_id !== undefined) query = query.where('run_id', '=', filter.run_id)
  if (filter.payer !== undefined) query = query.where('payer', '=', payerKey(filter.payer))
  // Heads of audit chains are for auditors and are listed only by kind. The same words as in the index `receipts_by_time`.
  query = filter.kind
    ? query.where('kind', '=', filter.kind)
    : query.where(sql<boolean>`kind not in ('audit_head', 'attestation')`)
  if (filter.since !== undefined) query = query.where('issued_at', '>=', new Date(filter.since))
  if (filter.until !== undefined) query = query.where('issued_at', '<', new Date(filter.until))
  if (page.cursor !== undefined)
    query = query.where(sql<boolean>`(issued_at, id) < (select issued_at, id from receipts where id = ${page.cursor})`)
  const { rows } = await sql<StoredReceipt>`
    with page as materialized (
      ${query.orderBy('issued_at', 'desc').orderBy('id', 'desc').limit(page.limit)}
    ), places as materialized (
      -- One pass over the index for the whole page: receipts of one time are next to each other in it.
      select receipt_id, log_index from log_entries where receipt_id = any(array(select id from page))
    )
    select page.id, page.run_id, page.kind, page.body, page.hash, page.prev_hash, places.log_index
    from page left join places on places.receipt_id = page.id order by page.issued_at desc, page.id desc
  `.execute(tx)
  return rows
}

export const findReceipt = (tx: Tx, id: string): Promise<StoredReceipt | undefined> =>
  publicReceipts(tx).where('receipts.id', '=', id).executeTakeFirst()

/** Any entry of the log, a receipt or not. */
export async function findEntry(
  tx: Tx,
  id: string,
): Promise<Pick<StoredReceipt, 'id' | 'body' | 'hash' | 'log_index'> | undefined> {
  return tx
    .selectFrom('receipts')
    .leftJoin('log_entries', 'log_entries.receipt_id', 'receipts.id')
    .select(['receipts.id', 'receipts.body', 'receipts.hash', 'log_entries.log_index'])
    .where('receipts.id', '=', id)
    .executeTakeFirst()
}

export const findLogIndexes = (tx: Tx, ids: readonly string[]) =>
  tx
    .selectFrom('log_entries')
    .select(['receipt_id', 'log_index'])
    .where('receipt_id', 'in', [...ids])
    .execute()

/** A run's receipts are few, so the hash is compared and needs no index. */
export const findReceiptOfRun = (tx: Tx, runId: string, hash: string): Promise<StoredReceipt | undefined> =>
  publicReceipts(tx).where('receipts.run_id', '=', runId).where('receipts.hash', '=', hash).executeTakeFirst()

/** The receipt whose `prev_hash` names this one; a chain cannot fork, so there is at most one. */
export const findNextReceipt = (tx: Tx, { run_id, hash }: StoredReceipt): Promise<StoredReceipt | undefined> =>
  publicReceipts(tx)
    .where('receipts.run_id', '=', run_id)
    .where(sql<boolean>`coalesce(receipts.prev_hash, '') = ${hash}`)
    .executeTakeFirst()

/** The hash of the newest receipt of a run: the one that no other receipt names as `prev_hash`. */
export async function lastHashOfRun(tx: Tx, runId: string): Promise<string | null> {
  const { rows } = await sql<{ hash: string }>`
    select hash from receipts receipt
    where run_id = ${runId}
      and not exists (select 1 from receipts next where next.run_id = receipt.run_id and next.prev_hash = receipt.hash)
  `.execute(tx)
  return rows[0]?.hash ?? null
}

/** Issues receipts from TypeScript; the SQL steps call the same SQL function. */
export async function issueReceipts(tx: Tx, rows: readonly ReceiptRow[]) {
  await sql`select issue_receipt(row) from jsonb_array_elements(${JSON.stringify(rows)}::jsonb) as row`.execute(tx)
}
