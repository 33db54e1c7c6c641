import { Type } from 'typebox'
import { EventInput } from '../../platform/outbox.steps.ts'
import { timestamp } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'

/** Answers the state that the settlement is in afterwards: `unknown`, or the final one if it has ended meanwhile. */
export const noteUnknownStep = defineStep(
  'note_unknown',
  Type.Object({
    settlement_id: Type.String(),
    reason: Type.String(),
    at: timestamp,
    event: EventInput,
  }),
  Type.Object({ state: Type.String() }),
)
