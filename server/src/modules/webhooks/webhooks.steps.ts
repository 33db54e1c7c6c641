import { Type } from 'typebox'
import { nullable, nullableText, oneOf, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'

/** `next_attempt_at: null` on a failed attempt means that there is none: the delivery is exhausted. */
export const finishDeliveryStep = defineStep(
  'finish_delivery',
  Type.Object({
    id: Type.String(),
    claim: Type.String(),
    at: timestamp,
    ok: Type.Boolean(),
    status: nullable(Type.Integer()),
    error: nullableText,
    ms: Type.Integer(),
    timestamp: Type.Integer(),
    signature: Type.String(),
    answer: nullableText,
    next_attempt_at: nullable(timestamp),
    standing: oneOf(['good', 'poor']),
    switch_off: nullable(oneOf(['gone', 'exhausted'])),
  }),
  Type.Object({ dropped: Type.Boolean(), switched_off: Type.Boolean() }),
)

export type DeliveryOutcome = StepInput<typeof finishDeliveryStep>
