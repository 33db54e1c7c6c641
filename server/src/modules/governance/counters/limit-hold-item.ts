import { type Static, Type } from 'typebox'
import { nullableText, timestamp } from '../../../platform/schema.ts'
import type { Hold } from '../assess/assessment.ts'
import type { StoredHold } from './counted-by.ts'

/** An amount in micro-USDC. A bigint becomes a JSON number that PostgreSQL reads exactly. */
const amount = Type.Unsafe<bigint | string>(Type.Integer())

/** What SQL `hold_limits` reads of a hold. */
export const HoldInput = Type.Object({
  scope: Type.String(),
  period: Type.String(),
  amount_micro: amount,
  on_success: Type.String(),
  measure: Type.String(),
  /** The limit is read from the counter's definition; otherwise `limit_micro` is the limit. */
  defined: Type.Optional(Type.Boolean()),
  enforce: Type.Optional(Type.Boolean()),
  event_id: Type.Optional(nullableText),
  /** When the amount leaves a rolling window. */
  slice_ends_at: Type.Optional(timestamp),
  limit_micro: Type.Optional(amount),
  open_limit_micro: Type.Optional(amount),
  settled_micro: Type.Optional(amount),
  on_refusal: Type.Optional(
    Type.Object({ status: Type.Integer(), reason: Type.String(), detail: Type.Record(Type.String(), Type.Unknown()) }),
  ),
})

/** What SQL `require_same_room` reads: a counter, and whether the amount has room in it. */
export const CounterNeed = Type.Object({
  scope: Type.String(),
  period: Type.String(),
  amount_micro: amount,
  room: Type.Boolean(),
})

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

export type LimitHoldItem = ReturnType<typeof toLimitHoldItem>

/** The hold that SQL `hold_limits` answers for this one. */
export const toStoredHold = ({
  scope,
  period,
  amount_micro,
  on_success,
  measure,
  slice_ends_at,
}: Static<typeof HoldInput>): StoredHold => ({
  scope,
  period,
  amount_micro: String(amount_micro),
  on_success,
  measure: measure === 'count' ? 'count' : 'money',
  ...(slice_ends_at !== undefined && { slice_ends_at }),
})
