import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { EventType } from './event-types.ts'

export type NewEvent = { tenantId: string; type: EventType; data: Record<string, unknown>; at: Date }
export type Emit = (tx: Tx, event: NewEvent) => Promise<void>

/** Writes an event into the outbox, in the transaction of what happened: both are kept or neither is. */
export const createEmit =
  (ids: Pick<Ids, 'next'>): Emit =>
  async (tx, event) => {
    const row = {
      id: ids.next('evt'),
      tenant_id: event.tenantId,
      type: event.type,
      data: event.data,
      created_at: event.at,
    }
    await sql`select emit_event(${JSON.stringify(row)}::jsonb)`.execute(tx)
  }
