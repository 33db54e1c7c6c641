import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

export type EntryRow = {
  transaction_id: string
  line: number
  account: string
  asset: string
  amount_micro: bigint
  code: string
  ref: string
  created_at: Date
  status: 'pending' | 'posted' | 'voided'
}

export type Position = { transactionId: string; line: number }
export type EntriesQuery = { account?: string; ref?: string; before?: Position; limit: number }

/**
 * Newest first. A pending transaction is listed while it is open and after it was voided; once posted, its posting is
 * listed instead. The lines that only reverse a pending transaction are not listed.
 */
export async function listEntries(
  tx: Tx,
  tenantId: string,
  { account, ref, before, limit }: EntriesQuery,
): Promise<EntryRow[]> {
  const accountFilter =
    account === undefined ? sql`true` : sql`entry.tenant_id = ${tenantId} and entry.account = ${account}`
  const refFilter = ref === undefined ? sql`true` : sql`parent.ref = ${ref}`
  // The row comparison is exact; the plain comparisons let the index scan start at the cursor.
  const cursorFilter =
    before === undefined
      ? sql`true`
      : sql`parent.id <= ${before.transactionId} and entry.transaction_id <= ${before.transactionId} and (entry.transaction_id, entry.line) < (${before.transactionId}, ${before.line})`
  const { rows } = await sql<EntryRow>`
    select entry.transaction_id, entry.line, entry.account, entry.asset, entry.amount_micro, parent.code, parent.ref, parent.created_at,
      case when parent.kind <> 'pend' then 'posted' when resolution.id is null then 'pending' else 'voided' end as status
    from ledger_transactions parent
    join ledger_entries entry on entry.transaction_id = parent.id
    left join ledger_transactions resolution on resolution.pending_id = parent.id
    where parent.tenant_id = ${tenantId} and ${accountFilter} and ${refFilter} and ${cursorFilter}
      and (entry.layer = 'posted' or (parent.kind = 'pend' and (resolution.id is null or resolution.kind = 'void')))
    order by entry.transaction_id desc, entry.line desc limit ${limit}`.execute(tx)
  return rows
}

/** The balance of each entry's account directly after it, in the order of the entries. */
export async function readBalancesAt(tx: Tx, tenantId: string, entries: readonly EntryRow[]): Promise<bigint[]> {
  if (entries.length === 0) return []
  const column = <K extends keyof EntryRow>(name: K) => entries.map((entry) => entry[name])
  const { rows } = await sql<{ balance_micro: bigint }>`
    select ledger_balance_at(${tenantId}, account, asset, transaction_id, line) as balance_micro
    from unnest(${column('account')}::text[], ${column('asset')}::text[], ${column('transaction_id')}::text[], ${column('line')}::int[])
      with ordinality as entry(account, asset, transaction_id, line, place)
    order by place`.execute(tx)
  return rows.map((row) => row.balance_micro)
}

export type AccountRow = { account: string; asset: string; balance_micro: bigint }

export async function readAccounts(tx: Tx, tenantId: string): Promise<AccountRow[]> {
  const { rows } = await sql<AccountRow>`select * from ledger_accounts_of(${tenantId})`.execute(tx)
  return rows
}

export type WalletFigures = { id: string; available_micro: bigint; reserved_micro: bigint; escrowed_micro: bigint }

export const readWalletFigures = (tx: Tx, tenantId: string): Promise<WalletFigures[]> =>
  tx
    .selectFrom('wallets')
    .select(['id', 'available_micro', 'reserved_micro', 'escrowed_micro'])
    .where('tenant_id', '=', tenantId)
    .execute()

export async function isEntryOf(tx: Tx, tenantId: string, { transactionId, line }: Position): Promise<boolean> {
  const entry = await tx
    .selectFrom('ledger_entries')
    .select('line')
    .where('transaction_id', '=', transactionId)
    .where('line', '=', line)
    .where('tenant_id', '=', tenantId)
    .executeTakeFirst()
  return entry !== undefined
}

export async function countLedger(tx: Tx, maxTransactions: number): Promise<number> {
  const { rows } = await sql<{ counted: number }>`select count_ledger(${maxTransactions}) as counted`.execute(tx)
  return rows[0]!.counted
}
