import type { Receipt } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api, useLanes } from '../api.ts'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, Id, MutedText, PageTitle, Timestamp } from '../components/ui.tsx'
import { NO_VALUE } from '../format.ts'
import { navigate, type Route, routeHref } from '../route.ts'
import { ReceiptPage } from './receipt-page.tsx'
import { listLaneNames, type ReceiptQuery, toReceiptQuery } from './receipt-query.ts'

const kinds = [
  'run',
  'loop',
  'topup',
  'preauth',
  'rh_run',
  'refund',
  'correction',
  'failure',
  'audit_head',
] as const satisfies readonly ReceiptQuery['kind'][]
const PAGE_SIZE = 25

export function ReceiptsPage({ route }: { route: Route }) {
  const [id] = route.segments
  return id ? <ReceiptPage id={id} /> : <ReceiptList query={route.query} />
}

function ReceiptList({ query }: { query: URLSearchParams }) {
  const filter = query.toString()
  const pagination = usePagination(filter)
  const lanes = useLanes()
  const receiptList = useQuery({
    queryKey: ['receipts', filter, pagination.cursor],
    queryFn: () =>
      api.get('/api/receipts', { query: { ...toReceiptQuery(query), limit: PAGE_SIZE, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  const queryValue = (name: string) => query.get(name) ?? undefined

  return (
    <>
      <PageTitle>Receipts</PageTitle>
      <MutedText>
        Receipts are public and contain hashes, never the task or the output. Open one to verify it in this browser, or{' '}
        <a href={routeHref(['verify'])}>verify a receipt you have</a>.
      </MutedText>
      <Card title="Issued receipts" note="Newest first">
        <FilterForm key={filter} hasButtons onApply={(values) => navigate(routeHref(['receipts'], values))}>
          <Select label="Kind" name="kind" value={queryValue('kind')} options={kinds} emptyLabel="any kind" />
          <Select
            label="Lane"
            name="agent_id"
            value={queryValue('agent_id')}
            options={listLaneNames(lanes.data?.agents ?? [], queryValue('agent_id'))}
            emptyLabel="any lane"
          />
          <Field label="Run">
            {(id) => (
              <input id={id} name="run_id" defaultValue={queryValue('run_id')} placeholder="run_…" maxLength={200} />
            )}
          </Field>
          <Field label="Payer">
            {(id) => (
              <input id={id} name="payer" defaultValue={queryValue('payer')} placeholder="0x…" maxLength={200} />
            )}
          </Field>
          <Field label="From (UTC)">
            {(id) => <input id={id} name="since" type="date" defaultValue={queryValue('since')} />}
          </Field>
          <Field label="To (UTC)">
            {(id) => <input id={id} name="until" type="date" defaultValue={queryValue('until')} />}
          </Field>
        </FilterForm>
        <QueryResult query={receiptList}>
          {({ receipts, next_cursor }) => (
            <>
              <Table
                label="Receipts"
                columns={columns}
                rows={receipts}
                rowKey={({ receipt_id }) => receipt_id}
                empty={
                  filter ? (
                    'No receipt matches this filter.'
                  ) : (
                    <>
                      No receipts yet. <a href={routeHref(['playground'])}>The first paid run</a> issues one.
                    </>
                  )
                }
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
    </>
  )
}

const columns: Column<Receipt>[] = [
  {
    name: 'Receipt',
    render: ({ receipt_id }) => (
      <a href={routeHref(['receipts', receipt_id])}>
        <Id value={receipt_id} />
      </a>
    ),
  },
  { name: 'Kind', render: ({ kind }) => kind },
  { name: 'Lane', render: ({ agent_id }) => agent_id ?? NO_VALUE },
  { name: 'Run', render: ({ run_id }) => <Id value={run_id} /> },
  { name: 'Issued', render: ({ issued_at }) => <Timestamp at={issued_at} /> },
  { name: 'Log entry', render: ({ log }) => (log ? `#${log.index}` : 'pending'), numeric: true },
]
