import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { describeTradeState, type TradeRun } from '../approvals/inbox-item.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { Field } from '../components/form-fields.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp, type Tone } from '../components/ui.tsx'
import { formatUsdc } from '../format.ts'
import { routeHref } from '../route.ts'
import { InstrumentCard } from './instrument-card.tsx'
import { formatBps, formatUsd } from './trade-facts.ts'

const FINAL_STATES = ['executed', 'cancelled', 'rejected']

/** One trade: its order and risk, how it was judged and decided, its fills and receipts. */
export function TradePage({ id, canControl }: { id: string; canControl: boolean }) {
  const run = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', id],
    queryFn: () => api.get('/api/rh/runs/{id}', { path: { id } }),
    refetchInterval: ({ state }) => (state.data && FINAL_STATES.includes(state.data.status) ? 15_000 : 2_000),
  })
  if (hasStatus(run.error, 404) && !run.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no trade {id} in this organisation. <AllTrades />
        </MutedText>
      </Card>
    )
  return <QueryResult query={run}>{(data) => <TradeDetails run={data} canControl={canControl} />}</QueryResult>
}

const AllTrades = () => <a href={routeHref(['account', 'trades'])}>All trades</a>

function TradeDetails({ run, canControl }: { run: TradeRun; canControl: boolean }) {
  const { state, tone } = describeTradeState(run)
  const isOpen = !FINAL_STATES.includes(run.status)
  return (
    <>
      <Card title="Trade" note={<AllTrades />}>
        <p>
          <Badge tone={tone}>{state}</Badge>{' '}
          <strong>
            {run.side} {run.quantity} {run.symbol}, {formatUsdc(run.notional_usdc)}
          </strong>
        </p>
        {run.reason && <p>{run.reason}</p>}
        <InstrumentCard run={run} />
        <DescriptionList
          items={[
            [
              'Trade',
              <span key="id">
                <Id value={run.run_id} full /> <CopyButton text={run.run_id} label="the id of the trade" />
              </span>,
            ],
            ['Broker', `${run.broker} (${run.mode})`],
            ['Spender', run.spender],
            ['Team', run.team],
            ['Requested by', <Id key="by" value={run.key_id} full />],
            ['Mandate', run.mandate_id],
            ['Requested', <Timestamp key="at" at={run.created_at} />],
            ['Execute by', <Timestamp key="until" at={run.execute_by} />],
            ['Approved', run.approved_at && <Timestamp at={run.approved_at} />],
            ['Approved by', run.approved_by && <Id value={run.approved_by} full />],
            ['Ended', run.finished_at && <Timestamp at={run.finished_at} />],
            ['Ended by', run.ended_by && <Id value={run.ended_by} full />],
            [
              'Approval',
              run.approval && (
                <a href={routeHref(['account', 'approvals', run.run_id])}>
                  {run.status === 'pending_approval' ? 'Decide in the inbox' : 'In the inbox'}
                </a>
              ),
            ],
          ]}
        />
        {isOpen && (canControl ? <CancelButton id={run.run_id} /> : <MutedText>This API key cannot cancel.</MutedText>)}
      </Card>
      <Card title="Checks">
        <Table
          label="Checks"
          columns={checkColumns}
          rows={run.checks}
          rowKey={({ id }) => id}
          empty="No checks were recorded."
        />
      </Card>
      <Card title="Fills">
        <Table
          label="Fills"
          columns={fillColumns}
          rows={run.fills}
          rowKey={({ fill_id }) => fill_id}
          empty="No fills."
        />
      </Card>
      <ReceiptsCard ids={run.receipt_ids} />
    </>
  )
}

function CancelButton({ id }: { id: string }) {
  const [reason, setReason] = useState('')
  return (
    <ConfirmButton
      title="Cancel this trade?"
      text={
        <>
          <p>It is not sent to the broker; an order that the broker already has is stopped there.</p>
          <Field label="Reason (optional)">
            {(fieldId) => (
              <input id={fieldId} value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
            )}
          </Field>
        </>
      }
      confirmLabel="Cancel the trade"
      action={() =>
        api.post('/api/rh/runs/{id}/cancel', {
          path: { id },
          body: reason.trim() ? { reason: reason.trim() } : {},
        })
      }
    >
      Cancel this trade
    </ConfirmButton>
  )
}

const checkTones: Record<string, Tone> = { pass: 'success', review: 'warning', fail: 'error' }

const checkColumns: Column<TradeRun['checks'][number]>[] = [
  { name: 'Check', render: ({ id }) => <code>{id}</code> },
  { name: 'Result', render: ({ result }) => <Badge tone={checkTones[result] ?? 'neutral'}>{result}</Badge> },
  { name: 'Limit', render: ({ limit }) => describeValue(limit), wide: true },
  { name: 'Asked', render: ({ actual }) => describeValue(actual), wide: true },
  { name: 'Why', render: ({ reason }) => reason ?? '', wide: true },
]

const describeValue = (value: unknown): string =>
  value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value)

const fillColumns: Column<TradeRun['fills'][number]>[] = [
  { name: 'Fill', render: ({ fill_id }) => <Id value={fill_id} /> },
  { name: 'Quantity', render: ({ quantity }) => quantity, numeric: true },
  { name: 'Price', render: ({ price }) => formatUsd(price), numeric: true },
  { name: 'Fee', render: ({ fee }) => formatUsdc(fee), numeric: true },
  { name: 'When', render: ({ at }) => <Timestamp at={at} /> },
]

/** The newest receipt in figures, and each of them in the public log. */
function ReceiptsCard({ ids }: { ids: readonly string[] }) {
  const newestId = ids.at(-1)
  const receipt = useQuery({
    queryKey: [ACCOUNT_KEY, 'trades', 'receipt', newestId],
    queryFn: () => api.get('/api/rh/receipts/{id}', { path: { id: newestId! } }),
    enabled: newestId !== undefined,
    refetchInterval: false,
  })
  return (
    <Card title="Receipts">
      {newestId === undefined && <MutedText>No receipt yet.</MutedText>}
      {receipt.data && (
        <DescriptionList
          items={[
            ['Status', receipt.data.status],
            ['Average price', receipt.data.avg_price !== null && formatUsd(receipt.data.avg_price)],
            ['Fees', formatUsdc(receipt.data.fees)],
            ['Net', formatUsdc(receipt.data.net)],
            ['Slippage', receipt.data.slippage_bps !== null && formatBps(receipt.data.slippage_bps)],
          ]}
        />
      )}
      <ul className="plain-list">
        {ids.map((id) => (
          <li key={id}>
            <a href={routeHref(['receipts', `rcpt_${id}`])}>
              <Id value={`rcpt_${id}`} />
            </a>
          </li>
        ))}
      </ul>
    </Card>
  )
}
