import { Type } from 'typebox'
import { nullable, nullableText } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'

/** A bigint of micro-USDC or a count, as decimal text. */
const amountText = Type.String({ pattern: '^\\d+$' })

export const defineLimitStep = defineStep(
  'define_limit',
  Type.Object({
    scope: Type.String(),
    tenant_id: Type.String(),
    limit_micro: amountText,
    soft_limit_micro: nullable(amountText),
    enforced: Type.Boolean(),
    thresholds_micro: Type.Array(amountText),
    subject: Type.Record(Type.String(), Type.Unknown()),
  }),
  Type.Void(),
)

// The steps below have no input schema yet; `steps.test.ts` lists them.

export const recordRefusalStep = defineStep(
  'record_refusal',
  Type.Unknown(),
  Type.Object({
    decision_id: Type.String(),
    run_id: Type.String(),
    preauth_id: nullableText,
    approval_id: nullableText,
  }),
)
export const openPreauthStep = defineStep('open_preauth', Type.Unknown(), Type.Unknown())
export const closePreauthStep = defineStep(
  'close_preauth',
  Type.Unknown(),
  Type.Object({ charged: Type.String(), released: Type.String(), late: Type.Boolean() }),
)
export const escalatePreauthStep = defineStep(
  'escalate_preauth',
  Type.Unknown(),
  Type.Object({ escalated: Type.Boolean() }),
)
export const resolveApprovalStep = defineStep(
  'resolve_approval',
  Type.Unknown(),
  Type.Object({ status: Type.String() }),
)
export const expireApprovalStep = defineStep(
  'expire_approval',
  Type.Unknown(),
  Type.Object({ expired: Type.Boolean() }),
)
