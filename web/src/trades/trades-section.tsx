import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { describeTradeState, type TradeRun } from '../approvals/inbox-item.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { PositionsCard } from './positions-card.tsx'
import { TradePage } from './trade-page.tsx'

const statuses = ['pending_approval', 'approved', 'executing', 'executed', 'cancelled', 'rejected'] as const

export function TradesSection({ me, route }: SectionProps) {
  const [, id] = route.segments
  if (id !== undefined) return <TradePage id={id} canControl={mayControl(me)} />
  return (
    <>
      <KillSwitchCard canControl={mayControl(me)} />
      <TradeList query={route.query} />
      <PositionsCard />
    </>
  )
}

function TradeList({ query }: { query: URLSearchParams }) {
  const status = statuses.find((name) => name === query.get('status'))
  const spender = query.get('spender')?.trim() || undefined
  const pagination = usePagination(`${status} ${spender}`)
  const runs = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', 'list', status, spender, pagination.cursor],
    queryFn: () => api.get('/api/rh/runs', { query: { status, spender, limit: 20, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <Card title="Trades" note="Newest first">
      <FilterForm
        key={query.toString()}
        onApply={(values) => navigate(routeHref(['account', 'trades'], values))}
        hasButtons
      >
        <Select label="Status" name="status" value={status ?? ''} options={statuses} emptyLabel="any status" />
        <Field label="Spender">
          {(id) => <input id={id} name="spender" defaultValue={spender ?? ''} maxLength={200} />}
        </Field>
      </FilterForm>
      <QueryResult query={runs}>
        {(page) => (
          <>
            <Table
              label="Trades"
              columns={columns}
              rows={page.runs}
              rowKey={({ run_id }) => run_id}
              empty={
                status || spender ? (
                  'No trade fits these filters.'
                ) : (
                  <>
                    No trades yet. Agents trade with <code>POST /api/rh/run</code>: see <a href="/docs">the docs</a>.
                  </>
                )
              }
            />
            <Pager pagination={pagination} next={page.next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const columns: Column<TradeRun>[] = [
  {
    name: 'Trade',
    render: ({ run_id }) => (
      <a href={routeHref(['account', 'trades', run_id])}>
        <Id value={run_id} />
      </a>
    ),
  },
  {
    name: 'State',
    render: (run) => {
      const { state, tone } = describeTradeState(run)
      return (
        <>
          <Badge tone={tone}>{state}</Badge> {run.mode === 'live' && <Badge tone="neutral">live</Badge>}
        </>
      )
    },
  },
  { name: 'Order', render: ({ side, quantity, symbol }) => `${side} ${quantity} ${symbol}`, wide: true },
  { name: 'Notional', render: ({ notional_usdc }) => formatUsdc(notional_usdc), numeric: true },
  { name: 'Spender', render: ({ spender, key_id }) => spender ?? key_id, wide: true },
  { name: 'When', render: ({ created_at }) => <Timestamp at={created_at} /> },
]

function KillSwitchCard({ canControl }: { canControl: boolean }) {
  const [reason, setReason] = useState('')
  const killSwitch = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', 'kill-switch'],
    queryFn: () => api.get('/api/rh/kill-switch'),
  })
  const set = (engaged: boolean) =>
    api.post('/api/rh/kill-switch', { body: { engaged, ...(engaged && reason.trim() && { reason: reason.trim() }) } })
  return (
    <Card title="Kill switch">
      <QueryResult query={killSwitch}>
        {({ engaged, engaged_at, engaged_by, reason: engagedReason }) => (
          <>
            <p>
              <Badge tone={engaged ? 'error' : 'success'}>{engaged ? 'trading is off' : 'trading is on'}</Badge>{' '}
              {engaged_at && (
                <>
                  since <Timestamp at={engaged_at} />
                  {engaged_by && (
                    <>
                      , by <Id value={engaged_by} />
                    </>
                  )}
                  {engagedReason && <q className="vote-reason">{engagedReason}</q>}
                </>
              )}
            </p>
            {!canControl ? (
              <MutedText>This API key can view but not make changes.</MutedText>
            ) : engaged ? (
              <ConfirmButton
                className="secondary"
                title="Switch trading on again?"
                text="New trades are accepted. What was cancelled stays cancelled."
                confirmLabel="Switch on"
                action={() => set(false)}
              >
                Switch trading on
              </ConfirmButton>
            ) : (
              <ConfirmButton
                title="Switch all trading off?"
                text={
                  <>
                    <p>Trades that wait are cancelled, orders that work are stopped, and new trades are refused.</p>
                    <Field label="Reason (optional)">
                      {(id) => (
                        <input
                          id={id}
                          value={reason}
                          maxLength={500}
                          onChange={(event) => setReason(event.target.value)}
                        />
                      )}
                    </Field>
                  </>
                }
                confirmLabel="Switch off"
                action={() => set(true)}
              >
                Switch all trading off
              </ConfirmButton>
            )}
          </>
        )}
      </QueryResult>
    </Card>
  )
}
