import { Type } from 'typebox'
import { cursorParameter, pageFields } from '../../../platform/paging.ts'
import { nullable, oneOf } from '../../../platform/schema.ts'
import { payerRecord } from '../payer.schema.ts'
import { Id, IdempotencyKey, openObject } from '../schema-helpers.ts'
import { ApprovalRule, NormalSpend } from './approval-view.schema.ts'

export const ApprovalsQuery = Type.Object(
  {
    status: Type.Optional(oneOf(['pending', 'approved', 'rejected', 'all'])),
    agent_id: Type.Optional(Type.String({ maxLength: 200 })),
    spender: Type.Optional(Type.String({ maxLength: 200 })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    cursor: cursorParameter('apr'),
    domain: Type.Optional(oneOf(['core', 'rh', 'cb'])),
  },
  { additionalProperties: false },
)

const SelfApproved = Type.Boolean({
  description: 'Whether the identity that asked has approved it: the only active key with scope control may.',
})

export const Approval = Type.Object(
  {
    id: Type.String(),
    approval_id: Type.String(),
    status: oneOf(['pending', 'approved', 'rejected']),
    resolution: nullable(oneOf(['approved', 'rejected', 'expired'])),
    action: Type.String(),
    domain: Type.Literal('core'),
    agent_id: Type.String(),
    ...payerRecord,
    run_id: Type.String(),
    preauth_id: nullable(Type.String()),
    decision_id: Type.String(),
    requested_by: Type.String(),
    reason: Type.String(),
    amount_usdc: Type.Number(),
    amount: Type.String(),
    merchant: Type.String(),
    request: Type.Optional(
      nullable(
        openObject(
          'What is asked, as it was sent and without tokens. Only for keys with the scope `control`; null once its retention has passed.',
        ),
      ),
    ),
    rule: ApprovalRule,
    normal: NormalSpend,
    next: Type.String({ description: 'What happens next.' }),
    risk_summary: openObject('What a person needs to see before saying yes.'),
    action_hash: Type.String({ description: 'The exact action that is approved.' }),
    approvals_required: Type.Integer(),
    separate_approver: Type.Boolean(),
    self_approved: SelfApproved,
    approvals: Type.Array(
      Type.Object({
        key_id: Type.String(),
        decision: oneOf(['approve', 'reject']),
        reason: nullable(Type.String()),
        at: Type.String(),
      }),
    ),
    expires_at: Type.String(),
    created_at: Type.String(),
    resolved_at: nullable(Type.String()),
    used_at: nullable(Type.String()),
    lapsed_at: nullable(Type.String({ description: 'When it ended unused although it was approved.' })),
  },
  { title: 'Approval' },
)

export const ApprovalsListResponse = Type.Object(
  {
    approvals: Type.Array(Approval),
    ...pageFields,
    see: Type.Optional(Type.String({ description: 'Where the approvals of this domain are.' })),
  },
  { title: 'ApprovalsListResponse' },
)

export const ApprovalResolutionRequest = Type.Object(
  {
    approval_id: Id,
    decision: oneOf(['approve', 'reject']),
    reason: Type.Optional(Type.String({ maxLength: 500 })),
    action_hash: Type.Optional(Type.String({ maxLength: 80, description: 'Must be that of the action, when given.' })),
    idempotency_key: IdempotencyKey,
  },
  { title: 'ApprovalResolutionRequest', additionalProperties: false },
)

export const ApprovalResolutionResponse = Type.Object(
  {
    approval: Approval,
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
    self_approved: SelfApproved,
  },
  { title: 'ApprovalResolutionResponse' },
)

export const ApprovalParams = Type.Object({ id: Id })
