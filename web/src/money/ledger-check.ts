import type { LedgerEntry } from '@countersign/sdk'
import { sumMicro } from '../usdc-sum.ts'

export type LedgerCheck = {
  /** Whole transactions, and balances that follow from the one before. */
  transactions: number
  balances: number
  /** What does not fit, by the id of the entry. */
  faults: Map<string, string>
}

type Scope = {
  /** Every entry of a transaction is listed: no account is chosen. */
  hasWholeTransactions: boolean
  /** Every entry of an account is listed between the first and the last: no run or escrow is chosen. */
  hasEveryEntry: boolean
  /** There are older entries that have not been read. */
  hasMore: boolean
}

const creditTypes = ['liabilities', 'revenue', 'equity']

/** Debits are positive. */
export const signedMicro = ({ direction, amount }: Pick<LedgerEntry, 'direction' | 'amount'>): bigint =>
  direction === 'debit' ? BigInt(amount) : -BigInt(amount)

/** What an entry adds to the balance of its account, on the side on which that account is positive. */
const movedMicro = (entry: LedgerEntry): bigint => {
  if (entry.status !== 'posted') return 0n
  const micro = signedMicro(entry)
  return creditTypes.includes(entry.account.split(':')[0]!) ? -micro : micro
}

/**
 * Adds up what the service has sent, newest first: each transaction must sum up to zero, each balance must be the one
 * before it and its entry, and the newest balance must be that of the account. Nothing that the service says of itself is used.
 */
export function checkLedger(
  entries: readonly LedgerEntry[],
  accounts: readonly { account: string; asset: string; balance: string }[],
  { hasWholeTransactions, hasEveryEntry, hasMore }: Scope,
): LedgerCheck {
  const faults = new Map<string, string>()
  const byTransaction = Map.groupBy(entries, ({ transaction_id }) => transaction_id)
  // The oldest transaction may go on after the last entry that was read.
  if (hasMore) byTransaction.delete(entries.at(-1)?.transaction_id ?? '')
  let transactions = 0
  if (hasWholeTransactions)
    for (const rows of byTransaction.values()) {
      transactions += 1
      for (const [asset, parts] of Map.groupBy(rows, (entry) => entry.asset))
        if (sumMicro(parts.map(signedMicro)) !== 0n)
          for (const { id } of parts) faults.set(id, `The ${asset} of this transaction does not sum up to zero.`)
    }
  let balances = 0
  if (hasEveryEntry)
    for (const rows of Map.groupBy(entries, ({ account, asset }) => `${asset} ${account}`).values()) {
      const [newest] = rows
      const current = accounts.find(({ account, asset }) => account === newest!.account && asset === newest!.asset)
      if (current?.balance !== newest!.balance_after) faults.set(newest!.id, 'The account has another balance.')
      for (const [index, entry] of rows.entries()) {
        const before = rows[index + 1]
        // What was before the oldest entry is zero only if it is the first of all.
        if (before === undefined && hasMore) continue
        balances += 1
        if (BigInt(entry.balance_after) !== BigInt(before?.balance_after ?? 0) + movedMicro(entry))
          faults.set(entry.id, 'The balance does not follow.')
      }
    }
  return { transactions, balances, faults }
}
