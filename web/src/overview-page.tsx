import { useQuery } from '@tanstack/react-query'
import { Card, Loaded, Mark, Table, usdc } from './parts.tsx'
import { service } from './service.ts'

const percent = (rate: number | null) => (rate === null ? '–' : `${(rate * 100).toFixed(1)} %`)
const milliseconds = (value: number | null) => (value === null ? '–' : `${value} ms`)

export function OverviewPage() {
  const health = useQuery({ queryKey: ['health'], queryFn: () => service.get('/api/health') })
  const agents = useQuery({ queryKey: ['agents'], queryFn: () => service.get('/api/agents') })
  return (
    <>
      <Card title="Health">
        <Loaded query={health}>
          {(report) => (
            <p>
              <Mark good={report.status === 'ok'}>{report.status}</Mark> database {report.supabase}, cache{' '}
              {report.redis}
            </p>
          )}
        </Loaded>
      </Card>
      <Card title="Lanes">
        <Loaded query={agents}>
          {({ agents: lanes }) => (
            <Table
              head={['Lane', 'Status', 'For', 'Price a run', 'Runs', 'Success', 'p50', 'p95']}
              empty="No lanes."
              rows={lanes.map((lane) => ({
                key: lane.agent_id,
                cells: [
                  <code key="id">{lane.agent_id}</code>,
                  <Mark key="status" good={lane.status === 'active'}>
                    {lane.status}
                  </Mark>,
                  lane.recommended_use,
                  usdc(lane.price_usdc),
                  lane.stats.runs,
                  percent(lane.stats.success_rate),
                  milliseconds(lane.stats.p50_ms),
                  milliseconds(lane.stats.p95_ms),
                ],
              }))}
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}
