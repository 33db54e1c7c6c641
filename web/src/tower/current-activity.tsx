import { useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Age, Countdown } from '../components/countdown.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Badge, Card, Id } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { outcomeTones } from '../runs/run-outcomes.ts'
import { PreauthRows } from './preauths-section.tsx'

const ROWS = 8

/** The newest rows of the list of runs. */
export function NewestRunsCard() {
  const runs = useQuery({
    queryKey: [ACCOUNT_KEY, 'runs', 'newest'],
    queryFn: () => api.get('/api/runs', { query: { limit: ROWS } }),
  })
  return (
    <Card title="Runs as they happen" note={<a href={routeHref(['account', 'runs'])}>All runs</a>}>
      <QueryResult query={runs}>
        {({ runs: rows }) => (
          <Table
            label="Newest runs"
            columns={[
              {
                name: 'Run',
                render: ({ run_id }) => (
                  <a href={routeHref(['account', 'runs', run_id])}>
                    <Id value={run_id} />
                  </a>
                ),
              },
              {
                name: 'Outcome',
                render: ({ outcome }) => <Badge tone={outcomeTones[outcome] ?? 'neutral'}>{outcome}</Badge>,
              },
              { name: 'Agent', render: ({ agent_id }) => agent_id },
              { name: 'Began', render: ({ created_at }) => <Age at={created_at} /> },
            ]}
            rows={rows}
            rowKey={({ run_id }) => run_id}
            empty={
              <>
                No runs yet. <a href={routeHref(['playground'])}>Make the first one in the playground</a>.
              </>
            }
          />
        )}
      </QueryResult>
    </Card>
  )
}

type Waiting = { id: string; what: string; amount: number; expires: string | null; kind: string }

/** Approvals and trades that wait for somebody, those that expire first at the top. */
export function DecisionsCard() {
  const waiting = useQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', 'waiting-rows'],
    queryFn: async () => {
      const [{ approvals }, { runs }] = await Promise.all([
        api.get('/api/approvals', { query: { status: 'pending', limit: 50 } }),
        api.get('/api/rh/runs', { query: { status: 'pending_approval', limit: 50 } }),
      ])
      return [
        ...approvals.map(
          (one): Waiting => ({
            id: one.approval_id,
            what: `${one.agent_id}: ${one.action}`,
            amount: one.amount_usdc,
            expires: one.expires_at,
            kind: 'core',
          }),
        ),
        ...runs.map(
          (one): Waiting => ({
            id: one.run_id,
            what: `${one.agent_id ?? 'trade'}: ${one.side} ${one.quantity} ${one.symbol}`,
            amount: one.notional_usdc ?? 0,
            expires: one.expires_at,
            kind: 'brokerage',
          }),
        ),
      ].sort((a, b) => Date.parse(a.expires ?? '9999') - Date.parse(b.expires ?? '9999'))
    },
  })
  const inbox = routeHref(['account', 'approvals'], { status: 'pending' })
  return (
    <Card title="Waiting for a decision" note={<a href={inbox}>Decide</a>}>
      <QueryResult query={waiting}>
        {(rows) => (
          <Table
            label="Waiting for a decision"
            columns={[
              { name: 'What', render: ({ what }) => <a href={inbox}>{what}</a>, wide: true },
              { name: 'Kind', render: ({ kind }) => kind },
              { name: 'Amount', render: ({ amount }) => formatUsdc(amount), numeric: true },
              {
                name: 'Time left',
                render: ({ expires }) => (expires ? <Countdown until={expires} overText="expired" /> : 'no end'),
              },
            ]}
            rows={rows.slice(0, ROWS)}
            rowKey={({ id }) => id}
            empty="Nothing waits. What a policy sends to a person appears here."
          />
        )}
      </QueryResult>
    </Card>
  )
}

/** Payments that were allowed and not reported yet, the oldest first. */
export function PreauthsCard() {
  const preauths = useQuery({
    queryKey: [ACCOUNT_KEY, 'preauths', 'unclosed'],
    queryFn: async () => {
      const [escalated, active] = await Promise.all([
        api.get('/api/pre-auth', { query: { status: 'escalated', limit: 50 } }),
        api.get('/api/pre-auth', { query: { status: 'active', limit: 50 } }),
      ])
      return [...escalated.preauths, ...active.preauths].sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
    },
  })
  return (
    <Card
      title="Pre-authorisations by age"
      note={<a href={routeHref(['account', 'preauths'])}>All pre-authorisations</a>}
    >
      <QueryResult query={preauths}>
        {(rows) => (
          <PreauthRows preauths={rows.slice(0, ROWS)} empty="No payment is open: every pre-authorisation was closed." />
        )}
      </QueryResult>
    </Card>
  )
}
