import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'

/** What a run of each lane is thought to cost us, in micro-dollars, for runs that do not say what they cost. */
export type LaneCosts = () => Record<string, number>

/**
 * Adds runs to the sums when their end is announced. It rides on the numbering of events, which happens once for each
 * and in one place, so no run is counted twice and no request waits for a sum.
 */
export const createFoldRuns = (costs: LaneCosts) => async (tx: Tx, eventIds: readonly string[]) => {
  await sql`select fold_runs(ended_runs(${eventIds}::text[]), ${JSON.stringify(costs())}::jsonb)`.execute(tx)
}
