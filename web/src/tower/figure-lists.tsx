import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { Table } from '../components/table.tsx'
import { Card, Id, Timestamp } from '../components/ui.tsx'
import { formatUsdc, NO_VALUE } from '../format.ts'
import { routeHref } from '../route.ts'

/** Deliveries of all webhooks that will still be tried. */
export function DeliveriesCard({ back }: { back: ReactNode }) {
  const pagination = usePagination('')
  const deliveries = useQuery({
    queryKey: [ACCOUNT_KEY, 'deliveries', 'waiting', pagination.cursor],
    queryFn: () => api.get('/api/webhook-deliveries', { query: { limit: 100, cursor: pagination.cursor } }),
  })
  return (
    <>
      {back}
      <Card title="Waiting deliveries" note="Of all active webhooks, newest first">
        <QueryResult query={deliveries}>
          {({ deliveries: rows, next_cursor }) => (
            <>
              <Table
                label="Waiting deliveries"
                columns={[
                  { name: 'Event', render: ({ type }) => type },
                  {
                    name: 'Webhook',
                    render: ({ webhook_id }) => (
                      <a href={routeHref(['account', 'webhooks', webhook_id])}>
                        <Id value={webhook_id} />
                      </a>
                    ),
                  },
                  { name: 'Attempts', render: ({ attempts }) => attempts, numeric: true },
                  { name: 'Last error', render: ({ last_error }) => last_error ?? NO_VALUE, wide: true },
                  {
                    name: 'Next attempt',
                    render: ({ next_attempt_at }) =>
                      next_attempt_at ? <Timestamp at={next_attempt_at} /> : 'under way',
                  },
                ]}
                rows={rows}
                rowKey={({ id }) => id}
                empty="Nothing waits: every delivery was made or given up."
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
    </>
  )
}

/** What was decided this month by the identity that had asked for it. */
export function SelfApprovedCard({ back }: { back: ReactNode }) {
  const decisions = useQuery({
    queryKey: [ACCOUNT_KEY, 'approvals', 'self-approved'],
    queryFn: () => api.get('/api/control-tower/self-approved', { query: { limit: 1_000 } }),
  })
  return (
    <>
      {back}
      <Card title="Decided by who asked" note="This month, newest first">
        <QueryResult query={decisions}>
          {({ decisions: rows }) => (
            <Table
              label="Decided by who asked"
              columns={[
                { name: 'Kind', render: ({ kind }) => kind },
                {
                  name: 'Decision',
                  render: ({ kind, id }) =>
                    kind === 'override' ? (
                      <Id value={id} />
                    ) : (
                      <a href={routeHref(['account', 'approvals', id])}>
                        <Id value={id} />
                      </a>
                    ),
                },
                { name: 'Agent', render: ({ agent_id }) => agent_id ?? NO_VALUE },
                {
                  name: 'Amount',
                  render: ({ amount_usdc }) => (amount_usdc === null ? NO_VALUE : formatUsdc(amount_usdc)),
                  numeric: true,
                },
                { name: 'When', render: ({ decided_at }) => <Timestamp at={decided_at} /> },
              ]}
              rows={rows}
              rowKey={({ id }) => id}
              empty="None this month: everything was decided by somebody else than who asked."
            />
          )}
        </QueryResult>
      </Card>
    </>
  )
}
