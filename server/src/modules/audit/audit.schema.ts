import { Type } from 'typebox'
import { PAGE_MAY_BE_SHORT } from '../../platform/paging.ts'

const nullableText = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

export const AuditQuery = Type.Object(
  {
    type: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    actor: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Who did it, for example the id of a key' }),
    ),
    subject: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'The subject of the event, for example a run id' }),
    ),
    spender: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'Events about payments of this spender, where one was named',
      }),
    ),
    team: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Events about payments of this team' }),
    ),
    since: Type.Optional(Type.String({ format: 'date-time' })),
    until: Type.Optional(Type.String({ format: 'date-time' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '20 by default' })),
    cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 200, description: 'next_cursor of the page before' })),
    format: Type.Union([Type.Literal('json'), Type.Literal('ndjson')], {
      default: 'json',
      description: 'ndjson exports the whole chain, oldest first, one event a line',
    }),
    after_seq: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'With ndjson: only events after this one',
      }),
    ),
  },
  { additionalProperties: false },
)

export const AuditEvent = Type.Object(
  {
    id: Type.String(),
    seq: Type.Integer({ description: 'Place in the chain of the tenant, from 1 on, without gaps' }),
    type: Type.String(),
    occurred_at: Type.String({ format: 'date-time' }),
    actor: Type.String(),
    subject: Type.String(),
    decision: nullableText('What was decided'),
    policy_ids: Type.Array(Type.String()),
    input_hash: nullableText("SHA-256 of the decision's input"),
    data: Type.Unknown(),
    prev_hash: nullableText('Hash of the event before'),
    hash: Type.String({ description: 'SHA-256 of the canonical event without `hash`' }),
  },
  { title: 'AuditEvent' },
)

export const AuditResponse = Type.Object(
  {
    events: Type.Array(AuditEvent),
    checkpoint: Type.Union(
      [
        Type.Object({
          chain: Type.String({ description: 'What the public log calls this chain' }),
          seq: Type.Integer(),
          hash: Type.String(),
          committed_seq: Type.Integer({ description: 'The newest event whose hash is in the public log' }),
          receipt: Type.Unknown({
            description: 'The receipt of kind audit_head that states it, with its place in the log',
          }),
        }),
        Type.Null(),
      ],
      { description: 'The head of the chain; null before the first event' },
    ),
    has_more: Type.Boolean({ description: PAGE_MAY_BE_SHORT }),
    next_cursor: nullableText('Cursor of the next page'),
  },
  { title: 'AuditResponse' },
)

export const AuditListResponse = {
  description: 'A page of events; with `format=ndjson` the whole chain, one event a line.',
  content: {
    'application/json': { schema: AuditResponse },
    'application/x-ndjson': { schema: Type.String({ description: 'Canonical events, oldest first.' }) },
  },
}
