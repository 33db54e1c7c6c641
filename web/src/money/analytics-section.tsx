import type { ApiRequest, ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Chart } from '../components/chart.tsx'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Card, MutedText, StatList, Timestamp } from '../components/ui.tsx'
import { formatCount, formatMilliseconds, formatPercent, formatUsdc } from '../format.ts'
import { navigate, routeHref } from '../route.ts'

type Analytics = ApiResponse<'/api/analytics', 'get'>
type Window = NonNullable<NonNullable<ApiRequest<'/api/analytics', 'get'>['query']>['window']>

const windows = ['24h', '7d', '30d', '90d'] as const satisfies readonly Window[]

export function AnalyticsSection({ route }: SectionProps) {
  const window = (route.query.get('window') ?? '7d') as Window
  const analytics = useQuery({
    queryKey: [ACCOUNT_KEY, 'analytics', window],
    queryFn: () => api.get('/api/analytics', { query: { window } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <Card
        title="Runs and spend"
        note={
          analytics.data && (
            <>
              since <Timestamp at={analytics.data.window.since} />
            </>
          )
        }
      >
        <FilterForm key={window} onApply={(values) => navigate(routeHref(['account', 'analytics'], values))}>
          <Select label="Window" name="window" value={window} options={windows} />
        </FilterForm>
        <QueryResult query={analytics}>
          {(report) => (
            <>
              <Totals report={report} />
              <MutedText>
                These are the runs on lanes. Pre-authorised payments and top-ups are listed under{' '}
                <a href={routeHref(['account', 'runs'])}>runs</a> too.
              </MutedText>
              {report.totals.runs > 0 && <Series series={report.series} />}
            </>
          )}
        </QueryResult>
      </Card>
      <Card
        title="By lane"
        note={<a href={routeHref(['account', 'spend'], { group: 'lane' })}>Spend by lane, with what else was paid</a>}
      >
        <QueryResult query={analytics}>
          {({ by_agent }) => (
            <Table
              label="Figures by lane"
              columns={[
                { name: 'Lane', render: ({ agent_id }) => agent_id },
                { name: 'Runs', render: ({ runs }) => formatCount(runs), numeric: true },
                { name: 'Success', render: ({ success_rate }) => formatPercent(success_rate), numeric: true },
                { name: 'Blocked', render: ({ blocked }) => formatCount(blocked), numeric: true },
                { name: 'Failed', render: ({ failed }) => formatCount(failed), numeric: true },
                { name: 'Spend', render: ({ spend_usdc }) => formatUsdc(spend_usdc), numeric: true },
              ]}
              rows={by_agent}
              rowKey={({ agent_id }) => agent_id}
              empty="No runs in this window. Choose a longer one."
            />
          )}
        </QueryResult>
      </Card>
    </>
  )
}

const Totals = ({ report: { totals, latency_ms } }: { report: Analytics }) => (
  <StatList
    stats={[
      { name: 'Runs', value: formatCount(totals.runs) },
      { name: 'Completed', value: formatCount(totals.completed) },
      { name: 'Blocked', value: formatCount(totals.blocked) },
      { name: 'Failed', value: formatCount(totals.failed) },
      { name: 'Spend', value: formatUsdc(totals.spend_usdc) },
      { name: 'Latency p50', value: formatMilliseconds(latency_ms.p50) },
      { name: 'Latency p95', value: formatMilliseconds(latency_ms.p95) },
      { name: 'Latency p99', value: formatMilliseconds(latency_ms.p99) },
    ]}
  />
)

function Series({ series }: { series: Analytics['series'] }) {
  const times = useMemo(() => series.map(({ at }) => at), [series])
  const lines = useMemo(
    () => [
      {
        label: 'Runs',
        values: series.map(({ runs }) => runs),
        colour: 'accent' as const,
        unit: 'runs',
        bars: true,
        format: formatCount,
      },
      {
        label: 'Spend',
        values: series.map(({ spend_usdc }) => spend_usdc),
        colour: 'second' as const,
        unit: 'USDC',
        format: formatUsdc,
      },
    ],
    [series],
  )
  return (
    <>
      <Chart label="Runs and spend over time" times={times} lines={lines} />
      <details>
        <summary>As a table</summary>
        <Table
          label="Runs and spend over time"
          columns={[
            { name: 'From', render: ({ at }) => <Timestamp at={at} /> },
            { name: 'Runs', render: ({ runs }) => formatCount(runs), numeric: true },
            { name: 'Completed', render: ({ completed }) => formatCount(completed), numeric: true },
            { name: 'Blocked', render: ({ blocked }) => formatCount(blocked), numeric: true },
            { name: 'Failed', render: ({ failed }) => formatCount(failed), numeric: true },
            { name: 'Spend', render: ({ spend_usdc }) => formatUsdc(spend_usdc), numeric: true },
          ]}
          rows={[...series].reverse()}
          rowKey={({ at }) => at}
          empty="No runs yet. Make the first one in the playground."
        />
      </details>
    </>
  )
}
