import type { LedgerEntry, Wallet } from '@countersign/sdk'
import type { Column } from '../components/table.tsx'
import { Badge, Timestamp } from '../components/ui.tsx'
import { routeHref } from '../route.ts'
import { formatMicro } from '../usdc-sum.ts'
import { accountName } from './account-name.ts'
import { RefLink, ShortId } from './money-links.tsx'

const amountOf = (entry: LedgerEntry, direction: LedgerEntry['direction']) =>
  entry.direction === direction ? formatMicro(BigInt(entry.amount)) : ''

/** What both the ledger and the page of a wallet show of an entry. */
export const ledgerColumns: Column<LedgerEntry>[] = [
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
  {
    name: 'What',
    render: ({ code, status }) => (
      <span>
        {code.replaceAll('_', ' ')}{' '}
        {status !== 'posted' && <Badge tone={status === 'pending' ? 'warning' : 'neutral'}>{status}</Badge>}
      </span>
    ),
  },
  { name: 'Debit', render: (entry) => amountOf(entry, 'debit'), numeric: true },
  { name: 'Credit', render: (entry) => amountOf(entry, 'credit'), numeric: true },
  { name: 'Balance after', render: ({ balance_after }) => formatMicro(BigInt(balance_after)), numeric: true },
  { name: 'About', render: ({ ref }) => <RefLink value={ref} /> },
]

export const accountColumn = (wallets: readonly Wallet[]): Column<LedgerEntry> => ({
  name: 'Account',
  render: ({ account }) => (
    <a href={routeHref(['account', 'ledger'], { account })} title={account}>
      {accountName(account, wallets)}
    </a>
  ),
  wide: true,
})

export const transactionColumn: Column<LedgerEntry> = {
  name: 'Transaction',
  render: ({ transaction_id }) => <ShortId value={transaction_id} />,
}
