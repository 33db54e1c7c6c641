import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { hasStatus, useLanes } from '../api.ts'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, PageTitle } from '../components/ui.tsx'
import { formatCount, formatMilliseconds, formatPercent, formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { fetchHealth } from './fetch-health.ts'
import { LogCard } from './log-card.tsx'

type Lane = ApiResponse<'/api/agents', 'get'>['agents'][number]

export function OverviewPage() {
  const lanes = useLanes()
  return (
    <>
      <PageTitle>Overview</PageTitle>
      <div className="two-columns">
        <HealthCard />
        <LogCard />
      </div>
      <Card title="Lanes" note="Current prices and statistics">
        <QueryResult query={lanes}>
          {({ agents }) => (
            <Table
              label="Lanes"
              columns={columns}
              rows={agents}
              rowKey={({ agent_id }) => agent_id}
              empty="There are no lanes."
            />
          )}
        </QueryResult>
      </Card>
    </>
  )
}

const columns: Column<Lane>[] = [
  {
    name: 'Lane',
    render: ({ agent_id }) => (
      <a href={routeHref(['receipts'], { agent_id })} title="Receipts of this lane">
        <Id value={agent_id} />
      </a>
    ),
  },
  {
    name: 'Status',
    render: ({ status }) => <Badge tone={status === 'active' ? 'success' : 'warning'}>{status}</Badge>,
  },
  { name: 'For', render: ({ recommended_use }) => recommended_use, wide: true },
  { name: 'Price per run', render: ({ price_usdc }) => formatUsdc(price_usdc), numeric: true },
  { name: 'Runs', render: ({ stats }) => formatCount(stats.runs), numeric: true },
  { name: 'Success', render: ({ stats }) => formatPercent(stats.success_rate), numeric: true },
  { name: 'p50', render: ({ stats }) => formatMilliseconds(stats.p50_ms), numeric: true },
  { name: 'p95', render: ({ stats }) => formatMilliseconds(stats.p95_ms), numeric: true },
]

const dependencyStates: Record<string, string> = {
  ok: 'reachable',
  embedded: 'embedded, reachable',
  not_configured: 'not configured',
  unreachable: 'unreachable',
}

function HealthCard() {
  const health = useQuery({ queryKey: ['health'], queryFn: fetchHealth })
  return (
    <Card title="Health">
      <QueryResult query={health}>
        {({ status, supabase, redis }) => (
          <>
            <p>
              {hasStatus(health.error, 0) ? (
                <Badge tone="error">not responding</Badge>
              ) : (
                <Badge tone={status === 'ok' ? 'success' : 'error'}>{status}</Badge>
              )}
            </p>
            <DescriptionList
              items={[
                ['Database', dependencyStates[supabase] ?? supabase],
                ['Cache', dependencyStates[redis] ?? redis],
              ]}
            />
          </>
        )}
      </QueryResult>
    </Card>
  )
}
