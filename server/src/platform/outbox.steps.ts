import { Type } from 'typebox'
import { nullableText, timestamp } from './schema.ts'
import { defineStep } from './sql-step.ts'

/** A guest's event, without a tenant, has no subscribers and is not written. */
export const EventInput = Type.Object({
  id: Type.String(),
  tenant_id: nullableText,
  type: Type.String(),
  data: Type.Record(Type.String(), Type.Unknown()),
  created_at: timestamp,
})

export const AuditInput = Type.Object({
  id: Type.String(),
  tenant_id: nullableText,
  type: Type.String(),
  occurred_at: timestamp,
  actor: Type.String(),
  subject: Type.String(),
  decision: Type.Optional(Type.String()),
  policy_ids: Type.Optional(Type.Array(Type.String())),
  input_hash: Type.Optional(Type.String()),
  data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
})

/** The same as a step writes them into its row of the journal, which has the tenant and the time. */
export const JournalEvent = Type.Object({
  id: Type.String(),
  type: Type.String(),
  data: Type.Record(Type.String(), Type.Unknown()),
})
const { tenant_id: _, ...auditMembers } = AuditInput.properties
export const JournalAudit = Type.Object(auditMembers)

export const emitEventStep = defineStep('emit_event', EventInput, Type.Void())
export const auditEventStep = defineStep('audit_event', AuditInput, Type.Void())
