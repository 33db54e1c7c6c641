import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullable, nullableText, timestamp } from '../../platform/schema.ts'
import { eventTypes } from './event-types.ts'
import { MAX_URL_LENGTH } from './target-url.ts'

const nullableInteger = nullable(Type.Integer())
const nullableTime = nullable(timestamp)
const IdempotencyKey = Type.Optional(Type.String({ maxLength: 255 }))

const Url = Type.String({
  minLength: 1,
  maxLength: MAX_URL_LENGTH,
  description: 'https only; it must lead to a public address. In development http to this machine is allowed too.',
})
const Events = Type.Array(Type.String({ maxLength: 80 }), {
  minItems: 1,
  maxItems: 100,
  description: `One or more of ${eventTypes.join(', ')}; * subscribes to all of them.`,
})

export const WebhookCreate = Type.Object(
  { url: Url, events: Events, idempotency_key: IdempotencyKey },
  { title: 'WebhookCreate', additionalProperties: false },
)

export const WebhookUpdate = Type.Object(
  { is_active: Type.Optional(Type.Boolean()), url: Type.Optional(Url), events: Type.Optional(Events) },
  {
    title: 'WebhookUpdate',
    additionalProperties: true,
    description: 'Other properties are accepted and change nothing.',
  },
)

const subscriptionFields = {
  id: Type.String(),
  url: Type.String(),
  events: Type.Array(Type.String()),
  is_active: Type.Boolean(),
  disabled_reason: Type.Union([Type.Literal('gone'), Type.Literal('exhausted'), Type.Null()]),
  disabled_at: nullableTime,
  failing_since: nullableTime,
  last_seq: Type.Integer(),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
}

const SigningSecret = Type.String({ description: 'whsec_ and base64; shown once, encrypted at rest.' })

export const WebhookSubscription = Type.Object(subscriptionFields, { title: 'WebhookSubscription' })
export const WebhookCreated = Type.Object(
  { ...subscriptionFields, signingSecret: SigningSecret },
  { title: 'WebhookCreated' },
)
export const SecretRotated = Type.Object(
  {
    ...subscriptionFields,
    signingSecret: SigningSecret,
    earlier_secret_valid_until: Type.String({ format: 'date-time' }),
  },
  { title: 'WebhookSecretRotated' },
)

const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100 }))

export const WebhooksQuery = Type.Object(
  {
    limit,
    cursor: cursorParameter('whk'),
    status: Type.Optional(
      Type.Union([Type.Literal('active'), Type.Literal('failing')], {
        description:
          'active: switched on. failing: its last delivery failed, or failures have switched it off. One may be both.',
      }),
    ),
  },
  { additionalProperties: false },
)
export const WebhooksResponse = Type.Object(
  { subscriptions: Type.Array(WebhookSubscription), ...pageFields },
  { title: 'WebhooksResponse' },
)
export const WebhookDeleted = Type.Object({ id: Type.String(), deleted: Type.Boolean() }, { title: 'WebhookDeleted' })

export const SecretRotate = Type.Object(
  {
    overlap_seconds: Type.Optional(Type.Integer({ minimum: 0, maximum: 7 * 24 * 60 * 60 })),
    idempotency_key: IdempotencyKey,
  },
  { title: 'WebhookSecretRotate', additionalProperties: false },
)

/** The body of POSTs that take nothing but an idempotency key. */
export const EmptyRequest = Type.Object(
  { idempotency_key: IdempotencyKey },
  { title: 'DeliveryRequest', additionalProperties: false },
)

export const TestSent = Type.Object({ event_id: Type.String(), type: Type.String() }, { title: 'WebhookTestSent' })

const State = Type.Union([Type.Literal('pending'), Type.Literal('delivered'), Type.Literal('exhausted')])

const Attempt = Type.Object({
  at: Type.String(),
  status: nullableInteger,
  error: nullableText,
  ms: Type.Integer(),
  timestamp: nullable(Type.Integer({ description: 'webhook-timestamp as sent.' })),
  signature: nullable(Type.String({ description: 'webhook-signature as sent.' })),
  answer: nullable(Type.String({ description: 'The first 500 bytes of the response.' })),
})

const deliveryFields = {
  id: Type.String(),
  event_id: Type.String({ description: 'What the target sees as webhook-id.' }),
  type: Type.String(),
  seq: Type.Integer(),
  state: State,
  attempts: Type.Integer(),
  last_status: nullableInteger,
  last_error: nullableText,
  last_ms: nullableInteger,
  last_attempt_at: nullableTime,
  next_attempt_at: nullableTime,
  history: Type.Array(Attempt, { description: 'The last 20 attempts, oldest first.' }),
  created_at: Type.String({ format: 'date-time' }),
  delivered_at: nullableTime,
}

export const Delivery = Type.Object(deliveryFields, { title: 'WebhookDelivery' })

export const DeliveryDetail = Type.Object(
  {
    ...deliveryFields,
    request: Type.Object(
      {
        method: Type.Literal('POST'),
        url: Type.String({ description: 'Where the subscription leads now.' }),
        headers: Type.Record(Type.String(), Type.String(), {
          description: 'Of the last attempt, with its time and signature; before the first attempt without them.',
        }),
        body: Type.String({ description: 'The exact text that is sent and signed, the same on every attempt.' }),
      },
      { description: 'What is sent. The signing secret is never part of it.' },
    ),
  },
  { title: 'WebhookDeliveryDetail' },
)

export const EventTypesResponse = Type.Object(
  { event_types: Type.Array(Type.Object({ type: Type.String(), description: Type.String() })) },
  { title: 'WebhookEventTypes' },
)

export const DeliveriesQuery = Type.Object(
  { limit, cursor: cursorParameter('dlv'), state: Type.Optional(State) },
  { additionalProperties: false },
)
export const DeliveriesResponse = Type.Object(
  { deliveries: Type.Array(Delivery), ...pageFields },
  { title: 'WebhookDeliveriesResponse' },
)

export const WaitingDeliveriesQuery = Type.Object(
  { limit, cursor: cursorParameter('dlv') },
  { additionalProperties: false },
)
export const WaitingDeliveriesResponse = Type.Object(
  {
    deliveries: Type.Array(
      Type.Object({ webhook_id: Type.String(), ...Delivery.properties }, { title: 'WaitingDelivery' }),
    ),
    ...pageFields,
  },
  { title: 'WaitingDeliveriesResponse' },
)

export const WebhookParams = Type.Object({ id: Type.String({ maxLength: 64 }) })
export const DeliveryParams = Type.Object({
  id: Type.String({ maxLength: 64 }),
  delivery_id: Type.String({ maxLength: 64 }),
})
