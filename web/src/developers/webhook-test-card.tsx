import { useMutation, useQuery } from '@tanstack/react-query'
import { ACCOUNT_KEY, api } from '../api.ts'
import { Badge, Card, DescriptionList, ErrorMessage, MutedText, Timestamp } from '../components/ui.tsx'
import { formatMilliseconds } from '../format.ts'
import { routeHref } from '../route.ts'
import { type Delivery, describeDeliveryState } from './delivery-state.ts'
import type { Webhook } from './webhook-state.ts'

const POLL_MS = 700

/** Sends a test and waits for its outcome: the first attempt says what the receiver answers. */
export function WebhookTestCard({ webhook: { id, is_active } }: { webhook: Webhook }) {
  const sendTest = useMutation({
    mutationFn: () => api.post('/api/webhooks/{id}/test', { path: { id }, body: {} }),
  })
  const eventId = sendTest.data?.event_id
  const delivery = useQuery({
    queryKey: [ACCOUNT_KEY, 'deliveries', id, 'test', eventId],
    enabled: eventId !== undefined,
    queryFn: async () => {
      const { deliveries } = await api.get('/api/webhooks/{id}/deliveries', { path: { id }, query: { limit: 20 } })
      return deliveries.find(({ event_id }) => event_id === eventId) ?? null
    },
    refetchInterval: ({ state }) => (isAttempted(state.data) ? 5_000 : POLL_MS),
  })
  const isWaiting = sendTest.isPending || (eventId !== undefined && !isAttempted(delivery.data))
  return (
    <Card title="Test" note="Sends the event webhook.test, whatever it subscribes to">
      {is_active ? (
        <button type="button" className="secondary" disabled={isWaiting} onClick={() => sendTest.mutate()}>
          {isWaiting ? 'Waiting for the answer…' : 'Send a test'}
        </button>
      ) : (
        <MutedText>Switch the webhook on to test it.</MutedText>
      )}
      {sendTest.error && <ErrorMessage>{sendTest.error.message}</ErrorMessage>}
      <div role="status">{isAttempted(delivery.data) && <TestOutcome id={id} delivery={delivery.data} />}</div>
    </Card>
  )
}

const isAttempted = (delivery: Delivery | null | undefined): delivery is Delivery => (delivery?.attempts ?? 0) > 0

function TestOutcome({ id, delivery }: { id: string; delivery: Delivery }) {
  const attempt = delivery.history.at(-1)
  const { tone, label } = describeDeliveryState(delivery)
  return (
    <>
      <p>
        <Badge tone={tone}>{label}</Badge>
      </p>
      <DescriptionList
        items={[
          ['Status', delivery.last_status ?? delivery.last_error],
          ['Time', formatMilliseconds(delivery.last_ms)],
          ['Answer', attempt?.answer && <code className="wrap">{attempt.answer}</code>],
          ['At', attempt && <Timestamp key="at" at={attempt.at} />],
        ]}
      />
      <a href={routeHref(['account', 'webhooks', id, delivery.id])}>What was sent</a>
    </>
  )
}
