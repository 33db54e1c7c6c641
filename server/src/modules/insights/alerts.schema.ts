import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'

export const Severity = Type.Union([Type.Literal('critical'), Type.Literal('warning'), Type.Literal('info')])

export const AlertCreate = Type.Object(
  {
    severity: Severity,
    type: Type.String({ minLength: 1, maxLength: 80 }),
    message: Type.String({ minLength: 1, maxLength: 2000 }),
    data: Type.Optional(Type.Record(Type.String({ maxLength: 80 }), Type.Unknown(), { maxProperties: 50 })),
    idempotency_key: Type.Optional(Type.String({ maxLength: 255 })),
  },
  { title: 'PredictiveAlertCreate', additionalProperties: false },
)

export const AlertRead = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 64 }) },
  { title: 'PredictiveAlertRead', additionalProperties: false },
)

export const Alert = Type.Object(
  {
    id: Type.String(),
    severity: Severity,
    type: Type.String(),
    message: Type.String(),
    read: Type.Boolean(),
    created_at: Type.String({ format: 'date-time' }),
    data: Type.Record(Type.String(), Type.Unknown()),
  },
  { title: 'PredictiveAlert' },
)

export const AlertsQuery = Type.Object(
  {
    severity: Type.Optional(Severity),
    unread: Type.Optional(Type.Boolean({ description: 'true: only those that nobody has marked as read.' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    cursor: cursorParameter('alr'),
  },
  { additionalProperties: false },
)

export const AlertsResponse = Type.Object(
  {
    alerts: Type.Array(Alert),
    ...pageFields,
  },
  { title: 'PredictiveAlertsResponse' },
)
