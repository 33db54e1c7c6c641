import { sql } from 'kysely'
import type { DueCondition } from '../../platform/jobs.ts'

/** What the background work of this module waits for, each read from the open runs or by an index of the waiting rows alone. */
export const settlementsDue: DueCondition = (now) =>
  sql`exists (select 1 from open_runs where payment_state is not null and next_attempt_at <= ${now})`

export const failedSettlementsDue: DueCondition = (now) =>
  sql`exists (select 1 from settlement_records where state = 'failed' and next_attempt_at <= ${now})`

export const runsUnfinished: DueCondition = () =>
  sql`exists (select 1 from open_runs where state in ('executing', 'settling'))`
