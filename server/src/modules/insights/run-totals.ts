import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

/** The estimated cost of a run by lane, in micro-dollars, used for runs that do not report their cost. */
export type LaneCosts = () => Record<string, number>

/**
 * Adds runs to the hourly totals when the event of their end gets its sequence number. That happens once for each event
 * and in one process, so no run is counted twice and no request waits for a total.
 */
export const createRunTotalsUpdater = (costs: LaneCosts) => async (tx: Tx, eventIds: readonly string[]) => {
  await sql`select fold_runs(ended_runs(${eventIds}::text[]), ${JSON.stringify(costs())}::jsonb)`.execute(tx)
}
