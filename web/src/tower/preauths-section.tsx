import type { ApiRequest, ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { CopyButton } from '../components/copy-button.tsx'
import { Age, Countdown } from '../components/countdown.tsx'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, TextBlock, Timestamp, type Tone } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'

type Preauth = ApiResponse<'/api/pre-auth', 'get'>['preauths'][number]
type Query = NonNullable<ApiRequest<'/api/pre-auth', 'get'>['query']>

const statuses = [
  'active',
  'pending_approval',
  'open',
  'in_use',
  'escalated',
  'closed',
  'rejected',
] as const satisfies readonly Query['status'][]

const tones: Record<string, Tone> = {
  closed: 'success',
  escalated: 'error',
  rejected: 'error',
  pending_approval: 'warning',
}

export function PreauthsSection({ route }: SectionProps) {
  const [, id] = route.segments
  return id === undefined ? <PreauthList query={route.query} /> : <PreauthPage id={id} />
}

function PreauthList({ query }: { query: URLSearchParams }) {
  const status = statuses.find((one) => one === query.get('status'))
  const pagination = usePagination(status ?? '')
  const preauths = useQuery({
    queryKey: [ACCOUNT_KEY, 'preauths', status, pagination.cursor],
    queryFn: () => api.get('/api/pre-auth', { query: { status, limit: 50, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Pre-authorisations" note="Payments that agents asked to make elsewhere, newest first">
      <FilterForm key={status} onApply={(values) => navigate(routeHref(['account', 'preauths'], values))}>
        <Select label="Status" name="status" value={status} options={statuses} emptyLabel="any status" />
      </FilterForm>
      <QueryResult query={preauths}>
        {({ preauths: rows, next_cursor }) => (
          <>
            <PreauthRows
              preauths={rows}
              empty={
                status ? (
                  'No pre-authorisation has this status.'
                ) : (
                  <>
                    None yet. An agent asks with <code>POST /api/pre-auth</code> before it pays elsewhere.
                  </>
                )
              }
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

export const PreauthRows = ({ preauths, empty }: { preauths: Preauth[]; empty: ReactNode }) => (
  <Table
    label="Pre-authorisations"
    columns={[
      {
        name: 'Pre-authorisation',
        render: ({ preauth_id }) => (
          <a href={routeHref(['account', 'preauths', preauth_id])}>
            <Id value={preauth_id} />
          </a>
        ),
      },
      { name: 'Status', render: ({ status }) => <Badge tone={tones[status] ?? 'neutral'}>{status}</Badge> },
      { name: 'Agent', render: ({ agent_id }) => agent_id },
      { name: 'Merchant', render: ({ merchant }) => merchantName(merchant), wide: true },
      { name: 'Amount', render: ({ amount_usdc }) => formatUsdc(amount_usdc), numeric: true },
      { name: 'Age', render: ({ created_at }) => <Age at={created_at} /> },
      {
        name: 'To close',
        render: ({ status, close_by }) =>
          (status === 'open' || status === 'in_use') && close_by ? (
            <Countdown until={close_by} overText="overdue" />
          ) : (
            NO_VALUE
          ),
      },
    ]}
    rows={preauths}
    rowKey={({ preauth_id }) => preauth_id}
    empty={empty}
  />
)

const merchantName = (merchant: unknown) => {
  const { id, url } = (merchant ?? {}) as { id?: string; url?: string }
  return id ?? url ?? NO_VALUE
}

function PreauthPage({ id }: { id: string }) {
  const preauth = useQuery({
    queryKey: [ACCOUNT_KEY, 'preauths', 'one', id],
    queryFn: () => api.get('/api/pre-auth/{id}', { path: { id } }),
  })
  return (
    <>
      <p>
        <a href={routeHref(['account', 'preauths'])}>← Pre-authorisations</a>
      </p>
      <Card title="Pre-authorisation">
        <QueryResult query={preauth}>
          {(row) => (
            <>
              <DescriptionList
                items={[
                  [
                    'Id',
                    <span key="id" className="row">
                      <Id value={row.preauth_id} full /> <CopyButton text={row.preauth_id} label="Copy the id" />
                    </span>,
                  ],
                  [
                    'Status',
                    <Badge key="status" tone={tones[row.status] ?? 'neutral'}>
                      {row.status}
                    </Badge>,
                  ],
                  ['Agent', row.agent_id],
                  ['Spender', row.spender],
                  ['Merchant', merchantName(row.merchant)],
                  ['Amount', formatUsdc(row.amount_usdc)],
                  ['Still reserved', formatUsdc(row.reserved_usdc)],
                  ['Purpose', row.purpose],
                  ['Token', tokenState(row)],
                  ['Asked', <Timestamp key="created" at={row.created_at} />],
                  ['Token valid until', row.expires_at && <Timestamp key="expires" at={row.expires_at} />],
                  ['To close by', row.close_by && <Timestamp key="close" at={row.close_by} />],
                  ['Escalated', row.escalated_at && <Timestamp key="escalated" at={row.escalated_at} />],
                  [
                    'Run',
                    <a key="run" href={routeHref(['account', 'runs', row.run_id])}>
                      <Id value={row.run_id} />
                    </a>,
                  ],
                  [
                    'Approval',
                    row.approval_id && (
                      <a key="approval" href={routeHref(['account', 'approvals', row.approval_id])}>
                        <Id value={row.approval_id} />
                      </a>
                    ),
                  ],
                ]}
              />
              {row.closed && <TextBlock label="How it was closed">{JSON.stringify(row.closed, null, 2)}</TextBlock>}
              {row.settlement && <TextBlock label="Settlement">{JSON.stringify(row.settlement, null, 2)}</TextBlock>}
              <TextBlock label="Rules">{JSON.stringify(row.policy_results, null, 2)}</TextBlock>
            </>
          )}
        </QueryResult>
      </Card>
    </>
  )
}

/** The token itself is not shown: whoever has it can use it. */
function tokenState({ status, token, expires_at }: Preauth): string {
  if (status === 'pending_approval') return 'none before the approval'
  if (status === 'in_use') return 'used by a run that goes on'
  if (token === null) return 'not usable any more, or not with this key'
  return expires_at !== null && Date.parse(expires_at) < Date.now() ? 'expired' : 'usable'
}
