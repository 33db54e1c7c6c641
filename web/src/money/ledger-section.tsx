import type { ApiResponse, LedgerEntry, Wallet } from '@countersign/sdk'
import { useEffect, useState } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { CsvButton } from '../components/csv-button.tsx'
import { Field, FilterForm } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import type { Column } from '../components/table.tsx'
import { Badge, Card, ErrorMessage, MutedText } from '../components/ui.tsx'
import { readAllPages, useCursorPages } from '../components/use-cursor-pages.ts'
import { VirtualTable } from '../components/virtual-table.tsx'
import { toCsv } from '../csv.ts'
import { formatCount } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { toDecimal } from '../usdc-sum.ts'
import { useWallets } from '../wallet/wallet-queries.ts'
import { accountName } from './account-name.ts'
import { checkLedger, type LedgerCheck } from './ledger-check.ts'
import { accountColumn, ledgerColumns, transactionColumn } from './ledger-columns.tsx'

type LedgerPage = ApiResponse<'/api/ledger', 'get'>

const PAGE_SIZE = 100
const MAX_CSV_ROWS = 10_000

export function LedgerSection({ route }: SectionProps) {
  const account = route.query.get('account')?.trim() || undefined
  const ref = route.query.get('ref')?.trim() || undefined
  const readPage = (cursor: string | undefined) =>
    api.get('/api/ledger', { query: { account, ref, limit: PAGE_SIZE, cursor } })
  const wallets = useWallets(true).data?.wallets ?? []
  const { query, readOn, hasMore } = useCursorPages([ACCOUNT_KEY, 'ledger', { account, ref }], readPage)
  return (
    <Card title="Ledger" note="Double entry in USDC, newest first">
      <LedgerFilters
        account={account}
        reference={ref}
        accounts={query.data?.pages[0]?.accounts ?? []}
        wallets={wallets}
      />
      <QueryResult query={query}>
        {({ pages }) => {
          const entries = pages.flatMap((page) => page.entries)
          const check = checkLedger(entries, pages[0]!.accounts, {
            hasWholeTransactions: account === undefined,
            hasEveryEntry: ref === undefined,
            hasMore,
          })
          return (
            <>
              <CheckResult check={check} invariants={pages[0]!.invariants} readAgain={query.refetch} />
              <div className="row">
                <CsvButton
                  name="ledger.csv"
                  readCsv={async () => toLedgerCsv(await readAllPages(readPage, (page) => page.entries, MAX_CSV_ROWS))}
                />
              </div>
              <VirtualTable
                label="Ledger entries"
                columns={columnsWith(check, wallets)}
                rows={entries}
                rowKey={({ id }) => id}
                empty={<NoEntries isFiltered={account !== undefined || ref !== undefined} />}
                onEndNear={readOn}
              />
              {entries.length > 0 && (
                <p className="muted">
                  {formatCount(entries.length)} entries{hasMore ? ' so far; scroll for more' : ''}
                </p>
              )}
            </>
          )
        }}
      </QueryResult>
    </Card>
  )
}

const NoEntries = ({ isFiltered }: { isFiltered: boolean }) =>
  isFiltered ? (
    <>
      No entry fits these filters. <a href={routeHref(['account', 'ledger'])}>Show all</a>.
    </>
  ) : (
    <>
      No money has moved yet. <a href={routeHref(['account', 'wallets'])}>Open a wallet and fill it</a>.
    </>
  )

function LedgerFilters({
  account,
  reference,
  accounts,
  wallets,
}: {
  account: string | undefined
  reference: string | undefined
  accounts: LedgerPage['accounts']
  wallets: readonly Wallet[]
}) {
  const names = [...new Set([...accounts.map((row) => row.account), ...(account === undefined ? [] : [account])])]
  return (
    <FilterForm
      key={`${account} ${reference} ${names.length}`}
      onApply={(values) => navigate(routeHref(['account', 'ledger'], values))}
      hasButtons
    >
      <Field label="Account">
        {(id) => (
          <select id={id} name="account" defaultValue={account ?? ''}>
            <option value="">all accounts</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {accountName(name, wallets)}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Run, escrow or payout">
        {(id) => <input id={id} name="ref" defaultValue={reference} maxLength={200} placeholder="run_…" />}
      </Field>
    </FilterForm>
  )
}

/** What this page has added up itself, beside what the service says of its whole ledger. */
function CheckResult({
  check: { transactions, balances, faults },
  invariants,
  readAgain,
}: {
  check: LedgerCheck
  invariants: LedgerPage['invariants']
  readAgain: () => Promise<unknown>
}) {
  const hasFaults = faults.size > 0
  const [isConfirmed, setConfirmed] = useState(false)
  // An entry may have been posted between the reading of two pages, so what does not fit is read once more.
  useEffect(() => {
    if (!hasFaults) setConfirmed(false)
    else void readAgain().then(() => setConfirmed(true))
  }, [hasFaults, readAgain])
  if (hasFaults && !isConfirmed) return <MutedText>Adding up…</MutedText>
  return (
    <div role="status" className="ledger-check">
      {hasFaults ? (
        <ErrorMessage>
          The ledger does not add up: {formatCount(faults.size)} of the entries below{' '}
          {faults.size === 1 ? 'does' : 'do'} not fit. Tell the operator of this service.
        </ErrorMessage>
      ) : (
        <p>
          <Badge tone="success">It adds up</Badge> Added up in this browser: {formatCount(transactions)}{' '}
          {transactions === 1 ? 'transaction sums' : 'transactions sum'} up to zero, and {formatCount(balances)} running{' '}
          {balances === 1 ? 'balance follows' : 'balances follow'} from the one before.
        </p>
      )}
      <p className="muted">
        The service says of the whole ledger: debits and credits are {invariants.balanced ? 'equal' : 'not equal'},
        wallets {invariants.wallets_match ? 'hold' : 'do not hold'} what their entries say.
      </p>
    </div>
  )
}

const columnsWith = ({ faults }: LedgerCheck, wallets: readonly Wallet[]): Column<LedgerEntry>[] => [
  ...(faults.size > 0
    ? [
        {
          name: 'Check',
          render: ({ id }: LedgerEntry) => {
            const fault = faults.get(id)
            return fault === undefined ? <Badge tone="success">fits</Badge> : <Badge tone="error">{fault}</Badge>
          },
          wide: true,
        },
      ]
    : []),
  accountColumn(wallets),
  ...ledgerColumns,
  transactionColumn,
]

export const toLedgerCsv = (entries: readonly LedgerEntry[]) =>
  toCsv(
    [
      'id',
      'transaction_id',
      'created_at',
      'account',
      'code',
      'ref',
      'status',
      'debit',
      'credit',
      'asset',
      'balance_after',
    ],
    entries.map((entry) => [
      entry.id,
      entry.transaction_id,
      entry.created_at,
      entry.account,
      entry.code,
      entry.ref,
      entry.status,
      entry.direction === 'debit' ? Number(toDecimal(BigInt(entry.amount))) : null,
      entry.direction === 'credit' ? Number(toDecimal(BigInt(entry.amount))) : null,
      entry.asset,
      Number(toDecimal(BigInt(entry.balance_after))),
    ]),
  )
