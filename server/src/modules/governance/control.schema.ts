import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../platform/paging.ts'

const one = (...choices: string[]) => Type.Union(choices.map((choice) => Type.Literal(choice)))
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) => Type.Union([type, Type.Null()])
const open = (description: string) => Type.Object({}, { additionalProperties: true, description })
const Id = Type.String({ minLength: 1, maxLength: 80 })
const IdempotencyKey = Type.Optional(Type.String({ minLength: 1, maxLength: 255 }))

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
  { additionalProperties: false },
)

export const AuthorizeResponse = Type.Object({
  authorization_id: Type.String(),
  token: Type.String({ description: 'Shown once; sent as override_token.' }),
  status: Type.Literal('issued'),
  scope: Type.Object({ agent_id: Type.String(), amount_usdc: Type.Number(), merchant: Type.String() }),
  single_use: Type.Literal(true),
  denied_decision_id: Type.String(),
  expires_at: Type.String(),
  issued_by: Type.String(),
})

export const ApprovalsQuery = Type.Object(
  {
    status: Type.Optional(one('pending', 'approved', 'rejected', 'all')),
    agent_id: Type.Optional(Type.String({ maxLength: 200 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('apr'),
    domain: Type.Optional(one('core', 'rh', 'cb')),
  },
  { additionalProperties: false },
)

export const ApprovalRecord = Type.Object({
  id: Type.String(),
  approval_id: Type.String(),
  status: one('pending', 'approved', 'rejected'),
  resolution: nullable(one('approved', 'rejected', 'expired')),
  action: Type.String(),
  domain: Type.Literal('core'),
  agent_id: Type.String(),
  run_id: Type.String(),
  preauth_id: nullable(Type.String()),
  decision_id: Type.String(),
  requested_by: Type.String(),
  reason: Type.String(),
  amount_usdc: Type.Number(),
  amount: Type.String(),
  merchant: Type.String(),
  risk_summary: open('What a person needs to see before saying yes.'),
  action_hash: Type.String({ description: 'The exact action that is approved.' }),
  approvals_required: Type.Integer(),
  separate_approver: Type.Boolean(),
  approvals: Type.Array(
    Type.Object({
      key_id: Type.String(),
      decision: one('approve', 'reject'),
      reason: nullable(Type.String()),
      at: Type.String(),
    }),
  ),
  expires_at: Type.String(),
  created_at: Type.String(),
  resolved_at: nullable(Type.String()),
  used_at: nullable(Type.String()),
})

export const ApprovalsListResponse = Type.Object({
  approvals: Type.Array(ApprovalRecord),
  ...pageFields,
  see: Type.Optional(Type.String({ description: 'Where the approvals of this domain are.' })),
})

export const ApprovalResolutionRequest = Type.Object(
  {
    approval_id: Id,
    decision: one('approve', 'reject'),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
    action_hash: Type.Optional(Type.String({ maxLength: 80, description: 'Must be that of the action, when given.' })),
    idempotency_key: IdempotencyKey,
  },
  { additionalProperties: false },
)

export const ApprovalResolutionResponse = Type.Object({
  approval: ApprovalRecord,
  run: nullable(
    Type.Object({
      run_id: Type.String(),
      outcome: Type.String(),
      action: Type.String(),
      agent_id: Type.String(),
      price_usdc: Type.Number(),
      created_at: Type.String(),
      receipt_url: nullable(Type.String()),
    }),
  ),
})

export const ApprovalParams = Type.Object({ id: Id })

export const DecisionRecord = Type.Object({
  decision_id: Type.String(),
  kind: one('run', 'loop', 'preauth'),
  run_id: Type.String(),
  preauth_id: nullable(Type.String()),
  agent_id: Type.String(),
  merchant: Type.String(),
  amount: Type.String(),
  amount_usdc: Type.Number(),
  outcome: one('blocked', 'rejected', 'review_required'),
  error: Type.String(),
  message: Type.String(),
  overridable: Type.Boolean({ description: 'Whether POST /api/authorize may override it.' }),
  policy_results: Type.Array(open('What one rule said: asked, limit, reason, smallest_change.')),
  smallest_change: Type.Array(open('The least that would have to be different.')),
  action_hash: Type.String(),
  asked_by: Type.String(),
  created_at: Type.String(),
})

export const DecisionsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('dec'),
    outcome: Type.Optional(one('blocked', 'rejected', 'review_required')),
    agent_id: Type.Optional(Type.String({ maxLength: 200 })),
  },
  { additionalProperties: false },
)

export const DecisionsResponse = Type.Object({
  decisions: Type.Array(DecisionRecord),
  ...pageFields,
})
