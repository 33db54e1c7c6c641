import { sql } from 'kysely'
import type { Tx } from '../src/platform/db.ts'

type Recorded = { type: string; actor: string; subject: string; data: Record<string, unknown> }

/** The webhook events of a tenant, or of all, in their order: those in the journal, and those dispatched to somebody. */
export async function readEvents(tx: Tx, tenantId?: string): Promise<Omit<Recorded, 'subject' | 'actor'>[]> {
  const { rows } = await sql<Omit<Recorded, 'subject' | 'actor'>>`
    select type, data from (
      select id, tenant_id, type, data from events
      union all
      select event->>'id', tenant_id, event->>'type', event->'data' from journal cross join jsonb_array_elements(events) as event
    ) recorded
    where ${tenantId ?? null}::text is null or tenant_id = ${tenantId ?? null} order by id
  `.execute(tx)
  return rows
}

/** The audit events of a tenant, or of all, whether they are linked already or still in the journal. */
export async function readAudits(tx: Tx, tenantId?: string): Promise<Recorded[]> {
  const { rows } = await sql<Recorded>`
    select type, actor, subject, data from (
      select id, tenant_id, type, actor, subject, data from audit_events
      union all
      select audit->>'id', tenant_id, audit->>'type', audit->>'actor', audit->>'subject', audit->'data' from journal cross join jsonb_array_elements(audits) as audit
    ) recorded
    where ${tenantId ?? null}::text is null or tenant_id = ${tenantId ?? null} order by id
  `.execute(tx)
  return rows
}
