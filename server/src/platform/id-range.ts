import { sql } from 'kysely'
import type { Tx } from './db.ts'

/**
 * Ids begin with the time at which they are made, so the index that a list follows also finds a range of time. Times go
 * to the database as dates: it does not read every text that `new Date` does.
 */
export async function firstIdSince(tx: Tx, prefix: string, tenantId: string, since: string, until?: string) {
  const { rows } = await sql<{ id: string }>`
    select first_run_id(${tenantId}, ${new Date(since)}, ${until === undefined ? null : new Date(until)}) as id
  `.execute(tx)
  return rows[0]!.id.replace(/^run/, prefix)
}

/** A row's own time is that of its id or a little later, unless a clock was set back between the two. */
export const endIdUntil = (prefix: string, until: string) =>
  sql<string>`first_id(${prefix}, ${new Date(until)}::timestamptz + interval '1 second')`
