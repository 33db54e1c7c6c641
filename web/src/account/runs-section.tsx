import type { ApiRequest, ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, Id, Timestamp, type Tone } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import type { SectionProps } from './section-props.ts'

type Run = ApiResponse<'/api/runs', 'get'>['runs'][number]
type Query = NonNullable<ApiRequest<'/api/runs', 'get'>['query']>

const outcomes = [
  'completed',
  'blocked',
  'pending',
  'approved',
  'escalated',
  'failed',
] as const satisfies readonly Query['outcome'][]
const tones: Record<string, Tone> = { completed: 'success', blocked: 'error', failed: 'error', escalated: 'warning' }
const PAGE_SIZE = 25

export function RunsSection({ route }: SectionProps) {
  const outcome = (route.query.get('outcome') ?? undefined) as Query['outcome']
  const pagination = usePagination(outcome ?? '')
  const runs = useQuery({
    queryKey: [ACCOUNT_KEY, 'runs', outcome, pagination.cursor],
    queryFn: () => api.get('/api/runs', { query: { outcome, limit: PAGE_SIZE, after: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Runs" note="Newest first">
      <FilterForm key={outcome} onApply={(values) => navigate(routeHref(['account', 'runs'], values))}>
        <Select label="Outcome" name="outcome" value={outcome} options={outcomes} emptyLabel="any outcome" />
      </FilterForm>
      <QueryResult query={runs}>
        {({ runs: runList, next_after }) => (
          <>
            <Table
              label="Runs"
              columns={columns}
              rows={runList}
              rowKey={({ run_id }) => run_id}
              empty={
                outcome ? (
                  `No ${outcome} runs.`
                ) : (
                  <>
                    No runs yet. <a href={routeHref(['playground'])}>Make the first one in the playground</a>.
                  </>
                )
              }
            />
            <Pager pagination={pagination} next={next_after} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<Run>[] = [
  { name: 'Run', render: ({ run_id }) => <Id value={run_id} /> },
  { name: 'Outcome', render: ({ outcome }) => <Badge tone={tones[outcome] ?? 'neutral'}>{outcome}</Badge> },
  { name: 'Action', render: ({ action }) => action },
  { name: 'Lane', render: ({ agent_id }) => agent_id },
  { name: 'Price', render: ({ price_usdc }) => formatUsdc(price_usdc), numeric: true },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
  {
    name: 'Receipt',
    render: ({ receipt_url }) => {
      const id = receipt_url?.split('/').at(-1)
      return id ? (
        <a href={routeHref(['receipts', id])}>
          <Id value={id} />
        </a>
      ) : (
        NO_VALUE
      )
    },
  },
]
