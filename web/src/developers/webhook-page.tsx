import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { mayControl } from '../account/permissions.ts'
import type { SectionProps } from '../account/section-props.ts'
import { ACCOUNT_KEY, api, hasStatus } from '../api.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CopyButton } from '../components/copy-button.tsx'
import { QueryResult } from '../components/query-result.tsx'
import { SecretNotice } from '../components/secret-notice.tsx'
import { Badge, Card, DescriptionList, Id, MutedText, Timestamp } from '../components/ui.tsx'
import { formatCount, formatLocalTime } from '../format.ts'
import { navigate, routeHref } from '../route.ts'
import { DeliveriesCard } from './deliveries-card.tsx'
import { useOverlap } from './overlap-select.tsx'
import { VerificationCodeCard } from './verification-code-card.tsx'
import { WebhookForm } from './webhook-form.tsx'
import { describeWebhookState, type Webhook } from './webhook-state.ts'
import { WebhookTestCard } from './webhook-test-card.tsx'

type Props = Pick<SectionProps, 'me'> & { id: string; query: URLSearchParams }

export function WebhookPage({ me, id, query }: Props) {
  const webhook = useQuery({
    queryKey: [ACCOUNT_KEY, 'webhooks', 'one', id],
    queryFn: () => api.get('/api/webhooks/{id}', { path: { id } }),
  })
  if (hasStatus(webhook.error, 404) && !webhook.data)
    return (
      <Card title="Not found">
        <MutedText>
          There is no webhook <Id value={id} full />. It may have been deleted.{' '}
          <a href={routeHref(['account', 'webhooks'])}>All webhooks</a>
        </MutedText>
      </Card>
    )
  return (
    <>
      <p>
        <a href={routeHref(['account', 'webhooks'])}>All webhooks</a>
      </p>
      <QueryResult query={webhook}>
        {(current) => (
          <>
            <WebhookCard webhook={current} mayChange={mayControl(me)} />
            {mayControl(me) && <WebhookTestCard webhook={current} />}
            <DeliveriesCard webhook={current} mayChange={mayControl(me)} query={query} />
            <VerificationCodeCard />
          </>
        )}
      </QueryResult>
    </>
  )
}

function WebhookCard({ webhook, mayChange }: { webhook: Webhook; mayChange: boolean }) {
  const [isEditing, setEditing] = useState(false)
  const [rotation, setRotation] = useState<{ secret: string; until: string }>()
  const { id, url, events, is_active, disabled_at, failing_since } = webhook
  const { tone, label } = describeWebhookState(webhook)
  return (
    <>
      {rotation && (
        <SecretNotice
          title="The new signing secret"
          label="the new signing secret"
          secret={rotation.secret}
          onDismiss={() => setRotation(undefined)}
        >
          Give it to the receiver. Until {formatLocalTime(rotation.until)} every delivery is signed with both secrets;
          then only with this one. It is shown only here and only once.
        </SecretNotice>
      )}
      <Card title="Webhook" note={<Badge tone={tone}>{label}</Badge>}>
        <DescriptionList
          items={[
            ['Address', <code key="url" className="wrap">{`${url}`}</code>],
            ['Events', events.includes('*') ? 'all' : events.join(', ')],
            ['Id', <IdWithCopy key="id" id={id} />],
            ['Sent', formatCount(webhook.last_seq)],
            ['Failing since', failing_since && <Timestamp key="failing" at={failing_since} />],
            ['Switched off', disabled_at && <Timestamp key="disabled" at={disabled_at} />],
            ['Created', <Timestamp key="created" at={webhook.created_at} />],
          ]}
        />
        {mayChange ? (
          <div className="row">
            <ActionButton
              className="secondary"
              action={() => api.patch('/api/webhooks/{id}', { path: { id }, body: { is_active: !is_active } })}
            >
              {is_active ? 'Switch off' : 'Switch on'}
            </ActionButton>
            <button type="button" className="secondary" onClick={() => setEditing(!isEditing)}>
              {isEditing ? 'Close the form' : 'Change'}
            </button>
            <RotateSecretButton id={id} onRotation={setRotation} />
            <ConfirmButton
              title="Delete this webhook?"
              text={`Nothing more is sent to ${url}, its deliveries can no longer be seen, and its secret is erased. It cannot be undone.`}
              confirmLabel="Delete webhook"
              action={async () => {
                await api.delete('/api/webhooks/{id}', { path: { id } })
                navigate(routeHref(['account', 'webhooks']))
              }}
            >
              Delete
            </ConfirmButton>
          </div>
        ) : (
          <MutedText>
            This key lacks the scope <code>control</code>, so it cannot change, test or replay.
          </MutedText>
        )}
        {isEditing && (
          <WebhookForm
            label="Change webhook"
            submitLabel="Save changes"
            draft={{ url, events }}
            action={(body) => api.patch('/api/webhooks/{id}', { path: { id }, body })}
            onDone={() => setEditing(false)}
          />
        )}
      </Card>
    </>
  )
}

const IdWithCopy = ({ id }: { id: string }) => (
  <>
    <Id value={id} full /> <CopyButton text={id} label="the id of the webhook" />
  </>
)

function RotateSecretButton({
  id,
  onRotation,
}: {
  id: string
  onRotation: (rotation: { secret: string; until: string }) => void
}) {
  const overlap = useOverlap('Both secrets sign for')
  return (
    <ConfirmButton
      className="secondary"
      title="Rotate the signing secret?"
      text={
        <>
          <p>A new secret is shown once. During the overlap both sign, so that the receiver can switch in peace.</p>
          {overlap.select}
        </>
      }
      confirmLabel="Rotate secret"
      action={async () => {
        const { signingSecret, earlier_secret_valid_until } = await api.post('/api/webhooks/{id}/rotate-secret', {
          path: { id },
          body: { overlap_seconds: overlap.seconds },
        })
        onRotation({ secret: signingSecret, until: earlier_secret_valid_until })
        scrollTo(0, 0)
      }}
    >
      Rotate secret
    </ConfirmButton>
  )
}
