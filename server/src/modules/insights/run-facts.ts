import { sql } from 'kysely'
import type { Tx } from '../../platform/db.ts'
import type { CommittedEvent } from '../webhooks/dispatch.ts'

/** What a run of each lane is thought to cost us, in micro-dollars. */
export type LaneCosts = () => Record<string, number>

const endings = ['run.completed', 'run.blocked', 'run.failed']

/**
 * Adds runs to the sums when their end is announced. It rides on the numbering of events, which happens once for each
 * and in one place, so no run is counted twice and no request waits for a sum.
 */
export const createFoldRuns = (costs: LaneCosts) => async (tx: Tx, events: readonly CommittedEvent[]) => {
  const ended = events
    .filter(({ type }) => endings.includes(type))
    .map(({ data }) => (data as { run_id?: string }).run_id)
    .filter((id) => id !== undefined)
  if (ended.length > 0) await sql`select fold_runs(${ended}::text[], ${JSON.stringify(costs())}::jsonb)`.execute(tx)
}
