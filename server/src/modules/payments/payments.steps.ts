import { Type } from 'typebox'
import { EventInput } from '../../platform/outbox.steps.ts'
import { timestamp } from '../../platform/schema.ts'
import { defineStep } from '../../platform/sql-step.ts'

/** Returns `unknown`, or `ended` when the run has ended meanwhile. */
export const noteUnknownStep = defineStep(
  'note_unknown',
  Type.Object({
    run_id: Type.String(),
    reason: Type.String(),
    at: timestamp,
    event: EventInput,
  }),
  Type.Object({ state: Type.String() }),
)
