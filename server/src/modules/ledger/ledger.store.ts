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
 * Newest first. Posted and voided entries are read from the ledger, by account where one is named; pending ones stand in
 * open runs and payouts.
 */
export async function listEntries(
  tx: Tx,
  tenantId: string,
  { account, ref, before, limit }: EntriesQuery,
): Promise<EntryRow[]> {
  const accountFilter = account === undefined ? sql`true` : sql`entry.account = ${account}`
  const refFilter = ref === undefined ? sql`true` : sql`entry.ref = ${ref}`
  // The row comparison is exact; the plain comparison lets the index scan start at the cursor.
  const cursorFilter =
    before === undefined
      ? sql`true`
      : sql`(entry.transaction_id, entry.line) < (${before.transactionId}, ${before.line})`
  const upto = before?.transactionId ?? '~'
  const entries = (() => {
    if (account !== undefined && ref === undefined)
      return sql`account_page(${tenantId}, ${account}, ${upto}, ${limit + 1})`
    const transactions =
      ref === undefined
        ? sql`select * from ledger where tenant_id = ${tenantId} and id <= ${upto} order by id desc limit ${limit + 1}`
        : sql`select * from ledger where tenant_id = ${tenantId} and ref = ${ref}`
    return sql`(
      select parent.id as transaction_id, line.place::int as line, line.account, parent.asset, line.amount_micro, parent.code, parent.ref, parent.created_at, parent.status
      from (${transactions}) parent cross join unnest(parent.accounts, parent.amounts) with ordinality as line(account, amount_micro, place)
    )`
  })()
  const { rows } = await sql<EntryRow>`
    select * from (
      select entry.* from ${entries} entry where ${accountFilter} and ${refFilter} and ${cursorFilter}
      union all
      select entry.transaction_id, entry.line, entry.account, entry.asset, entry.amount_micro, entry.code, entry.ref, entry.created_at, entry.status
      from pending_entries entry where entry.tenant_id = ${tenantId} and ${accountFilter} and ${refFilter} and ${cursorFilter}
    ) entry
    order by entry.transaction_id desc, entry.line desc limit ${limit}`.execute(tx)
  return rows
}

/** The balance of each entry's account directly after it, in the order of the entries. */
export async function readBalancesAt(tx: Tx, tenantId: string, entries: readonly EntryRow[]): Promise<bigint[]> {
  if (entries.length === 0) return []
  const column = <K extends keyof EntryRow>(name: K) => entries.map((entry) => entry[name])
  const { rows } = await sql<{ balance_micro: bigint }>`
    select balance_micro from ledger_balances_at(${tenantId}, ${column('account')}::text[], ${column('asset')}::text[],
      ${column('transaction_id')}::text[], ${column('line')}::int[])`.execute(tx)
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
  const { rows } = await sql`
    select 1 from ledger where id = ${transactionId} and tenant_id = ${tenantId} and ${line} between 1 and cardinality(accounts)
    union all
    select 1 from pending_entries where transaction_id = ${transactionId} and line = ${line} and tenant_id = ${tenantId}`.execute(
    tx,
  )
  return rows.length > 0
}

export async function countLedger(tx: Tx, transactionIds: readonly string[]): Promise<void> {
  await sql`select count_ledger(${transactionIds}::text[])`.execute(tx)
}
