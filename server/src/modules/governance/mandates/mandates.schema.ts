import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, oneOf, plainName } from '../../../platform/schema.ts'
import { MandateConstraintSchema } from './evaluate-mandate.ts'

const time = Type.String({ format: 'date-time' })

export const MandateCreate = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 200 }),
    agent_id: Type.Optional(Type.String({ minLength: 1, maxLength: 200, ...plainName })),
    holder_key_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 80,
        description: 'Only this key may spend under it. Rotating the key does not lose it.',
      }),
    ),
    constraints: Type.Array(MandateConstraintSchema, { maxItems: 20 }),
    starts_at: Type.Optional(time),
    expires_at: Type.Optional(time),
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  {
    title: 'MandateCreate',
    additionalProperties: false,
    description: 'Who may spend, how much, where and how long. Without `expires_at` it lasts a year.',
  },
)

export const MandateRevoke = Type.Object(
  { reason: Type.Optional(Type.String({ maxLength: 500 })) },
  { title: 'MandateRevoke', additionalProperties: false },
)
export const MandateParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 80 }) })

export const MandatesQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('man'),
    status: Type.Optional(oneOf(['active', 'revoked'])),
  },
  { additionalProperties: false },
)

export const Mandate = Type.Object(
  {
    id: Type.String(),
    mandate_id: Type.String(),
    name: Type.String(),
    agent_id: nullable(Type.String()),
    holder_key_id: nullable(Type.String()),
    constraints: Type.Array(Type.Object({}, { additionalProperties: true })),
    content_hash: Type.String(),
    status: oneOf(['active', 'revoked']),
    starts_at: Type.String(),
    expires_at: Type.String(),
    created_at: Type.String(),
    revoked_at: nullable(Type.String()),
    warning: Type.Optional(
      Type.String({ description: 'What making or revoking it leaves without a limit, in words; absent otherwise.' }),
    ),
  },
  { title: 'Mandate' },
)

export const MandatesResponse = Type.Object(
  {
    mandates: Type.Array(Mandate),
    ...pageFields,
  },
  { title: 'MandatesResponse' },
)

const amounts = ['limit', 'spent', 'reserved', 'remaining', 'reported']

export const RemainingStatement = Type.Object(
  {
    schema: Type.Literal('mandate-remaining/v1'),
    mandate_id: Type.String(),
    content_hash: Type.String(),
    status: oneOf(['active', 'revoked', 'not_started', 'expired']),
    agent_id: nullable(Type.String()),
    as_of: Type.String(),
    starts_at: Type.String(),
    expires_at: Type.String(),
    currency: Type.Literal('USDC'),
    ...Object.fromEntries(amounts.map((name) => [name, nullable(Type.String({ description: 'Atomic units.' }))])),
    ...Object.fromEntries(amounts.map((name) => [`${name}_usdc`, nullable(Type.Number())])),
    occurrences: nullable(Type.Object({ limit: Type.Integer(), used: Type.Integer(), remaining: Type.Integer() })),
    next_allowed_at: nullable(Type.String()),
    signature: Type.Object({ alg: Type.Literal('ed25519'), key_id: Type.String(), value: Type.String() }),
  },
  {
    title: 'RemainingStatement',
    description:
      'Signed over its canonical bytes (RFC 8785) without `signature`, by the key of the public key set whose purpose is `statement`. `spent` is what is counted as spent; `reported` is the part of it that nobody but the tenant has seen, or that the chain does not show.',
  },
)
