import { sql } from 'kysely'
import type { Db } from '../../platform/db.ts'

const MONTHS_AHEAD = 2
const DAY_MS = 86_400_000

/** Makes the partitions of the coming months, so that no row goes to a default partition. */
export async function makePartitions(db: Db, now: Date): Promise<number> {
  const { rows } = await sql<{ made: number }>`
    select make_partitions('ended_runs', 'run', ${now}, ${MONTHS_AHEAD}) + make_partitions('ledger', 'ltx', ${now}, ${MONTHS_AHEAD}) as made
  `.execute(db)
  return rows[0]!.made
}

/** Drops whole partitions of runs that ended longer ago than `days`; with 0 days all runs are kept. */
export async function dropOldRuns(db: Db, days: number, now: Date): Promise<number> {
  if (days === 0) return 0
  const { rows } = await sql<{ dropped: number }>`
    select drop_ended_runs(${new Date(now.getTime() - days * DAY_MS)}) as dropped
  `.execute(db)
  return rows[0]!.dropped
}
