/**
 * The chart of accounts. Debits are positive and credits negative in the table; a balance is shown on the
 * normal side of its account, so that what we owe a wallet reads as a positive amount.
 */
export const accounts = {
  /** USDC on the address that payments go to. */
  chain: 'assets:chain:usdc',
  /** What a lane earned. */
  lane: (agentId: string) => `revenue:lane:${agentId}`,
  orchestration: 'revenue:orchestration',
  /** What we owe the owner of a wallet. */
  wallet: (walletId: string) => `liabilities:wallet:${walletId}`,
  /** What a wallet's owner has put in escrow: owed to the recipient, or back to the wallet. */
  escrow: (walletId: string) => `liabilities:escrow:${walletId}`,
  /** Money on its way from one tenant to another; zero when every transfer has arrived. */
  transfers: 'liabilities:transfers',
  /** Escrow released without a recipient wallet: our revenue. */
  escrowRevenue: 'revenue:escrow',
  /** Payments that arrived after their run had failed: owed back to the payer. */
  refunds: 'liabilities:refunds',
} as const

const typesByPrefix = {
  assets: 'asset',
  liabilities: 'liability',
  revenue: 'revenue',
  expenses: 'expense',
  equity: 'equity',
} as const

export type AccountType = (typeof typesByPrefix)[keyof typeof typesByPrefix] | 'other'

export const accountType = (account: string): AccountType =>
  typesByPrefix[account.split(':')[0] as keyof typeof typesByPrefix] ?? 'other'

const debitTypes: readonly AccountType[] = ['asset', 'expense', 'other']

export const normalBalance = (account: string, micro: bigint): bigint =>
  debitTypes.includes(accountType(account)) ? micro : -micro

export type LedgerEntry = { account: string; amount_micro: bigint }

/** What the SQL function `ledger_direct` takes. */
export type LedgerTransaction = {
  id: string
  tenant_id: string | null
  code: string
  ref: string
  created_at: string
  asset: 'USDC'
  entries: LedgerEntry[]
}

/** From one account to another: the first is debited, the second credited. */
export const transfer = (from: string, to: string, amountMicro: bigint): LedgerEntry[] => [
  { account: from, amount_micro: amountMicro },
  { account: to, amount_micro: -amountMicro },
]
