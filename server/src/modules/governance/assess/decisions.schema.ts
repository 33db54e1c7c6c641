import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, oneOf } from '../../../platform/schema.ts'
import { payerRecord } from '../payer.schema.ts'
import { Id, openObject } from '../schema-helpers.ts'

export const Decision = Type.Object(
  {
    decision_id: Type.String(),
    kind: oneOf(['run', 'loop', 'preauth', 'trade']),
    run_id: Type.String(),
    preauth_id: nullable(Type.String()),
    agent_id: nullable(Type.String({ description: 'Null for a trade that names no agent.' })),
    merchant: Type.String(),
    amount: Type.String(),
    amount_usdc: Type.Number(),
    outcome: oneOf(['blocked', 'rejected', 'review_required']),
    error: Type.String(),
    message: Type.String(),
    overridable: Type.Boolean({ description: 'Whether POST /api/authorize may override it; never for a trade.' }),
    policy_results: Type.Array(
      openObject(
        'The result of one rule: asked, limit, matched, reason, smallest_change. At most 100; the last may count the others.',
      ),
    ),
    smallest_change: Type.Array(openObject('The least that would have to be different.')),
    action_hash: Type.String(),
    asked_by: Type.String(),
    self_approved: Type.Boolean({
      description: 'Whether the identity that asked has approved or overridden it itself.',
    }),
    ...payerRecord,
    created_at: Type.String(),
  },
  { title: 'Decision' },
)

export const DecisionsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('dec'),
    outcome: Type.Optional(oneOf(['blocked', 'rejected', 'review_required'])),
    agent_id: Type.Optional(Type.String({ maxLength: 200 })),
    run_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 80,
        description: 'The decisions about one run or pre-authorised payment.',
      }),
    ),
  },
  { additionalProperties: false },
)

export const DecisionsResponse = Type.Object(
  {
    decisions: Type.Array(Decision),
    ...pageFields,
  },
  { title: 'DecisionsResponse' },
)

export const DecisionParams = Type.Object({ id: Id })
