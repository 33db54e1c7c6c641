import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, nullableText, oneOf, timestamp } from '../../../platform/schema.ts'
import { Id, IdempotencyKey } from '../schema-helpers.ts'
import { MAX_RECIPIENTS } from './channels.ts'

const Name = Type.String({ minLength: 1, maxLength: 100 })
const Url = Type.String({
  minLength: 1,
  maxLength: 2048,
  description:
    'Of `slack` and `webhook`: https only; it must lead to a public address. In development http to this machine is allowed too.',
})
const NewRecipients = Type.Array(
  Type.Object(
    { email: Type.String({ minLength: 3, maxLength: 254 }), name: Type.Optional(Name) },
    { additionalProperties: false },
  ),
  { minItems: 1, maxItems: MAX_RECIPIENTS, description: 'Of `email`: who gets the messages.' },
)

export const ApprovalChannelCreate = Type.Object(
  {
    type: oneOf(['email', 'slack', 'webhook']),
    name: Type.Optional(Name),
    url: Type.Optional(Url),
    recipients: Type.Optional(NewRecipients),
    idempotency_key: IdempotencyKey,
  },
  { title: 'ApprovalChannelCreate', additionalProperties: false },
)

export const ApprovalChannelUpdate = Type.Object(
  {
    name: Type.Optional(Name),
    is_active: Type.Optional(Type.Boolean()),
    url: Type.Optional(Url),
    recipients: Type.Optional(NewRecipients),
  },
  {
    title: 'ApprovalChannelUpdate',
    additionalProperties: false,
    description:
      '`recipients` is the whole new list: who stays keeps the key that added them, who is new is added by your key, and the links of who is left out stop working. Another `url` is another recipient.',
  },
)

const channelFields = {
  id: Type.String(),
  type: oneOf(['email', 'slack', 'webhook']),
  name: Type.String(),
  is_active: Type.Boolean(),
  url: nullable(Type.String({ description: 'The path of a Slack address is a credential and is not shown.' })),
  recipients: Type.Array(
    Type.Object({
      id: Type.String(),
      email: nullable(Type.String({ description: 'Null for Slack and webhooks: whoever reads there.' })),
      name: nullableText,
      added_by: Type.String({ description: 'The key that counts as the same identity as this recipient.' }),
      created_at: timestamp,
    }),
  ),
  created_by: Type.String(),
  created_at: timestamp,
  updated_at: timestamp,
}

export const ApprovalChannel = Type.Object(channelFields, { title: 'ApprovalChannel' })
export const ApprovalChannelCreated = Type.Object(
  {
    ...channelFields,
    signingSecret: Type.Optional(
      Type.String({ description: 'Of a webhook: whsec_ and base64; shown once, encrypted at rest.' }),
    ),
  },
  { title: 'ApprovalChannelCreated' },
)

const limit = Type.Optional(Type.Integer({ minimum: 1, maximum: 100 }))

export const ApprovalChannelsQuery = Type.Object(
  { limit, cursor: cursorParameter('chn') },
  { additionalProperties: false },
)
export const ApprovalChannelsResponse = Type.Object(
  { channels: Type.Array(ApprovalChannel), ...pageFields },
  { title: 'ApprovalChannelsResponse' },
)
export const ApprovalChannelDeleted = Type.Object(
  { id: Type.String(), deleted: Type.Boolean() },
  { title: 'ApprovalChannelDeleted' },
)

export const EmptyRequest = Type.Object(
  { idempotency_key: IdempotencyKey },
  { title: 'ChannelTestRequest', additionalProperties: false },
)
export const ApprovalChannelTest = Type.Object(
  { message_ids: Type.Array(Type.String()) },
  { title: 'ApprovalChannelTest' },
)

const State = oneOf(['pending', 'sent', 'failed'])
const nullableTime = nullable(timestamp)

export const ApprovalMessage = Type.Object(
  {
    id: Type.String({ description: 'What a webhook sees as webhook-id.' }),
    approval_id: nullable(Type.String({ description: 'Null for a test.' })),
    domain: oneOf(['core', 'rh']),
    recipient_id: Type.String(),
    state: State,
    attempts: Type.Integer(),
    last_error: nullableText,
    last_attempt_at: nullableTime,
    next_attempt_at: nullableTime,
    created_at: timestamp,
    sent_at: nullableTime,
  },
  { title: 'ApprovalMessage' },
)
export const ApprovalMessagesQuery = Type.Object(
  { limit, cursor: cursorParameter('msg'), state: Type.Optional(State), approval_id: Type.Optional(Id) },
  { additionalProperties: false },
)
export const ApprovalMessagesResponse = Type.Object(
  { messages: Type.Array(ApprovalMessage), ...pageFields },
  { title: 'ApprovalMessagesResponse' },
)

export const ApprovalChannelParams = Type.Object({ id: Id })
