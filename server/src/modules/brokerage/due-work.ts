import { sql } from 'kysely'
import type { DueCondition } from '../../platform/jobs.ts'

/** What the background work of this module waits for, each by a partial index of the open rows alone. */
export const tradesDue: DueCondition = (now) => sql`(
  exists (select 1 from rh_runs where state in ('approved', 'executing') and next_attempt_at <= ${now})
  or exists (select 1 from rh_runs where state = 'pending_approval' and least(expires_at, execute_by) <= ${now}))`

export const hasActivePaperAccounts: DueCondition = (now) =>
  sql`exists (select 1 from paper_accounts where active and looked_at <= ${now})`
