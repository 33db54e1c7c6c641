import { sql } from 'kysely'
import type { Clock } from '../../platform/clock.ts'
import type { JournalConsumer } from '../../platform/journal.ts'

/** The estimated cost of a run by lane, in micro-dollars, used for runs that do not report their cost. */
export type LaneCosts = () => Record<string, number>

const HOUR_MS = 3_600_000
const LANE_WINDOW_MS = 30 * 24 * HOUR_MS

/**
 * Adds ended runs from the journal to the sums of their tenants and lanes. Each run's end is in the journal once and one
 * process takes it from there, so no run is counted twice and no request waits for a total.
 */
export function createRunTotals({ clock, costs }: { clock: Clock; costs: LaneCosts }): JournalConsumer {
  let windowStart = 0
  const currentWindowStart = () => Math.floor(clock.now().getTime() / HOUR_MS) * HOUR_MS - LANE_WINDOW_MS

  return {
    name: 'run totals',
    column: 'ended',
    // Once an hour the oldest hour leaves the window of the lanes' statistics.
    isDue: () => currentWindowStart() > windowStart,

    async process(tx, rows) {
      const ended = JSON.stringify(rows.map(({ tenant_id, ended }) => ({ ...ended, tenant_id })))
      if (rows.length > 0) await sql`select fold_runs(${ended}::jsonb, ${JSON.stringify(costs())}::jsonb)`.execute(tx)
      const start = currentWindowStart()
      if (start > windowStart) await sql`select expire_lane_hours(${new Date(start)})`.execute(tx)
      windowStart = start
    },
  }
}
