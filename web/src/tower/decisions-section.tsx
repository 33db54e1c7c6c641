import type { ApiRequest } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Age } from '../components/countdown.tsx'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, Id, type Tone } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { RefusalList } from '../policies/refusal-changes.tsx'
import { refusingResults } from '../policies/smallest-change.ts'
import { navigate, routeHref } from '../route.ts'

type Query = NonNullable<ApiRequest<'/api/decisions', 'get'>['query']>

const outcomes = ['blocked', 'rejected', 'review_required'] as const satisfies readonly Query['outcome'][]
const tones: Record<string, Tone> = { blocked: 'error', rejected: 'error', review_required: 'warning' }

/** What was refused or sent to a person, by which rule, and the least that would have to be different. */
export function DecisionsSection({ me, route }: SectionProps) {
  const outcome = outcomes.find((one) => one === route.query.get('outcome'))
  const agent = route.query.get('agent') ?? undefined
  const pagination = usePagination(`${outcome} ${agent}`)
  const decisions = useQuery({
    queryKey: [ACCOUNT_KEY, 'decisions', outcome, agent, pagination.cursor],
    queryFn: () =>
      api.get('/api/decisions', { query: { outcome, agent_id: agent, limit: 50, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Refusals" note="Newest first">
      <FilterForm key={outcome} onApply={(values) => navigate(routeHref(['account', 'decisions'], values))}>
        <Select label="Outcome" name="outcome" value={outcome} options={outcomes} emptyLabel="any outcome" />
      </FilterForm>
      <QueryResult query={decisions}>
        {({ decisions: rows, next_cursor }) => (
          <>
            <Table
              label="Refusals"
              columns={[
                {
                  name: 'Outcome',
                  render: (row) => <Badge tone={tones[row.outcome] ?? 'neutral'}>{row.outcome}</Badge>,
                },
                { name: 'Agent', render: ({ agent_id }) => agent_id ?? NO_VALUE },
                { name: 'Amount', render: ({ amount_usdc }) => formatUsdc(amount_usdc), numeric: true },
                {
                  name: 'Why',
                  render: (row) =>
                    refusingResults(row.policy_results).length > 0 ? (
                      <RefusalList me={me} decision={row} />
                    ) : (
                      row.message
                    ),
                  wide: true,
                },
                {
                  name: 'Run',
                  render: ({ run_id, kind }) =>
                    kind === 'trade' ? (
                      <a href={routeHref(['account', 'approvals', run_id])}>
                        <Id value={run_id} />
                      </a>
                    ) : (
                      <a href={routeHref(['account', 'runs', run_id])}>
                        <Id value={run_id} />
                      </a>
                    ),
                },
                { name: 'When', render: ({ created_at }) => <Age at={created_at} /> },
              ]}
              rows={rows}
              rowKey={({ decision_id }) => decision_id}
              empty={
                outcome
                  ? 'Nothing was refused with this outcome.'
                  : 'Nothing was refused. What a rule stops or sends to a person appears here.'
              }
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}
