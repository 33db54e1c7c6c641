import { type Answer, CountersignError } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { count, milliseconds, percent, usdc } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Card, Facts, Id, Mark, Title } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { link } from '../route.ts'
import { isStatus, service, useLanes } from '../service.ts'
import { LogCard } from './log-card.tsx'

type Health = Answer<'/api/health', 'get'>
type Lane = Answer<'/api/agents', 'get'>['agents'][number]

export function OverviewPage() {
  const lanes = useLanes()
  return (
    <>
      <Title>Overview</Title>
      <div className="two">
        <HealthCard />
        <LogCard />
      </div>
      <Card title="Lanes" note="Prices and statistics as they are now">
        <Loaded query={lanes}>
          {({ agents }) => (
            <Table
              label="Lanes"
              columns={columns}
              rows={agents}
              rowKey={({ agent_id }) => agent_id}
              empty="There are no lanes."
            />
          )}
        </Loaded>
      </Card>
    </>
  )
}

const columns: Column<Lane>[] = [
  {
    name: 'Lane',
    show: ({ agent_id }) => (
      <a href={link(['receipts'], { agent_id })} title="Receipts of this lane">
        <Id value={agent_id} />
      </a>
    ),
  },
  { name: 'Status', show: ({ status }) => <Mark tone={status === 'active' ? 'good' : 'warn'}>{status}</Mark> },
  { name: 'For', show: ({ recommended_use }) => recommended_use, wide: true },
  { name: 'Price a run', show: ({ price_usdc }) => usdc(price_usdc), number: true },
  { name: 'Runs', show: ({ stats }) => count(stats.runs), number: true },
  { name: 'Success', show: ({ stats }) => percent(stats.success_rate), number: true },
  { name: 'p50', show: ({ stats }) => milliseconds(stats.p50_ms), number: true },
  { name: 'p95', show: ({ stats }) => milliseconds(stats.p95_ms), number: true },
]

/** A degraded service answers 503 with its report, which is what the reader came for. */
async function readHealth(): Promise<Health> {
  try {
    return await service.get('/api/health')
  } catch (error) {
    if (error instanceof CountersignError && error.body.status === 'degraded') return error.body as Health
    throw error
  }
}

const words: Record<string, string> = {
  ok: 'reachable',
  embedded: 'embedded, reachable',
  not_configured: 'not configured',
  unreachable: 'unreachable',
}

function HealthCard() {
  const health = useQuery({ queryKey: ['health'], queryFn: readHealth })
  return (
    <Card title="Health">
      <Loaded query={health}>
        {({ status, supabase, redis }) => (
          <>
            <p>
              {isStatus(health.error, 0) ? (
                <Mark tone="bad">does not answer</Mark>
              ) : (
                <Mark tone={status === 'ok' ? 'good' : 'bad'}>{status}</Mark>
              )}
            </p>
            <Facts
              facts={[
                ['Database', words[supabase] ?? supabase],
                ['Cache', words[redis] ?? redis],
              ]}
            />
          </>
        )}
      </Loaded>
    </Card>
  )
}
