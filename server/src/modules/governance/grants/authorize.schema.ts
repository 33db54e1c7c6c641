import { Type } from 'typebox'
import { Id, IdempotencyKey } from '../schema-helpers.ts'

export const AuthorizeRequest = Type.Object(
  {
    agent_id: Type.String({ minLength: 1, maxLength: 200 }),
    amount_usdc: Type.Number({ minimum: 0, maximum: 1_000_000_000 }),
    merchant: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The merchant of our own runs is `countersign`.',
    }),
    reason: Type.String({ minLength: 1, maxLength: 500 }),
    denied_decision_id: Type.Optional(Id),
    expires_in_seconds: Type.Optional(Type.Integer({ minimum: 1, maximum: 86_400, description: 'Default 900.' })),
    idempotency_key: IdempotencyKey,
  },
  { title: 'AuthorizeRequest', additionalProperties: false },
)

export const AuthorizeResponse = Type.Object(
  {
    authorization_id: Type.String(),
    token: Type.String({ description: 'Shown once; sent as override_token.' }),
    status: Type.Literal('issued'),
    scope: Type.Object({ agent_id: Type.String(), amount_usdc: Type.Number(), merchant: Type.String() }),
    single_use: Type.Literal(true),
    denied_decision_id: Type.String(),
    expires_at: Type.String(),
    issued_by: Type.String(),
    self_approved: Type.Boolean({ description: 'Whether the identity that was denied has issued it.' }),
  },
  { title: 'AuthorizeResponse' },
)
