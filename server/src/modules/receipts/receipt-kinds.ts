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
