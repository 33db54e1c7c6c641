import { sql } from 'kysely'
import type { DueCondition } from '../../platform/jobs.ts'

/** What the background work of this module waits for, each by a partial index of the open rows alone. */
export const settlementsDue: DueCondition = (now) =>
  sql`exists (select 1 from settlements where state in ('pending', 'unknown') and next_attempt_at <= ${now})`

export const failedSettlementsDue: DueCondition = (now) =>
  sql`exists (select 1 from settlements where state = 'failed' and next_attempt_at <= ${now})`

export const runsUnfinished: DueCondition = () =>
  sql`exists (select 1 from runs where state in ('executing', 'settling'))`
