import type { ApiRequest, ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, MutedText, Timestamp, type Tone } from '../components/ui.tsx'
import { navigate, routeHref } from '../route.ts'

type Alert = ApiResponse<'/api/control-tower', 'get'>['alerts'][number]
type Query = NonNullable<ApiRequest<'/api/predictive/alerts', 'get'>['query']>

const severities = ['critical', 'warning', 'info'] as const satisfies readonly Query['severity'][]
const tones: Record<Alert['severity'], Tone> = { critical: 'error', warning: 'warning', info: 'neutral' }

/** Listing alerts is a plan feature, so the plan is fetched first and the list only when the plan includes it. */
export function AlertsSection(props: SectionProps) {
  const plan = useQuery({ queryKey: [ACCOUNT_KEY, 'plan'], queryFn: () => api.get('/api/me/plan') })
  return (
    <Card title="Alerts">
      <QueryResult query={plan}>
        {({ plan: name, features }) =>
          (features as Record<string, unknown>).predictive_alerts === true ? (
            <AlertList {...props} />
          ) : (
            <MutedText>
              The plan ‘{name}’ does not include predictive alerts. The control tower shows the latest alerts.
            </MutedText>
          )
        }
      </QueryResult>
    </Card>
  )
}

function AlertList({ me, route }: SectionProps) {
  const severity = (route.query.get('severity') ?? undefined) as Query['severity']
  const unread = route.query.get('unread') === 'true' ? true : undefined
  const pagination = usePagination(`${severity} ${unread}`)
  const alerts = useQuery({
    queryKey: [ACCOUNT_KEY, 'alerts', severity, unread, pagination.cursor],
    queryFn: () =>
      api.get('/api/predictive/alerts', { query: { severity, unread, limit: 100, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <FilterForm
        key={`${severity} ${unread}`}
        onApply={(values) => navigate(routeHref(['account', 'alerts'], values))}
      >
        <Select label="Severity" name="severity" value={severity} options={severities} emptyLabel="any severity" />
        <Select label="Unread" name="unread" value={unread ? 'true' : ''} options={['true']} emptyLabel="read or not" />
      </FilterForm>
      <QueryResult query={alerts}>
        {({ alerts: alertList, next_cursor }) => (
          <>
            <AlertRows alerts={alertList} canControl={mayControl(me)} />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </>
  )
}

export const AlertRows = ({ alerts, canControl }: { alerts: Alert[]; canControl: boolean }) => (
  <Table
    label="Alerts"
    columns={canControl ? [...columns, readColumn] : columns}
    rows={alerts}
    rowKey={({ id }) => id}
    empty="No alerts. They appear here when spending or failures leave their usual range."
  />
)

const columns: Column<Alert>[] = [
  { name: 'Severity', render: ({ severity }) => <Badge tone={tones[severity]}>{severity}</Badge> },
  { name: 'Type', render: ({ type }) => type },
  { name: 'Message', render: ({ message }) => message, wide: true },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
]

const readColumn: Column<Alert> = {
  name: 'Read',
  render: ({ id, read }) =>
    read ? (
      'read'
    ) : (
      <ActionButton className="secondary" action={() => api.patch('/api/predictive/alerts', { body: { id } })}>
        Mark as read
      </ActionButton>
    ),
}
