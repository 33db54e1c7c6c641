import type { Hold } from './assessment.ts'

/** A hold in the form that SQL `hold_limits` reads. */
export const toLimitHoldItem = (hold: Hold) => ({
  scope: hold.scope,
  period: hold.period,
  amount_micro: hold.amountMicro,
  on_success: hold.onSuccess,
  measure: hold.measure ?? 'money',
  ...('defined' in hold
    ? { defined: true, enforce: hold.enforce, event_id: hold.eventId ?? null }
    : { limit_micro: hold.limitMicro, on_refusal: hold.onRefusal }),
})
