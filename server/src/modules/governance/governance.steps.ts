import { Type } from 'typebox'
import { AuditInput, EventInput } from '../../platform/outbox.steps.ts'
import { nullable, nullableText, oneOf, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'
import { issueReceiptStep } from '../receipts/receipts.steps.ts'

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

/** What is known of the payment of a closed pre-authorisation, and who says so. */
export const settlementStatuses = ['settled', 'reported', 'failed', 'voided', 'not_found'] as const
export const assertedBy = ['chain', 'facilitator', 'ledger', 'reported'] as const

export const closePreauthStep = defineStep(
  'close_preauth',
  Type.Object({
    preauth_id: Type.String(),
    tenant_id: Type.String(),
    at: timestamp,
    outcome: oneOf(['settled', 'failed', 'voided']),
    charged_micro: amountText,
    transaction: nullableText,
    verified_onchain: nullable(Type.Boolean()),
    /** How many transfers of the transaction are this payment; null when the chain was not asked. */
    matching: nullable(Type.Integer()),
    settlement_status: oneOf(settlementStatuses),
    asserted_by: oneOf(assertedBy),
    check_at: nullable(timestamp),
    receipt: issueReceiptStep.input,
    receipt_salt: nullableText,
    audit: AuditInput,
    events: Type.Array(EventInput),
  }),
  Type.Object({ charged: Type.String(), released: Type.String(), late: Type.Boolean() }),
)

export const correctCloseStep = defineStep(
  'correct_close',
  Type.Object({
    preauth_id: Type.String(),
    settlement_status: oneOf(['settled', 'not_found']),
    reason: nullableText,
    matching: nullable(Type.Integer()),
    receipt: issueReceiptStep.input,
    audit: AuditInput,
    events: Type.Array(EventInput),
  }),
  Type.Object({ corrected: Type.Boolean() }),
)

export const escalatePreauthStep = defineStep(
  'escalate_preauth',
  Type.Object({ preauth_id: Type.String(), at: timestamp, audit: AuditInput, events: Type.Array(EventInput) }),
  Type.Object({ escalated: Type.Boolean() }),
)

export type ClosePreauthItem = StepInput<typeof closePreauthStep>

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
