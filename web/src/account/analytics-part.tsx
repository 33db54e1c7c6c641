import type { Answer, Ask } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { Chart } from '../parts/chart.tsx'
import { Choice, Filters } from '../parts/fields.tsx'
import { count, milliseconds, percent, usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Figures, When } from '../parts/parts.tsx'
import { Table } from '../parts/table.tsx'
import { go, link } from '../route.ts'
import { ACCOUNT, service } from '../service.ts'
import type { PartProps } from './account-page.tsx'

type Analytics = Answer<'/api/analytics', 'get'>
type Window = NonNullable<NonNullable<Ask<'/api/analytics', 'get'>['query']>['window']>

const windows = ['24h', '7d', '30d', '90d'] as const satisfies readonly Window[]

export function AnalyticsPart({ route }: PartProps) {
  const window = (route.query.get('window') ?? '7d') as Window
  const analytics = useQuery({
    queryKey: [ACCOUNT, 'analytics', window],
    queryFn: () => service.get('/api/analytics', { query: { window } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      <Card
        title="Runs and spend"
        note={
          analytics.data && (
            <>
              since <When at={analytics.data.window.since} />
            </>
          )
        }
      >
        <Filters key={window} apply={(values) => go(link(['account', 'analytics'], values))}>
          <Choice label="Window" name="window" value={window} options={windows} />
        </Filters>
        <Loaded query={analytics}>
          {(report) => (
            <>
              <Totals report={report} />
              {report.totals.runs > 0 && <Series series={report.series} />}
            </>
          )}
        </Loaded>
      </Card>
      <Card title="By lane">
        <Loaded query={analytics}>
          {({ by_agent }) => (
            <Table
              label="Figures by lane"
              columns={[
                { name: 'Lane', show: ({ agent_id }) => agent_id },
                { name: 'Runs', show: ({ runs }) => count(runs), number: true },
                { name: 'Success', show: ({ success_rate }) => percent(success_rate), number: true },
                { name: 'Blocked', show: ({ blocked }) => count(blocked), number: true },
                { name: 'Failed', show: ({ failed }) => count(failed), number: true },
                { name: 'Spend', show: ({ spend_usdc }) => usdc(spend_usdc), number: true },
              ]}
              rows={by_agent}
              rowKey={({ agent_id }) => agent_id}
              empty="No runs in this window."
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}

const Totals = ({ report: { totals, latency_ms } }: { report: Analytics }) => (
  <Figures
    figures={[
      { name: 'Runs', value: count(totals.runs) },
      { name: 'Completed', value: count(totals.completed) },
      { name: 'Blocked', value: count(totals.blocked) },
      { name: 'Failed', value: count(totals.failed) },
      { name: 'Spend', value: usdc(totals.spend_usdc) },
      { name: 'Latency p50', value: milliseconds(latency_ms.p50) },
      { name: 'Latency p95', value: milliseconds(latency_ms.p95) },
      { name: 'Latency p99', value: milliseconds(latency_ms.p99) },
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
        format: count,
      },
      {
        label: 'Spend',
        values: series.map(({ spend_usdc }) => spend_usdc),
        colour: 'second' as const,
        unit: 'USDC',
        format: usdc,
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
            { name: 'From', show: ({ at }) => <When at={at} /> },
            { name: 'Runs', show: ({ runs }) => count(runs), number: true },
            { name: 'Completed', show: ({ completed }) => count(completed), number: true },
            { name: 'Blocked', show: ({ blocked }) => count(blocked), number: true },
            { name: 'Failed', show: ({ failed }) => count(failed), number: true },
            { name: 'Spend', show: ({ spend_usdc }) => usdc(spend_usdc), number: true },
          ]}
          rows={[...series].reverse()}
          rowKey={({ at }) => at}
          empty="Nothing yet."
        />
      </details>
    </>
  )
}
