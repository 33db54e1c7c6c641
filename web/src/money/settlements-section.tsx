import type { Settlement } from '@countersign/sdk'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { CsvButton } from '../components/csv-button.tsx'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import type { Column } from '../components/table.tsx'
import { Badge, Card, Timestamp } from '../components/ui.tsx'
import { readAllPages, useCursorPages } from '../components/use-cursor-pages.ts'
import { VirtualTable } from '../components/virtual-table.tsx'
import { toCsv } from '../csv.ts'
import { formatCount, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { formatMicroUsdc } from '../usdc-sum.ts'
import { RefLink, ShortId } from './money-links.tsx'
import { SettlementPage } from './settlement-page.tsx'
import { settlementTones } from './settlement-tones.ts'
import { settlementMethods, settlementStatuses, toSettlementsQuery } from './settlements-query.ts'

const PAGE_SIZE = 100
const MAX_CSV_ROWS = 10_000

export function SettlementsSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  return id === undefined ? <SettlementList query={route.query} /> : <SettlementPage me={me} id={id} />
}

function SettlementList({ query }: { query: URLSearchParams }) {
  const filter = toSettlementsQuery(query)
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const readPage = (cursor: string | undefined) =>
    api.get('/api/settlements', { query: { ...filter, limit: PAGE_SIZE, cursor } })
  const pages = useCursorPages([ACCOUNT_KEY, 'settlements', filter], readPage)
  return (
    <Card title="Settlements" note="How each payment ended, newest first">
      <Filters query={query} />
      <div className="row">
        <CsvButton
          name="settlements.csv"
          readCsv={async () =>
            toSettlementsCsv(await readAllPages(readPage, ({ settlements }) => settlements, MAX_CSV_ROWS))
          }
        />
      </div>
      <QueryResult query={pages.query}>
        {(data) => {
          const rows = data.pages.flatMap(({ settlements }) => settlements)
          return (
            <>
              <VirtualTable
                label="Settlements"
                columns={columns}
                rows={rows}
                rowKey={({ settlement_id }) => settlement_id}
                empty={isFiltered ? 'No settlement fits these filters.' : <NoSettlements />}
                onEndNear={pages.readOn}
              />
              {rows.length > 0 && (
                <p className="muted" role="status">
                  {formatCount(rows.length)} {rows.length === 1 ? 'settlement' : 'settlements'}
                  {pages.hasMore ? ' so far; scroll for more' : ''}
                </p>
              )}
            </>
          )
        }}
      </QueryResult>
    </Card>
  )
}

const NoSettlements = () => (
  <>
    Nothing was paid yet. <a href={routeHref(['playground'])}>Pay for a first run in the playground</a>.
  </>
)

function Filters({ query }: { query: URLSearchParams }) {
  const value = (name: string) => query.get(name) ?? ''
  return (
    <FilterForm
      key={query.toString()}
      onApply={(values) => navigate(routeHref(['account', 'settlements'], values))}
      hasButtons
    >
      <Select
        label="Status"
        name="status"
        value={value('status')}
        options={settlementStatuses}
        emptyLabel="any status"
      />
      <Select
        label="Paid by"
        name="rail"
        value={value('rail')}
        options={settlementMethods}
        emptyLabel="x402 or wallet"
      />
      <Field label="Run id">
        {(id) => <input id={id} name="run" defaultValue={value('run')} maxLength={80} placeholder="run_…" />}
      </Field>
      <Field label="From">{(id) => <input id={id} name="from" type="date" defaultValue={value('from')} />}</Field>
      <Field label="To">{(id) => <input id={id} name="to" type="date" defaultValue={value('to')} />}</Field>
    </FilterForm>
  )
}

const columns: Column<Settlement>[] = [
  { name: 'Settlement', render: ({ settlement_id }) => <RefLink value={settlement_id} /> },
  { name: 'Status', render: ({ status }) => <Badge tone={settlementTones[status]}>{status}</Badge> },
  { name: 'Amount', render: ({ amount }) => formatMicroUsdc(BigInt(amount)), numeric: true },
  { name: 'Paid by', render: ({ method }) => method },
  { name: 'Run', render: ({ run_id }) => <RefLink value={run_id} /> },
  { name: 'Transaction', render: ({ transaction }) => (transaction ? <ShortId value={transaction} /> : NO_VALUE) },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
]

export const toSettlementsCsv = (settlements: readonly Settlement[]) =>
  toCsv(
    [
      ...['settlement_id', 'run_id', 'status', 'method', 'amount_usdc', 'payer', 'pay_to', 'wallet_id', 'transaction'],
      ...['attempts', 'reason', 'created_at', 'updated_at'],
    ],
    settlements.map((row) => [
      row.settlement_id,
      row.run_id,
      row.status,
      row.method,
      row.amount_usdc,
      row.payer,
      row.pay_to,
      row.wallet_id,
      row.transaction,
      row.attempts,
      row.reason,
      row.created_at,
      row.updated_at,
    ]),
  )
