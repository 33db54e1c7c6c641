import type { ApiResponse } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, Id, Timestamp } from '../components/ui.tsx'
import { formatMilliseconds, NO_VALUE } from '../format.ts'
import { describeWebhookState, type Webhook } from './webhook-state.ts'

type Delivery = ApiResponse<'/api/webhooks/{id}/deliveries', 'get'>['deliveries'][number]

export function WebhooksSection({ me }: SectionProps) {
  const pagination = usePagination('')
  const [selectedId, setSelectedId] = useState<string>()
  const webhooks = useQuery({
    queryKey: [ACCOUNT_KEY, 'webhooks', pagination.cursor],
    queryFn: () => api.get('/api/webhooks', { query: { limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  const columns = [...createColumns((id) => setSelectedId(id)), ...(mayControl(me) ? [actionColumn] : [])]
  return (
    <>
      <Card title="Webhooks" note="Signed as Standard Webhooks">
        <QueryResult query={webhooks}>
          {({ subscriptions, next_cursor }) => (
            <>
              <Table
                label="Webhooks"
                columns={columns}
                rows={subscriptions}
                rowKey={({ id }) => id}
                empty="There are no subscriptions. Create one with POST /api/webhooks; its secret is shown once."
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
      {selectedId && <Deliveries id={selectedId} />}
    </>
  )
}

const renderState = (webhook: Webhook) => {
  const { tone, label } = describeWebhookState(webhook)
  return <Badge tone={tone}>{label}</Badge>
}

const createColumns = (showDeliveries: (id: string) => void): Column<Webhook>[] => [
  { name: 'URL', render: ({ url }) => <code className="wrap">{url}</code>, wide: true },
  { name: 'State', render: renderState },
  { name: 'Events', render: ({ events }) => events.join(', '), wide: true },
  { name: 'Sent', render: ({ last_seq }) => last_seq, numeric: true },
  {
    name: 'Deliveries',
    render: ({ id }) => (
      <button type="button" className="link" onClick={() => showDeliveries(id)}>
        Show
      </button>
    ),
  },
]

const actionColumn: Column<Webhook> = {
  name: 'Action',
  render: ({ id, is_active }) => (
    <div className="row">
      <ActionButton
        className="secondary"
        action={() => api.patch('/api/webhooks/{id}', { path: { id }, body: { is_active: !is_active } })}
      >
        {is_active ? 'Switch off' : 'Switch on'}
      </ActionButton>
      {is_active && (
        <ActionButton
          className="secondary"
          action={() => api.post('/api/webhooks/{id}/test', { path: { id }, body: {} })}
        >
          Send a test
        </ActionButton>
      )}
    </div>
  ),
}

function Deliveries({ id }: { id: string }) {
  const pagination = usePagination(id)
  const deliveries = useQuery({
    queryKey: [ACCOUNT_KEY, 'deliveries', id, pagination.cursor],
    queryFn: () =>
      api.get('/api/webhooks/{id}/deliveries', { path: { id }, query: { limit: 20, cursor: pagination.cursor } }),
  })
  return (
    <Card title="Deliveries" note={<Id value={id} />}>
      <QueryResult query={deliveries}>
        {({ deliveries: deliveryList, next_cursor }) => (
          <>
            <Table
              label="Deliveries"
              columns={deliveryColumns}
              rows={deliveryList}
              rowKey={({ id: deliveryId }) => deliveryId}
              empty="No deliveries yet. The next event of a kind it subscribes to is sent to it."
            />
            <Pager pagination={pagination} next={next_cursor} />
          </>
        )}
      </QueryResult>
    </Card>
  )
}

const tones = { delivered: 'success', pending: 'neutral', exhausted: 'error' } as const

const deliveryColumns: Column<Delivery>[] = [
  { name: '#', render: ({ seq }) => seq, numeric: true },
  { name: 'Event', render: ({ type }) => type },
  { name: 'State', render: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
  { name: 'Attempts', render: ({ attempts }) => attempts, numeric: true },
  { name: 'Response', render: ({ last_status, last_error }) => last_status ?? last_error ?? NO_VALUE, wide: true },
  { name: 'Duration', render: ({ last_ms }) => formatMilliseconds(last_ms), numeric: true },
  {
    name: 'Next attempt',
    render: ({ next_attempt_at }) => (next_attempt_at ? <Timestamp at={next_attempt_at} /> : NO_VALUE),
  },
]
