import { Type } from 'typebox'
import { AuditInput, EventInput, JournalAudit, JournalEvent } from '../../platform/outbox.steps.ts'
import { nullable, nullableNumber, nullableText, timestamp } from '../../platform/schema.ts'
import { defineSetStep, defineStep, type StepInput } from '../../platform/sql-step.ts'
import type { AssessmentSummary } from '../governance/assess/assessment.ts'
import type { StoredHold } from '../governance/counters/counted-by.ts'
import { CounterNeed, HoldInput } from '../governance/counters/limit-hold-item.ts'
import { EscrowEndInput, EscrowHoldInput, LedgerInput, PayoutEndInput, PayoutInput } from '../ledger/ledger.steps.ts'
import { writeMemoryStep } from '../memory/memory.steps.ts'
import { issueReceiptStep } from '../receipts/receipts.steps.ts'

/** An amount in micro-USDC. A bigint becomes a JSON number that PostgreSQL reads exactly. */
const amount = Type.Unsafe<bigint | string>(Type.Integer())
const stored = Type.Record(Type.String(), Type.Unknown())

const GrantsInput = Type.Object({
  rules_version: Type.Optional(amount),
  action_hash: Type.Optional(Type.String()),
  agent_id: Type.Optional(Type.String()),
  amount_micro: Type.Optional(amount),
  merchant: Type.Optional(Type.String()),
  /** Counters that must still have no room. */
  needs: Type.Optional(Type.Array(CounterNeed)),
  approval_id: Type.Optional(nullableText),
  override_id: Type.Optional(nullableText),
  preauth_id: Type.Optional(nullableText),
})

const Terms = Type.Object({ ruling: Type.Unsafe<AssessmentSummary>(stored) }, { additionalProperties: true })

/** What both ways to write a run take of its request. */
const RunDraft = {
  id: Type.String(),
  kind: Type.String(),
  tenant_id: nullableText,
  payer: Type.String(),
  agent_id: Type.String(),
  spender: nullableText,
  team: nullableText,
  key_id: nullableText,
  tags: nullable(Type.Record(Type.String(), Type.String())),
  session_id: Type.String(),
  loop_id: Type.String(),
  request_hash: Type.String(),
  request: stored,
  price_micro: amount,
  admission: Type.String(),
  created_at: timestamp,
  deadline_at: timestamp,
  /** The wallet that pays, or that a top-up fills. */
  wallet_id: nullableText,
  /** Debits positive, credits negative. */
  accounts: Type.Array(Type.String()),
  amounts: Type.Array(amount),
  /** The idempotency key and the payment identifier, where they are given. */
  keys: Type.Array(
    Type.Object({
      scope: Type.String(),
      route: Type.String(),
      key: Type.String(),
      body_hash: Type.String(),
      expires_at: timestamp,
    }),
  ),
  holds: Type.Array(HoldInput),
  grants: nullable(GrantsInput),
}

export const admitRunsStep = defineSetStep(
  'admit_runs',
  Type.Object({
    ...RunDraft,
    terms: Terms,
    instance: Type.String(),
    /** An x402 payment and its nonce. */
    payment: nullable(stored),
    nonce: nullable(
      Type.Object({ payer: Type.String(), nonce: Type.String(), network: Type.String(), asset: Type.String() }),
    ),
    escrow: nullable(EscrowHoldInput),
    audit: JournalAudit,
    /** A top-up has no work to wait for, so it brings its result. */
    result: nullable(stored),
    next_attempt_at: nullable(timestamp),
  }),
  /** The ruling when the counters at admission changed it, and what the run holds in them, with what its pre-authorisation held. */
  Type.Object({
    ruling: nullable(Type.Unsafe<AssessmentSummary>(stored)),
    holds: Type.Array(Type.Unsafe<StoredHold>(stored)),
  }),
)

export const keepRunsStep = defineSetStep(
  'keep_runs',
  Type.Object({ run_id: Type.String(), admission: Type.String(), result: stored, next_attempt_at: timestamp }),
  Type.Object({}),
)

/** False when the run had ended before: then its response is stored. */
const First = Type.Object({ first: Type.Boolean() })

/** What is written of a run that has ended. */
const RunAnswer = {
  at: timestamp,
  ledger_id: Type.String(),
  /** The body is kept without its receipt, which belongs at `receipt_at`, and compressed; see `stored-answer.ts`. */
  answer: Type.Object({ status: Type.Integer(), packed: Type.String(), receipt_at: Type.Integer() }),
  /** What lists show of the result. */
  result: stored,
  /** For the sums of the tenant and the lane. */
  cost_usd: nullableNumber,
  latency_ms: nullableNumber,
  receipt: issueReceiptStep.input,
  events: Type.Array(JournalEvent),
}

const RunEnd = {
  ...RunAnswer,
  run_id: Type.String(),
  escrow: nullable(EscrowEndInput),
  audit: JournalAudit,
}

export const completeRunsStep = defineSetStep(
  'complete_runs',
  Type.Object({
    ...RunEnd,
    /** Given when the result was not stored before: a payment from a wallet is settled in the same transaction. */
    admission: nullableText,
    transaction: nullableText,
    block: nullable(amount),
    shared: Type.Boolean(),
    memory: nullable(writeMemoryStep.input),
  }),
  First,
)

export const completeAtOnceStep = defineSetStep(
  'complete_at_once',
  Type.Object({
    ...RunDraft,
    ...RunAnswer,
    tenant_id: Type.String(),
    wallet_id: Type.String(),
    /** Nothing that can be used once only; see `mayCompleteAtOnce`. */
    grants: Type.Object({ rules_version: amount, needs: Type.Array(CounterNeed) }),
    /** As they are kept of a completed run. */
    terms: stored,
    /** Its admission and its completion. */
    audits: Type.Array(JournalAudit),
  }),
  Type.Object({}),
)

export const abandonRunsStep = defineSetStep(
  'abandon_runs',
  Type.Object({
    ...RunEnd,
    reason: Type.String(),
    /** Given when the run must not have gone on, or been taken over, since it was read. */
    from_state: nullableText,
    admission: nullableText,
  }),
  First,
)

export const noteArrivalStep = defineStep(
  'note_arrival',
  Type.Object({
    settlement_id: Type.String(),
    at: timestamp,
    transaction: Type.String(),
    block: nullable(amount),
    shared: Type.Boolean(),
    ledger: LedgerInput,
    payout: PayoutInput,
    receipt: issueReceiptStep.input,
    events: Type.Array(EventInput),
    audit: AuditInput,
  }),
  First,
)

export const finishRefundStep = defineStep(
  'finish_refund',
  Type.Object({
    settlement_id: Type.String(),
    at: timestamp,
    payout: PayoutEndInput,
    receipt: issueReceiptStep.input,
    events: Type.Array(EventInput),
    audit: AuditInput,
  }),
  First,
)

export type AdmissionItem = StepInput<typeof admitRunsStep>
export type CompletionAtOnceItem = StepInput<typeof completeAtOnceStep>
