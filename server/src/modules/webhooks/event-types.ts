/** Every event type; a subscription names some of them or `*`. */
export const eventTypes = [
  'run.completed',
  'run.blocked',
  'run.failed',
  'run.escalated',
  'approval.requested',
  'approval.approved',
  'approval.rejected',
  'approval.expired',
  'preauth.created',
  'preauth.closed',
  'preauth.escalated',
  'budget.threshold_reached',
  'budget.exceeded',
  'settlement.settled',
  'settlement.failed',
  'settlement.unknown',
  'settlement.refunded',
  'receipt.issued',
  'policy.created',
  'policy.updated',
  'alert.created',
  'rh_run.pending',
  'rh_run.approved',
  'rh_run.cancelled',
  'rh_run.executed',
  'rh_run.rejected',
  'wallet.topped_up',
  'escrow.held',
  'escrow.released',
  'escrow.refunded',
  'key.created',
  'key.revoked',
  'basis.window_changed',
] as const

export type EventType = (typeof eventTypes)[number]

/** Sent by `POST /api/webhooks/{id}/test`; it cannot be subscribed to. */
export const TEST_EVENT = 'webhook.test'
