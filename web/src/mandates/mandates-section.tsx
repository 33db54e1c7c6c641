import type { Mandate } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { mayMandate } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Card, MutedText, Timestamp } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'
import { describeConstraint } from './mandate-draft.ts'
import { NewMandatePage } from './mandate-form-page.tsx'
import { MandatePage } from './mandate-page.tsx'
import { RemainingSummary, StateBadge } from './remaining.tsx'

/** `mandates`, `mandates/new` and `mandates/<id>`. */
export function MandatesSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  if (id === undefined) return <MandateList me={me} query={route.query} />
  if (id !== 'new') return <MandatePage me={me} id={id} />
  return mayMandate(me) ? (
    <NewMandatePage key={route.query.toString()} query={route.query} />
  ) : (
    <Card title="Mandates">
      <NoMandateScope />
    </Card>
  )
}

export const NoMandateScope = () => (
  <MutedText>This API key can view but not make or revoke mandates: it has no mandate scope.</MutedText>
)

const statuses = ['active', 'revoked'] as const
const PAGE_SIZE = 20

function MandateList({ me, query }: { me: SectionProps['me']; query: URLSearchParams }) {
  const status = statuses.find((candidate) => candidate === query.get('status'))
  const pagination = usePagination(status ?? '')
  const mandates = useQuery({
    queryKey: [ACCOUNT_KEY, 'mandates', status, pagination.cursor],
    queryFn: () => api.get('/api/mandates', { query: { limit: PAGE_SIZE, cursor: pagination.cursor, status } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Mandates" note="Who may spend, how much, where and how long">
      {mayMandate(me) ? (
        <p>
          <a className="button" href={routeHref(['account', 'mandates', 'new'])}>
            New mandate
          </a>
        </p>
      ) : (
        <NoMandateScope />
      )}
      <FilterForm key={status} onApply={(values) => navigate(routeHref(['account', 'mandates'], values))}>
        <Select label="Status" name="status" value={status ?? ''} options={statuses} emptyLabel="all" />
      </FilterForm>
      <QueryResult query={mandates}>
        {({ mandates: list, next_cursor }) => (
          <>
            <Table
              label="Mandates"
              columns={columns}
              rows={list}
              rowKey={({ id }) => id}
              empty="There are no mandates: policies and budgets alone decide what agents may spend."
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<Mandate>[] = [
  {
    name: 'Mandate',
    render: ({ id, name }) => <a href={routeHref(['account', 'mandates', id])}>{name}</a>,
    wide: true,
  },
  { name: 'State', render: (mandate) => <StateBadge mandate={mandate} /> },
  { name: 'Agent', render: ({ agent_id }) => agent_id ?? 'any agent' },
  {
    name: 'Allows',
    render: ({ constraints }) =>
      constraints.length === 0 ? 'anything' : constraints.map(describeConstraint).join('; '),
    wide: true,
  },
  { name: 'Remains', render: ({ id }) => <RemainingSummary id={id} />, wide: true },
  { name: 'Expires', render: ({ expires_at }) => <Timestamp at={expires_at} />, wide: true },
]
