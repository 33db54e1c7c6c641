import type { CountersOpening } from '@countersign/proof'
import { type Static, Type } from 'typebox'
import { AuditInput, EventInput } from '../../platform/outbox.steps.ts'
import { nullable, nullableText, oneOf, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'
import { issueReceiptStep } from '../receipts/receipts.steps.ts'
import type { StoredHold } from './counters/counted-by.ts'
import { CounterNeed, HoldInput } from './counters/limit-hold-item.ts'
import type { RuleResult } from './rules/rule-result.ts'

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
    /** What opens the receipt's commitment to counters. */
    receipt_counters: Type.Unsafe<CountersOpening>(Type.Record(Type.String(), Type.Unknown())),
    /** The holds that the receipt was signed with; others are refused. */
    holds: Type.Array(Type.Unsafe<StoredHold>(Type.Record(Type.String(), Type.Unknown()))),
    /** The run that the payment was for, which counts the money itself. */
    paid_run_id: nullableText,
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
    /** Of the close, or the one that was found for a close without any. */
    transaction: nullableText,
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

const stored = Type.Record(Type.String(), Type.Unknown())

/** An amount in micro-USDC or a version: a bigint becomes a JSON number that PostgreSQL reads exactly. */
const exactInteger = Type.Unsafe<bigint | string>(Type.Integer())

/** A row of `preauths` before SQL gives it its status and its approval. */
const PreauthRowInput = Type.Object({
  id: Type.String(),
  tenant_id: Type.String(),
  run_id: Type.String(),
  agent_id: Type.String(),
  spender: Type.String(),
  team: nullableText,
  tags: nullable(Type.Record(Type.String(), Type.String())),
  named_mandate_id: nullableText,
  mandate_id: nullableText,
  merchant_id: Type.String(),
  merchant: stored,
  amount_micro: exactInteger,
  asset: Type.String(),
  network: Type.String(),
  purpose: nullableText,
  request_hash: nullableText,
  payer: nullableText,
  action_hash: Type.String(),
  policy_hash: nullableText,
  policy_results: Type.Array(stored),
  decision_id: nullableText,
  override_id: nullableText,
  ttl_seconds: Type.Integer(),
  asked_by: Type.String(),
  created_at: timestamp,
  issued_at: Type.Optional(nullable(timestamp)),
  expires_at: Type.Optional(nullable(timestamp)),
  close_by: Type.Optional(nullable(timestamp)),
  locks: Type.Array(Type.String()),
})

export type PreauthRowItem = Static<typeof PreauthRowInput>

/** What is recorded and announced of one outcome of a vote. */
const VoteOutcome = Type.Object({ audit: AuditInput, events: Type.Array(EventInput) })

export const resolveApprovalStep = defineStep(
  'resolve_approval',
  Type.Object({
    approval_id: Type.String(),
    tenant_id: Type.String(),
    /** The key, or the recipient of a channel, that votes. */
    key_id: Type.String(),
    /** All voters that are the same identity, itself included. */
    same_person: Type.Array(Type.String()),
    may_decide_for_itself: Type.Boolean(),
    /** How many keys the tenant had when the identity was judged. */
    key_count: Type.Integer(),
    decision: oneOf(['approve', 'reject']),
    reason: nullableText,
    at: timestamp,
    /** Opens the pre-authorisation, where the approval is for one. */
    approved: Type.Object({
      ...VoteOutcome.properties,
      preauth: Type.Optional(
        Type.Object({
          issued_at: timestamp,
          expires_at: timestamp,
          close_by: timestamp,
          mandate_id: nullableText,
          policy_hash: nullableText,
          policy_results: Type.Array(Type.Unsafe<RuleResult>(stored)),
          override_id: nullableText,
          locks: Type.Array(Type.String()),
        }),
      ),
      holds: Type.Optional(Type.Array(HoldInput)),
      grants: Type.Optional(
        Type.Object({
          rules_version: exactInteger,
          needs: Type.Array(CounterNeed),
          approval_id: Type.String(),
          action_hash: Type.String(),
          override_id: nullableText,
          agent_id: Type.String(),
          merchant: Type.String(),
          amount_micro: exactInteger,
        }),
      ),
    }),
    rejected: VoteOutcome,
    voted: VoteOutcome,
  }),
  Type.Object({ status: oneOf(['pending', 'approved', 'rejected']) }),
)

export const recordRefusalStep = defineStep(
  'record_refusal',
  Type.Object({
    /** The refused run, or null for a pre-authorisation. */
    run: nullable(
      Type.Object({
        id: Type.String(),
        kind: Type.String(),
        session_id: Type.String(),
        loop_id: Type.String(),
        request_hash: Type.String(),
        request: stored,
        terms: stored,
      }),
    ),
    /** Its keys are read by `insert_preauth`, after SQL has added the status and the approval. */
    preauth: nullable(Type.Unsafe<PreauthRowItem>(stored)),
    decision: Type.Object({
      id: Type.String(),
      tenant_id: Type.String(),
      kind: Type.String(),
      run_id: Type.String(),
      preauth_id: nullableText,
      agent_id: Type.String(),
      merchant: Type.String(),
      amount_micro: amountText,
      outcome: Type.String(),
      error: Type.String(),
      message: Type.String(),
      overridable: Type.Boolean(),
      results: Type.Array(Type.Unsafe<RuleResult>(stored)),
      trace_hash: Type.String(),
      action_hash: Type.String(),
      asked_by: Type.String(),
      spender: nullableText,
      team: nullableText,
      tags: nullable(stored),
      created_at: timestamp,
    }),
    /** The approval that a review asks for. `content` is encrypted. */
    approval: nullable(
      Type.Object({
        id: Type.String(),
        action: Type.String(),
        reason: Type.String(),
        risk_summary: stored,
        action_hash: Type.String(),
        /** All keys of the identity that asks: the same action of another one gets an approval of its own. */
        same_identity: Type.Array(Type.String()),
        approvals_required: Type.Integer(),
        separate_approver: Type.Boolean(),
        expires_at: timestamp,
        content: Type.String(),
        rule: stored,
        payment_method: nullable(oneOf(['wallet', 'x402'])),
      }),
    ),
    needs: Type.Array(CounterNeed),
    rules_version: exactInteger,
    audit: AuditInput,
    events: Type.Array(EventInput),
  }),
  Type.Object({
    decision_id: Type.String(),
    run_id: Type.String(),
    preauth_id: nullableText,
    approval_id: nullableText,
  }),
)

export const expireApprovalStep = defineStep(
  'expire_approval',
  Type.Object({ approval_id: Type.String(), at: timestamp, audit: AuditInput, events: Type.Array(EventInput) }),
  Type.Object({ expired: Type.Boolean() }),
)
export const refuseApprovedRunStep = defineStep(
  'refuse_approved_run',
  Type.Object({
    approval_id: Type.String(),
    at: timestamp,
    reason: Type.String(),
    /** What `GET /api/runs/{id}` shows as the answer. */
    answer: Type.Object({ status: Type.Integer(), body: Type.String() }),
    audit: AuditInput,
    events: Type.Array(EventInput),
  }),
  Type.Object({ refused: Type.Boolean() }),
)

export const openPreauthStep = defineStep(
  'open_preauth',
  Type.Object({
    /** Its keys are read by `insert_preauth`, after SQL has added the status and the holds. */
    preauth: Type.Unsafe<PreauthRowItem>(stored),
    holds: Type.Array(HoldInput),
    grants: Type.Object({
      rules_version: exactInteger,
      needs: Type.Array(CounterNeed),
      override_id: nullableText,
      agent_id: Type.String(),
      merchant: Type.String(),
      amount_micro: exactInteger,
    }),
    audit: AuditInput,
    events: Type.Array(EventInput),
  }),
  Type.Array(Type.Unsafe<RuleResult>(stored)),
)
