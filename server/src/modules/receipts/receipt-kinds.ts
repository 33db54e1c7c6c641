export const receiptKinds = [
  'run',
  'loop',
  'topup',
  'preauth',
  'rh_run',
  'refund',
  'correction',
  'failure',
  'audit_head',
] as const

export type ReceiptKind = (typeof receiptKinds)[number]

/** Entries of the log that are no receipts are stored with them, and neither listed nor read as receipts. */
export const entryKinds = [...receiptKinds, 'attestation'] as const
