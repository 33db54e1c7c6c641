import type { LedgerEntry } from '@countersign/sdk'
import { expect, test } from 'vitest'
import { checkLedger } from './ledger-check.ts'

const entry = (
  transaction: number,
  line: number,
  account: string,
  signed: number,
  balance: number,
  status: LedgerEntry['status'] = 'posted',
): LedgerEntry => ({
  id: `ltx_${transaction}.${line}`,
  transaction_id: `ltx_${transaction}`,
  account,
  direction: signed > 0 ? 'debit' : 'credit',
  amount: String(Math.abs(signed)),
  asset: 'USDC',
  status,
  code: 'run',
  ref: 'run_1',
  created_at: '2026-11-16T00:00:00Z',
  balance_after: String(balance),
})

const wallet = 'liabilities:wallet:wal_1'
const lane = 'revenue:lane:writer-v1'
const chain = 'assets:chain:usdc'
/** A top-up of 100, a run of 30, and one that is under way. */
const entries = [
  entry(3, 2, lane, -20, 30, 'pending'),
  entry(3, 1, wallet, 20, 70, 'pending'),
  entry(2, 2, lane, -30, 30),
  entry(2, 1, wallet, 30, 70),
  entry(1, 2, wallet, -100, 100),
  entry(1, 1, chain, 100, 100),
]
const accounts = [
  { account: wallet, asset: 'USDC', balance: '70' },
  { account: lane, asset: 'USDC', balance: '30' },
  { account: chain, asset: 'USDC', balance: '100' },
]
const whole = { hasWholeTransactions: true, hasEveryEntry: true, hasMore: false }

const change = (id: string, values: Partial<LedgerEntry>) =>
  entries.map((row) => (row.id === id ? { ...row, ...values } : row))

test('a ledger that fits has no faults, and says over how much', () => {
  expect(checkLedger(entries, accounts, whole)).toEqual({ transactions: 3, balances: 6, faults: new Map() })
})

test('an amount, a direction, a balance, a status or an entry that is missing does not fit', () => {
  const faultsOf = (rows: LedgerEntry[]) => [...checkLedger(rows, accounts, whole).faults.keys()].sort()
  expect(faultsOf(change('ltx_2.1', { amount: '31' }))).toEqual(['ltx_2.1', 'ltx_2.2'])
  expect(faultsOf(change('ltx_3.1', { direction: 'credit' }))).toEqual(['ltx_3.1', 'ltx_3.2'])
  expect(faultsOf(change('ltx_1.2', { balance_after: '101' }))).toEqual(['ltx_1.2', 'ltx_2.1'])
  expect(faultsOf(change('ltx_3.1', { status: 'posted' }))).toEqual(['ltx_3.1'])
  expect(faultsOf(entries.filter(({ id }) => id !== 'ltx_2.1'))).toEqual(['ltx_2.2', 'ltx_3.1'])
})

test('the newest balance of an account is compared with the account', () => {
  const other = accounts.map((row) => (row.account === lane ? { ...row, balance: '31' } : row))
  expect([...checkLedger(entries, other, whole).faults.keys()]).toEqual(['ltx_3.2'])
})

test('what is not whole is not judged: a chosen account, a chosen run, and the oldest transaction of a page', () => {
  const ofWallet = entries.filter(({ account }) => account === wallet)
  expect(checkLedger(ofWallet, accounts, { ...whole, hasWholeTransactions: false })).toEqual({
    transactions: 0,
    balances: 3,
    faults: new Map(),
  })
  expect(checkLedger(entries.slice(2, 4), accounts, { ...whole, hasEveryEntry: false })).toEqual({
    transactions: 1,
    balances: 0,
    faults: new Map(),
  })
  expect(checkLedger(entries.slice(0, 3), accounts, { ...whole, hasMore: true })).toEqual({
    transactions: 1,
    balances: 1,
    faults: new Map(),
  })
})
