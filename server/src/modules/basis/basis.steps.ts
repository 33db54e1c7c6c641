import { Type } from 'typebox'
import { timestamp } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'
import { issueReceiptStep } from '../receipts/receipts.steps.ts'

export const logAttestationStep = defineStep(
  'log_attestation',
  Type.Object({
    id: Type.String(),
    asset: Type.String(),
    symbol: Type.String(),
    chain: Type.String(),
    as_of: timestamp,
    seq: Type.Integer(),
    /** The attestation with every member, as it is handed out. */
    body: Type.String(),
    /** The entry of the log: the signed members and their signature. */
    receipt: issueReceiptStep.input,
  }),
  /** The attestation as it was handed out first. */
  Type.Object({ body: Type.String() }),
)
