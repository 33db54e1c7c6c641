import type { Answer } from '@countersign/sdk'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { ActionButton } from '../parts/action.tsx'
import { milliseconds, NONE } from '../parts/format.ts'
import { Loaded } from '../parts/loaded.tsx'
import { Pager, usePages } from '../parts/pages.tsx'
import { Card, Id, Mark, When } from '../parts/parts.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { ACCOUNT, service } from '../service.ts'
import { mayControl, type PartProps } from './account-page.tsx'

type Webhook = Answer<'/api/webhooks', 'get'>['subscriptions'][number]
type Delivery = Answer<'/api/webhooks/{id}/deliveries', 'get'>['deliveries'][number]

export function WebhooksPart({ me }: PartProps) {
  const pages = usePages('')
  const [opened, setOpened] = useState<string>()
  const webhooks = useQuery({
    queryKey: [ACCOUNT, 'webhooks', pages.cursor],
    queryFn: () => service.get('/api/webhooks', { query: { limit: 25, cursor: pages.cursor } }),
    placeholderData: keepPreviousData,
  })
  const columns = [...columnsOf((id) => setOpened(id)), ...(mayControl(me) ? [actions] : [])]
  return (
    <>
      <Card title="Webhooks" note="Signed as Standard Webhooks">
        <Loaded query={webhooks}>
          {({ subscriptions, next_cursor }) => (
            <>
              <Table
                label="Webhooks"
                columns={columns}
                rows={subscriptions}
                rowKey={({ id }) => id}
                empty="There are no subscriptions: POST /api/webhooks makes one and shows its secret once."
              />
              <Pager pages={pages} next={next_cursor} />
            </>
          )}
        </Loaded>
      </Card>
      {opened && <Deliveries id={opened} />}
    </>
  )
}

function stateOf({ is_active, disabled_reason, failing_since }: Webhook) {
  if (!is_active) return <Mark tone="plain">{disabled_reason ? `off: ${disabled_reason}` : 'off'}</Mark>
  return failing_since ? <Mark tone="bad">failing</Mark> : <Mark tone="good">active</Mark>
}

const columnsOf = (open: (id: string) => void): Column<Webhook>[] => [
  { name: 'Address', show: ({ url }) => <code className="wrap">{url}</code>, wide: true },
  { name: 'State', show: stateOf },
  { name: 'Events', show: ({ events }) => events.join(', '), wide: true },
  { name: 'Sent', show: ({ last_seq }) => last_seq, number: true },
  {
    name: 'Deliveries',
    show: ({ id }) => (
      <button type="button" className="link" onClick={() => open(id)}>
        Show
      </button>
    ),
  },
]

const actions: Column<Webhook> = {
  name: 'Action',
  show: ({ id, is_active }) => (
    <div className="row">
      <ActionButton
        className="quiet"
        act={() => service.patch('/api/webhooks/{id}', { path: { id }, body: { is_active: !is_active } })}
      >
        {is_active ? 'Switch off' : 'Switch on'}
      </ActionButton>
      {is_active && (
        <ActionButton className="quiet" act={() => service.post('/api/webhooks/{id}/test', { path: { id }, body: {} })}>
          Send a test
        </ActionButton>
      )}
    </div>
  ),
}

function Deliveries({ id }: { id: string }) {
  const pages = usePages(id)
  const deliveries = useQuery({
    queryKey: [ACCOUNT, 'deliveries', id, pages.cursor],
    queryFn: () =>
      service.get('/api/webhooks/{id}/deliveries', { path: { id }, query: { limit: 20, cursor: pages.cursor } }),
  })
  return (
    <Card title="Deliveries" note={<Id value={id} />}>
      <Loaded query={deliveries}>
        {({ deliveries: list, next_cursor }) => (
          <>
            <Table
              label="Deliveries"
              columns={deliveryColumns}
              rows={list}
              rowKey={({ id: delivery }) => delivery}
              empty="Nothing was sent yet."
            />
            <Pager pages={pages} next={next_cursor} />
          </>
        )}
      </Loaded>
    </Card>
  )
}

const tones = { delivered: 'good', pending: 'plain', exhausted: 'bad' } as const

const deliveryColumns: Column<Delivery>[] = [
  { name: 'Nr.', show: ({ seq }) => seq, number: true },
  { name: 'Event', show: ({ type }) => type },
  { name: 'State', show: ({ state }) => <Mark tone={tones[state]}>{state}</Mark> },
  { name: 'Tries', show: ({ attempts }) => attempts, number: true },
  { name: 'Answer', show: ({ last_status, last_error }) => last_status ?? last_error ?? NONE, wide: true },
  { name: 'Took', show: ({ last_ms }) => milliseconds(last_ms), number: true },
  { name: 'Next try', show: ({ next_attempt_at }) => (next_attempt_at ? <When at={next_attempt_at} /> : NONE) },
]
