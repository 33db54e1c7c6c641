import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'
import { nullable, oneOf } from '../../platform/schema.ts'

const states = ['pending', 'settled', 'failed', 'unknown', 'refunded'].map((state) => Type.Literal(state))

export const Settlement = Type.Object(
  {
    settlement_id: Type.String(),
    run_id: Type.String(),
    status: Type.Union(states),
    method: Type.String(),
    network: Type.String(),
    asset: Type.String(),
    payer: Type.String(),
    pay_to: Type.String(),
    amount: Type.String(),
    amount_usdc: Type.Number(),
    nonce: Type.String(),
    transaction: nullable(Type.String()),
    block: nullable(Type.Integer()),
    reason: nullable(Type.String()),
    attempts: Type.Integer(),
    wallet_id: nullable(Type.String()),
    refund: nullable(
      Type.Object(
        { payout_id: Type.String(), status: Type.String(), transaction: nullable(Type.String()) },
        { description: 'A payment that arrived after its run had failed is paid back.' },
      ),
    ),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { title: 'Settlement' },
)

export const SettleRequest = Type.Object(
  {
    settlement_id: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
    run_id: Type.Optional(Type.String({ minLength: 1, maxLength: 80 })),
    preauth_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 80, description: 'The pre-authorisation that the run was made with.' }),
    ),
    payment_payload: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'The x402 payment itself, of either version. Alone it finds its settlement; beside an id it must be the payment of that settlement.',
        },
      ),
    ),
    idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
  },
  { title: 'SettleRequest', additionalProperties: false },
)

export const SettlementsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('stl'),
    state: Type.Optional(Type.Union(states)),
    method: Type.Optional(oneOf(['x402', 'wallet'], { description: 'How it was paid.' })),
    since: Type.Optional(Type.String({ format: 'date-time' })),
    until: Type.Optional(Type.String({ format: 'date-time' })),
    run_id: Type.Optional(Type.String({ maxLength: 80 })),
  },
  { additionalProperties: false },
)

export const SettlementsResponse = Type.Object(
  {
    settlements: Type.Array(Settlement),
    ...pageFields,
  },
  { title: 'SettlementsResponse' },
)
