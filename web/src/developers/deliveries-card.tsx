import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ACCOUNT_KEY, api } from '../api.ts'
import { useAction } from '../components/action-button.tsx'
import { Field, FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, ErrorMessage, Timestamp } from '../components/ui.tsx'
import { formatMilliseconds, NO_VALUE } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { type Delivery, deliveryStates, describeDeliveryState, findFailedSince } from './delivery-state.ts'
import type { Webhook } from './webhook-state.ts'

const MAX_REPLAYS = 500

type Props = { webhook: Webhook; mayChange: boolean; query: URLSearchParams }

export function DeliveriesCard({ webhook: { id, is_active }, mayChange, query }: Props) {
  const state = deliveryStates.find((name) => name === query.get('state'))
  const pagination = usePagination(`${id} ${state}`)
  const deliveries = useQuery({
    queryKey: [ACCOUNT_KEY, 'deliveries', id, state, pagination.cursor],
    queryFn: () =>
      api.get('/api/webhooks/{id}/deliveries', {
        path: { id },
        query: { limit: 20, state, cursor: pagination.cursor },
      }),
    placeholderData: keepPreviousData,
    refetchInterval: 5_000,
  })
  return (
    <Card title="Deliveries" note="Newest first, for 30 days">
      <FilterForm key={state} onApply={(values) => navigate(routeHref(['account', 'webhooks', id], values))}>
        <Select label="State" name="state" value={state} options={deliveryStates} emptyLabel="any state" />
      </FilterForm>
      <QueryResult query={deliveries}>
        {({ deliveries: deliveryList, next_cursor }) => (
          <>
            <Table
              label="Deliveries"
              columns={createColumns(id)}
              rows={deliveryList}
              rowKey={({ id: deliveryId }) => deliveryId}
              empty={
                state
                  ? 'No delivery is in this state.'
                  : 'No deliveries yet. The next event that it subscribes to is sent to it; a test is sent at once.'
              }
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
      {mayChange && is_active && <ReplayFailedForm id={id} />}
    </Card>
  )
}

const createColumns = (id: string): Column<Delivery>[] => [
  {
    name: '#',
    render: ({ seq, id: deliveryId }) => (
      <a href={routeHref(['account', 'webhooks', id, deliveryId])} aria-label={`Delivery ${seq}`}>
        {seq}
      </a>
    ),
    numeric: true,
  },
  { name: 'Event', render: ({ type }) => type },
  {
    name: 'State',
    render: (delivery) => {
      const { tone, label } = describeDeliveryState(delivery)
      return <Badge tone={tone}>{label}</Badge>
    },
  },
  { name: 'Attempts', render: ({ attempts }) => attempts, numeric: true },
  { name: 'Answer', render: ({ last_status, last_error }) => last_status ?? last_error ?? NO_VALUE, wide: true },
  { name: 'Duration', render: ({ last_ms }) => formatMilliseconds(last_ms), numeric: true },
  { name: 'Event at', render: ({ created_at }) => <Timestamp at={created_at} /> },
  {
    name: 'Next attempt',
    render: ({ next_attempt_at }) => (next_attempt_at ? <Timestamp at={next_attempt_at} /> : NO_VALUE),
  },
]

/** Sends all failed deliveries since a time again, one request each. */
function ReplayFailedForm({ id }: { id: string }) {
  const [progress, setProgress] = useState('')
  const replay = useAction(async (sinceMs: number) => {
    setProgress('Looking for failed deliveries…')
    const failed = await findFailedSince(
      (state, cursor) =>
        api.get('/api/webhooks/{id}/deliveries', { path: { id }, query: { state, cursor, limit: 100 } }),
      sinceMs,
      MAX_REPLAYS,
    )
    for (const [index, { id: delivery_id }] of failed.entries()) {
      setProgress(`Sending ${index + 1} of ${failed.length}…`)
      await api.post('/api/webhooks/{id}/deliveries/{delivery_id}/replay', { path: { id, delivery_id }, body: {} })
    }
    const more = failed.length === MAX_REPLAYS ? ' There may be more: replay again.' : ''
    setProgress(
      failed.length === 0 ? 'No delivery has failed since then.' : `${failed.length} deliveries are sent again.${more}`,
    )
  })
  return (
    <form
      className="filters"
      aria-label="Replay failed deliveries"
      onSubmit={(event) => {
        event.preventDefault()
        const since = String(new FormData(event.currentTarget).get('since'))
        replay.mutate(Date.parse(since))
      }}
    >
      <Field label="Replay all that failed since (your time)">
        {(fieldId) => <input id={fieldId} name="since" type="datetime-local" required />}
      </Field>
      <button type="submit" className="secondary" disabled={replay.isPending}>
        Replay failed
      </button>
      <span role="status">{replay.error ? '' : progress}</span>
      {replay.error && <ErrorMessage>{replay.error.message}</ErrorMessage>}
    </form>
  )
}
