import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api } from '../api.ts'
import { FilterForm, Select } from '../components/form-fields.tsx'
import { Pager, usePagination } from '../components/pagination.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SecretNotice } from '../components/secret-notice.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, MutedText } from '../components/ui.tsx'
import { formatCount } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { DeliveryPage } from './delivery-page.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { WebhookPage } from './webhook-page.tsx'
import { describeWebhookState, type Webhook } from './webhook-state.ts'

/** `#/account/webhooks`, `#/account/webhooks/<webhook>` and `#/account/webhooks/<webhook>/<delivery>`. */
export function WebhooksSection({ me, route }: SectionProps) {
  const [, id, deliveryId] = route.segments
  if (id && deliveryId) return <DeliveryPage me={me} id={id} deliveryId={deliveryId} />
  return id ? <WebhookPage key={id} me={me} id={id} query={route.query} /> : <WebhookList me={me} query={route.query} />
}

const statuses = ['active', 'failing'] as const

function WebhookList({ me, query }: Pick<SectionProps, 'me'> & { query: URLSearchParams }) {
  const status = statuses.find((name) => name === query.get('status'))
  const pagination = usePagination(status ?? '')
  const [created, setCreated] = useState<{ url: string; secret: string }>()
  const webhooks = useQuery({
    queryKey: [ACCOUNT_KEY, 'webhooks', status, pagination.cursor],
    queryFn: () => api.get('/api/webhooks', { query: { status, limit: 25, cursor: pagination.cursor } }),
    placeholderData: keepPreviousData,
  })
  return (
    <>
      {created && (
        <SecretNotice
          title="The signing secret"
          label="the signing secret"
          secret={created.secret}
          onDismiss={() => setCreated(undefined)}
        >
          The receiver at <code className="wrap">{created.url}</code> needs it to verify what it gets. It is shown only
          here and only once.
        </SecretNotice>
      )}
      <Card title="Webhooks" note="Signed as Standard Webhooks">
        <FilterForm key={status} onApply={(values) => navigate(routeHref(['account', 'webhooks'], values))}>
          <Select label="State" name="status" value={status} options={statuses} emptyLabel="any state" />
        </FilterForm>
        <QueryResult query={webhooks}>
          {({ subscriptions, next_cursor }) => (
            <>
              <Table
                label="Webhooks"
                columns={columns}
                rows={subscriptions}
                rowKey={({ id }) => id}
                empty={
                  status
                    ? `No webhook is ${status}.`
                    : mayControl(me)
                      ? 'There are no webhooks. Create one below, and your systems hear of runs, approvals and payments by themselves.'
                      : 'There are no webhooks.'
                }
              />
              <Pager pagination={pagination} next={next_cursor} />
            </>
          )}
        </QueryResult>
      </Card>
      <Card title="Create a webhook">
        {mayControl(me) ? (
          <WebhookForm
            label="New webhook"
            submitLabel="Create webhook"
            // The answer has the secret, which no cache may hold.
            action={async (body) => {
              const { url, signingSecret } = await api.post('/api/webhooks', { body })
              setCreated({ url, secret: signingSecret })
            }}
            onDone={() => scrollTo(0, 0)}
          />
        ) : (
          <MutedText>
            This key lacks the scope <code>control</code>, so it cannot create or change webhooks.
          </MutedText>
        )}
      </Card>
    </>
  )
}

const columns: Column<Webhook>[] = [
  {
    name: 'Address',
    render: ({ id, url }) => (
      <a href={routeHref(['account', 'webhooks', id])}>
        <code className="wrap">{url}</code>
      </a>
    ),
    wide: true,
  },
  {
    name: 'State',
    render: (webhook) => {
      const { tone, label } = describeWebhookState(webhook)
      return <Badge tone={tone}>{label}</Badge>
    },
  },
  {
    name: 'Events',
    render: ({ events }) => (events.includes('*') ? 'all' : events.join(', ')),
    wide: true,
  },
  { name: 'Sent', render: ({ last_seq }) => formatCount(last_seq), numeric: true },
]
