import { sql } from 'kysely'
import type { DueCondition } from '../../platform/jobs.ts'

/** What the background work of this module waits for, each by a partial index of the open rows alone. */
export const preauthsDue: DueCondition = (now) =>
  sql`exists (select 1 from preauths where status in ('open', 'in_use') and close_by <= ${now})`

export const reportedClosesDue: DueCondition = (now) =>
  sql`exists (select 1 from preauths where settlement_check_at <= ${now})`

export const approvedRunsDue: DueCondition = (now) => sql`exists (select 1 from approvals where start_at <= ${now})`

export const approvalsDue: DueCondition = (now) => sql`exists (
  select 1 from approvals
  where status <> 'rejected' and consumed_by is null and lapsed_at is null and expires_at <= ${now})`

export const messagesDue: DueCondition = (now) =>
  sql`exists (select 1 from approval_messages where state = 'pending' and next_attempt_at <= ${now})`
