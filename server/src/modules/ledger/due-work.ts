import { sql } from 'kysely'
import type { DueCondition } from '../../platform/jobs.ts'

/** What the background work of this module waits for, each by an index of the waiting rows alone. */
export const payoutsDue: DueCondition = (now) =>
  sql`exists (select 1 from payouts where state = 'pending' and next_attempt_at <= ${now})`

export const escrowsDue: DueCondition = (now) =>
  sql`exists (select 1 from escrows where state = 'held' and run_id is null and expires_at <= ${now})`
