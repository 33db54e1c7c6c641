import { callStep } from './batch.ts'
import type { Tx } from './db.ts'
import type { Ids } from './ids.ts'
import { auditEventStep, emitEventStep } from './outbox.steps.ts'

/** `emit` and `audit` for transactions written in TypeScript; SQL steps call the same two SQL functions. */
export type OutboxEvent = { tenantId: string | null; type: string; data: Record<string, unknown>; at: Date }

export type AuditEvent = {
  /** Given when an answer names the event before it is written. */
  id?: string
  tenantId: string | null
  type: string
  actor: string
  subject: string
  at: Date
  decision?: string
  policyIds?: readonly string[]
  inputHash?: string
  data?: Record<string, unknown>
}

export type Outbox = ReturnType<typeof createOutbox>

export function createOutbox(ids: Ids) {
  return {
    /** Delivered after the transaction has committed, and never if it has not. */
    async emit(tx: Tx, { tenantId, type, data, at }: OutboxEvent): Promise<void> {
      const row = { id: ids.next('evt'), tenant_id: tenantId, type, data, created_at: at.toISOString() }
      await callStep(tx, emitEventStep, row)
    },

    async audit(tx: Tx, event: AuditEvent): Promise<void> {
      const { id, tenantId, type, actor, subject, at, decision, policyIds = [], inputHash, data = {} } = event
      const row = {
        id: id ?? ids.next('aud'),
        tenant_id: tenantId,
        type,
        occurred_at: at.toISOString(),
        actor,
        subject,
        decision,
        policy_ids: [...policyIds],
        input_hash: inputHash,
        data,
      }
      await callStep(tx, auditEventStep, row)
    },
  }
}
