import type { TenantCaller } from '../../platform/auth-context.ts'
import { callStep } from '../../platform/batch.ts'
import type { Db, Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { toPage } from '../../platform/paging.ts'
import { invalid } from '../../platform/problem.ts'
import { accounts, accountType, normalBalance } from './accounts.ts'
import { postLedgerStep } from './ledger.steps.ts'
import {
  type AccountRow,
  type EntryRow,
  isEntryOf,
  listEntries,
  type Position,
  readAccounts,
  readBalancesAt,
  readWalletFigures,
  type WalletFigures,
} from './ledger.store.ts'

export { accounts, type LedgerEntry, type LedgerTransaction, transfer } from './accounts.ts'
export { amountFields, readAmount } from './amounts.ts'
export { balances } from './balances.ts'
export { chainAccountMicro, checkBooks } from './check-books.ts'
export { buildEscrowHold } from './escrow.ts'

export type LedgerDeps = { db: Db; ids: Ids }

export type Posting = {
  tenantId: string | null
  code: string
  ref: string
  asset: string
  entries: readonly { account: string; amountMicro: bigint }[]
  at: Date
}

export type LedgerQuery = { account?: string; ref?: string; cursor?: string; limit?: number }

export type Ledger = ReturnType<typeof createLedger>

export function createLedger({ db, ids }: LedgerDeps) {
  return {
    /** One page of entries, every account, and whether the books balance, all from one snapshot. */
    async read(caller: TenantCaller, query: LedgerQuery) {
      const limit = query.limit ?? 20
      const before = query.cursor === undefined ? undefined : readEntryId(query.cursor)
      return db
        .transaction()
        .setIsolationLevel('repeatable read')
        .execute(async (tx) => {
          if (before && !(await isEntryOf(tx, caller.tenantId, before))) throw notAnEntry()
          const rows = await listEntries(tx, caller.tenantId, {
            account: query.account,
            ref: query.ref,
            before,
            limit: limit + 1,
          })
          const accountRows = await readAccounts(tx, caller.tenantId)
          const wallets = await readWalletFigures(tx, caller.tenantId)
          const { rows: pageRows, ...paging } = toPage(rows, limit, entryId)
          const isGapless = query.ref === undefined
          const balances =
            isGapless && before === undefined
              ? balancesFromNewest(pageRows, accountRows)
              : await balancesAfter(tx, caller.tenantId, pageRows, isGapless)
          const entries = pageRows.map((row, index) => toEntryRecord(row, balances[index]!))
          return {
            entries,
            accounts: accountRows.map(toAccountRecord),
            invariants: { balanced: isBalanced(accountRows), wallets_match: walletsMatch(accountRows, wallets) },
            ...paging,
          }
        })
    },

    /** Posts entries directly, without a pending step, in the caller's transaction. */
    async post(tx: Tx, { tenantId, code, ref, asset, entries, at }: Posting): Promise<void> {
      const row = {
        id: ids.next('ltx'),
        tenant_id: tenantId,
        code,
        ref,
        asset,
        created_at: at.toISOString(),
        entries: entries.map(({ account, amountMicro }) => ({ account, amount_micro: amountMicro.toString() })),
      }
      await callStep(tx, postLedgerStep, row)
    },
  }
}

const entryId = (row: Pick<EntryRow, 'transaction_id' | 'line'>) => `${row.transaction_id}.${row.line}`

function readEntryId(id: string): Position {
  const [, transactionId, line] = /^(.{1,60})\.(\d{1,6})$/.exec(id) ?? []
  if (!transactionId || !line) throw notAnEntry()
  return { transactionId, line: Number(line) }
}

const notAnEntry = () => invalid('The cursor is not the id of an entry.')

const accountOf = ({ account, asset }: Pick<EntryRow, 'account' | 'asset'>) => `${asset} ${account}`

/** Pending and voided entries do not change the balance. */
const movedMicro = (row: EntryRow) => (row.status === 'posted' ? row.amount_micro : 0n)

/** On the first page the newest entry of an account leaves its present balance, and the others follow by going back. */
function balancesFromNewest(rows: readonly EntryRow[], accountRows: readonly AccountRow[]): bigint[] {
  const balances = new Map(accountRows.map((row) => [accountOf(row), row.balance_micro]))
  return rows.map((row) => {
    const balance = balances.get(accountOf(row)) ?? 0n
    balances.set(accountOf(row), balance - movedMicro(row))
    return balance
  })
}

/**
 * A page without gaps holds every entry of its accounts between its first and its last. Then only the balance after the
 * oldest entry of each account is read, and the others follow by adding up.
 */
async function balancesAfter(tx: Tx, tenantId: string, rows: readonly EntryRow[], gapless: boolean): Promise<bigint[]> {
  if (!gapless) return readBalancesAt(tx, tenantId, rows)
  const oldest = [...new Map(rows.map((row) => [accountOf(row), row])).values()]
  const oldestBalances = await readBalancesAt(tx, tenantId, oldest)
  const balances = new Map(oldest.map((row, index) => [accountOf(row), oldestBalances[index]!]))
  const visitedAccounts = new Set<string>()
  const after = rows.toReversed().map((row) => {
    const account = accountOf(row)
    const first = !visitedAccounts.has(account)
    visitedAccounts.add(account)
    const balance = balances.get(account)! + (first ? 0n : movedMicro(row))
    balances.set(account, balance)
    return balance
  })
  return after.reverse()
}

const toEntryRecord = (row: EntryRow, balanceMicro: bigint) => ({
  id: entryId(row),
  transaction_id: row.transaction_id,
  account: row.account,
  direction: row.amount_micro > 0n ? 'debit' : 'credit',
  amount: (row.amount_micro > 0n ? row.amount_micro : -row.amount_micro).toString(),
  asset: row.asset,
  status: row.status,
  code: row.code,
  ref: row.ref,
  created_at: row.created_at.toISOString(),
  balance_after: normalBalance(row.account, balanceMicro).toString(),
})

const toAccountRecord = ({ account, asset, balance_micro }: AccountRow) => ({
  account,
  type: accountType(account),
  asset,
  balance: normalBalance(account, balance_micro).toString(),
})

function isBalanced(accountRows: readonly AccountRow[]): boolean {
  const sums = new Map<string, bigint>()
  for (const { asset, balance_micro } of accountRows) sums.set(asset, (sums.get(asset) ?? 0n) + balance_micro)
  return [...sums.values()].every((sum) => sum === 0n)
}

/** The columns of a wallet must equal the sums of its ledger entries. */
function walletsMatch(accountRows: readonly AccountRow[], wallets: readonly WalletFigures[]): boolean {
  const owedMicro = (account: string) =>
    -(accountRows.find((row) => row.account === account && row.asset === 'USDC')?.balance_micro ?? 0n)
  return wallets.every(
    (wallet) =>
      owedMicro(accounts.wallet(wallet.id)) === wallet.available_micro + wallet.reserved_micro &&
      owedMicro(accounts.escrow(wallet.id)) === wallet.escrowed_micro,
  )
}
