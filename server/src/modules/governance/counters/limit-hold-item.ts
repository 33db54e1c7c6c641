import type { Hold } from '../assess/assessment.ts'

/** The counter of what a payer has promised and not yet paid, and of what has been settled. */
export const exposureScope = (payer: string) => `exposure:${payer}`

/** A hold in the form that SQL `hold_limits` reads. */
export const toLimitHoldItem = (hold: Hold) => ({
  scope: hold.scope,
  period: hold.period,
  amount_micro: hold.amountMicro,
  on_success: hold.onSuccess,
  measure: hold.measure ?? 'money',
  ...('defined' in hold
    ? {
        defined: true,
        enforce: hold.enforce,
        event_id: hold.eventId ?? null,
        ...(hold.sliceEndsAt && { slice_ends_at: hold.sliceEndsAt.toISOString() }),
      }
    : {
        limit_micro: hold.limitMicro,
        on_refusal: hold.onRefusal,
        ...(hold.inFlight && {
          open_limit_micro: hold.inFlight.openLimitMicro,
          settled_micro: hold.inFlight.settledMicro,
        }),
      }),
})
