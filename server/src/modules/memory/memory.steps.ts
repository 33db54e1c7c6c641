import { Type } from 'typebox'
import { nullableText, timestamp } from '../../platform/schema.ts'
import { defineStep, type StepInput } from '../../platform/sql-step.ts'

export const writeMemoryStep = defineStep(
  'write_memory',
  Type.Object({
    id: Type.String(),
    tenant_id: Type.String(),
    session_id: Type.String(),
    agent_id: nullableText,
    run_id: nullableText,
    content: Type.String(),
    metadata: Type.Object({}, { additionalProperties: true }),
    created_at: timestamp,
    expires_at: timestamp,
  }),
  Type.Void(),
)

export type NewMemory = StepInput<typeof writeMemoryStep>
