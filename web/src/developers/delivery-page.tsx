import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { type Column, Table } from '../components/table.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, TextBlock, Timestamp } from '../components/ui.tsx'
import { formatMilliseconds, NO_VALUE } from '../format.ts'
import { routeHref } from '../route.ts'
import { describeDeliveryState } from './delivery-state.ts'
import { VerificationCodeCard } from './verification-code-card.tsx'

type DeliveryDetail = ApiResponse<'/api/webhooks/{id}/deliveries/{delivery_id}', 'get'>
type Attempt = DeliveryDetail['history'][number]
type Props = Pick<SectionProps, 'me'> & { id: string; deliveryId: string }

export function DeliveryPage({ me, id, deliveryId }: Props) {
  const path = { id, delivery_id: deliveryId }
  const delivery = useQuery({
    queryKey: [ACCOUNT_KEY, 'deliveries', id, 'one', deliveryId],
    queryFn: () => api.get('/api/webhooks/{id}/deliveries/{delivery_id}', { path }),
    refetchInterval: ({ state }) => (state.data?.state === 'pending' ? 1_500 : 15_000),
  })
  const backHref = routeHref(['account', 'webhooks', id])
  if (hasStatus(delivery.error, 404) && !delivery.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no delivery <Id value={deliveryId} full />; deliveries are kept for 30 days.{' '}
          <a href={backHref}>The webhook</a>
        </MutedText>
      </Card>
    )
  return (
    <>
      <p>
        <a href={backHref}>The webhook and its deliveries</a>
      </p>
      <QueryResult query={delivery}>
        {(current) => (
          <>
            <DeliveryCard delivery={current}>
              {mayControl(me) && (
                <ActionButton
                  className="secondary"
                  action={() => api.post('/api/webhooks/{id}/deliveries/{delivery_id}/replay', { path, body: {} })}
                >
                  Replay
                </ActionButton>
              )}
            </DeliveryCard>
            <RequestCard request={current.request} />
            <Card title="Attempts" note="The last 20, oldest first">
              <Table
                label="Attempts"
                columns={attemptColumns}
                rows={current.history}
                rowKey={({ at }) => at}
                empty="Not tried yet."
              />
            </Card>
            <VerificationCodeCard />
          </>
        )}
      </QueryResult>
    </>
  )
}

function DeliveryCard({ delivery, children }: { delivery: DeliveryDetail; children: React.ReactNode }) {
  const { tone, label } = describeDeliveryState(delivery)
  return (
    <Card title={`Delivery ${delivery.seq}`} note={<Badge tone={tone}>{label}</Badge>}>
      <DescriptionList
        items={[
          ['Event', delivery.type],
          [
            'webhook-id',
            <span key="id">
              <Id value={delivery.event_id} full /> <CopyButton text={delivery.event_id} label="the webhook-id" />
            </span>,
          ],
          ['Attempts', String(delivery.attempts)],
          ['Event at', <Timestamp key="created" at={delivery.created_at} />],
          ['Delivered', delivery.delivered_at && <Timestamp key="delivered" at={delivery.delivered_at} />],
          ['Next attempt', delivery.next_attempt_at && <Timestamp key="next" at={delivery.next_attempt_at} />],
        ]}
      />
      {children}
    </Card>
  )
}

function RequestCard({ request: { method, url, headers, body } }: Pick<DeliveryDetail, 'request'>) {
  const headerText = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')
  return (
    <Card title="Request" note="Headers as they were sent last; the body is the same on every attempt">
      <p>
        <code className="wrap">
          {method} {url}
        </code>
      </p>
      <div className="code-sample">
        <TextBlock label="Headers">{headerText}</TextBlock>
        <CopyButton text={headerText} label="the headers" />
      </div>
      <div className="code-sample">
        <TextBlock label="Body">{body}</TextBlock>
        <CopyButton text={body} label="the body" />
      </div>
    </Card>
  )
}

const attemptColumns: Column<Attempt>[] = [
  { name: 'At', render: ({ at }) => <Timestamp at={at} /> },
  {
    name: 'Status',
    render: ({ status, error }) => (
      <Badge tone={error === null ? 'success' : 'error'}>{status === null ? (error ?? NO_VALUE) : status}</Badge>
    ),
  },
  { name: 'Duration', render: ({ ms }) => formatMilliseconds(ms), numeric: true },
  { name: 'Answer', render: ({ answer }) => (answer ? <code className="wrap">{answer}</code> : NO_VALUE), wide: true },
  {
    name: 'Signature',
    render: ({ signature }) => (signature ? <code className="wrap">{signature}</code> : NO_VALUE),
    wide: true,
  },
]
