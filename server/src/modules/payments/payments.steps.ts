import { Type } from 'typebox'
import { EventInput } from '../../platform/outbox.steps.ts'
import { timestamp } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'

/** Returns the state of the settlement afterwards: `unknown`, or the final state if it has ended meanwhile. */
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
