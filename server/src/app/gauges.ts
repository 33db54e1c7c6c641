import { sql } from 'kysely'
import type { AppContext } from './context.ts'

/** Gauges that are read from the database at scrape time, each with one cheap indexed query. */
const gauges: [name: string, help: string, query: string][] = [
  [
    'settlements_open',
    'Payments that are neither settled nor failed.',
    `select count(*) from settlements where state in ('pending', 'unknown')`,
  ],
  [
    'settlements_unknown',
    'Payments whose outcome is not known.',
    `select count(*) from settlements where state = 'unknown'`,
  ],
  [
    'settlement_overdue_seconds',
    'How long the oldest open payment has been due for its next status check.',
    `select coalesce(extract(epoch from now() - min(next_attempt_at)), 0) from settlements where state in ('pending', 'unknown') and next_attempt_at < now()`,
  ],
  [
    'runs_unfinished',
    'Runs between admission and their end.',
    `select count(*) from runs where state in ('executing', 'settling')`,
  ],
  [
    'receipts_unsequenced',
    'Receipts that wait for their place in the log.',
    'select count(*) from (select 1 from journal where receipt_id is not null limit 10000) waiting',
  ],
  [
    'events_undispatched',
    'Events that wait to be numbered.',
    'select coalesce(sum(jsonb_array_length(events)), 0) from (select events from journal where events is not null limit 10000) waiting',
  ],
  [
    'event_age_seconds',
    'Age of the oldest event that waits to be numbered.',
    'select coalesce(extract(epoch from now() - (select at from journal where events is not null order by id limit 1)), 0)',
  ],
  [
    'webhook_overdue_seconds',
    'How long the oldest delivery has been due.',
    `select coalesce(extract(epoch from now() - min(next_attempt_at)), 0) from webhook_deliveries where state = 'pending' and next_attempt_at < now()`,
  ],
  [
    'preauths_open',
    'Pre-authorised payments that are not closed.',
    `select count(*) from preauths where status in ('open', 'in_use', 'escalated')`,
  ],
  [
    'preauth_oldest_seconds',
    'Age of the oldest pre-authorised payment that is not closed.',
    `select coalesce(extract(epoch from now() - min(issued_at)), 0) from preauths where status in ('open', 'in_use', 'escalated')`,
  ],
  [
    'holds_open',
    'Holds on budgets, mandates and exposure that are neither spent nor released.',
    `select count(*) from holds where state = 'open'`,
  ],
  [
    'limits_overspent',
    'Counters past their limit; anything but 0 is a defect.',
    'select count(*) from limits where spent_micro + reserved_micro > limit_micro',
  ],
]

export function registerGauges({ db, metrics, log }: Pick<AppContext, 'db' | 'metrics' | 'log'>) {
  for (const [name, help, query] of gauges)
    metrics.gauge(name, help, async () => {
      try {
        const { rows } = await sql.raw<Record<string, unknown>>(query).execute(db)
        return Number(Object.values(rows[0]!)[0])
      } catch (error) {
        // NaN shows up as a gap in monitoring; a zero would look like a reading.
        log.debug({ err: error, gauge: name }, 'a gauge could not be read')
        return Number.NaN
      }
    })
}
