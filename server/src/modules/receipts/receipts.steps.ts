import { Type } from 'typebox'
import { nullableText, oneOf, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'
import { entryKinds } from './receipt-kinds.ts'

export const issueReceiptStep = defineStep(
  'issue_receipt',
  Type.Object({
    id: Type.String(),
    run_id: nullableText,
    tenant_id: nullableText,
    kind: oneOf(entryKinds),
    agent_id: nullableText,
    payer: nullableText,
    issued_at: timestamp,
    /** Canonical JSON with the signature and without `log`: these bytes are the entry of the log. */
    body: Type.String(),
    /** Plain SHA-256 of `body`, by which the next receipt names this one. The log hashes the same bytes as a leaf (RFC 6962). */
    hash: Type.String(),
    prev_hash: nullableText,
  }),
  Type.Void(),
)

export type ReceiptRow = StepInput<typeof issueReceiptStep>
