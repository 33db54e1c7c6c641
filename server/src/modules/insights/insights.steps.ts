import { Type } from 'typebox'
import { nullableText, oneOf, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'

/** Returns true when the alert is new, false when an alert with the same cause exists. */
export const raiseAlertStep = defineStep(
  'raise_alert',
  Type.Object({
    id: Type.String(),
    event_id: Type.String(),
    tenant_id: Type.String(),
    severity: oneOf(['critical', 'warning', 'info']),
    type: Type.String(),
    message: Type.String(),
    data: Type.Record(Type.String(), Type.Unknown()),
    cause: nullableText,
    at: timestamp,
  }),
  Type.Boolean(),
)

export type NewAlert = StepInput<typeof raiseAlertStep>
