import { Type } from 'typebox'
import { AuditInput, EventInput } from '../../platform/outbox.steps.ts'
import { nullableText, timestamp } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'

/** An amount in micro-USDC or units of its asset. A bigint becomes a JSON number that PostgreSQL reads exactly. */
const amount = Type.Unsafe<bigint | string>(Type.Integer())

/** A transaction of two to four entries that sum to zero. Debits are positive. */
export const LedgerInput = Type.Object({
  id: Type.String(),
  tenant_id: nullableText,
  code: Type.String(),
  ref: Type.String(),
  created_at: timestamp,
  asset: Type.String(),
  entries: Type.Array(Type.Object({ account: Type.String(), amount_micro: amount })),
})

export const EscrowHoldInput = Type.Object({
  id: Type.String(),
  tenant_id: Type.String(),
  wallet_id: Type.String(),
  to_wallet_id: nullableText,
  run_id: nullableText,
  amount_micro: amount,
  memo: nullableText,
  expires_at: timestamp,
  created_at: timestamp,
  ledger: LedgerInput,
  event: EventInput,
  audit: AuditInput,
})

export const EscrowEndInput = Type.Object({
  id: Type.String(),
  /** The states that the escrow may be in. */
  from: Type.Unsafe<readonly string[]>(Type.Array(Type.String())),
  state: Type.String(),
  reason: nullableText,
  at: timestamp,
  ledger: Type.Array(LedgerInput),
  events: Type.Array(EventInput),
  audits: Type.Array(AuditInput),
})

export const PayoutInput = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  tenant_id: nullableText,
  wallet_id: Type.Optional(nullableText),
  settlement_id: Type.Optional(nullableText),
  to_address: Type.String(),
  amount_micro: amount,
  method: Type.String(),
  requested_by: Type.String(),
  at: timestamp,
  next_attempt_at: nullableText,
  /** The entries that are pending until the payout has ended; only `id` and `entries` are stored with it. */
  ledger: Type.Object({
    id: Type.String(),
    entries: LedgerInput.properties.entries,
  }),
  audit: Type.Optional(AuditInput),
})

export const PayoutEndInput = Type.Object({
  id: Type.String(),
  state: Type.String(),
  transaction: Type.Optional(nullableText),
  at: timestamp,
  ledger_id: Type.String(),
  audit: Type.Optional(AuditInput),
})

export const postLedgerStep = defineStep('ledger_direct', LedgerInput, Type.Void())
export const holdEscrowStep = defineStep('hold_escrow', EscrowHoldInput, Type.Void())
export const endEscrowStep = defineStep('end_escrow', EscrowEndInput, Type.Void())
export const requestPayoutStep = defineStep('request_payout', PayoutInput, Type.Void())
/** False when the payout had ended before. */
export const endPayoutStep = defineStep('end_payout', PayoutEndInput, Type.Boolean())
