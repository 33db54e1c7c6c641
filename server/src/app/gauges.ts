import { sql } from 'kysely'
import { HEALTH_PARTS, type HealthPart } from '../modules/insights/health.ts'
import { readWitnessFailures } from '../modules/receipts/log-quorum.store.ts'
import type { TransparencyLog } from '../modules/receipts/transparency-log.ts'
import type { Database } from '../platform/db.ts'
import type { EncryptionRotation } from '../platform/encryption-rotation.ts'
import type { AppContext } from './context.ts'
import { readRetentionOverdue } from './retention.ts'

/** Gauges that are read from the database at scrape time, each with one cheap indexed query. */
const gauges: [name: string, help: string, query: string][] = [
  [
    'settlements_open',
    'Payments that are neither settled nor failed.',
    `select count(*) from open_runs where accounts is not null`,
  ],
  [
    'settlements_unknown',
    'Payments whose outcome is not known.',
    `select count(*) from open_runs where payment_state = 'unknown'`,
  ],
  [
    'settlement_overdue_seconds',
    'How long the oldest open payment has been due for its next status check.',
    `select coalesce(extract(epoch from now() - min(next_attempt_at)), 0) from open_runs where payment_state is not null and next_attempt_at < now()`,
  ],
  [
    'runs_unfinished',
    'Runs between admission and their end.',
    `select count(*) from open_runs where state in ('executing', 'settling')`,
  ],
  [
    'receipts_unsequenced',
    'Receipts that wait for their place in the log.',
    'select count(*) from (select 1 from journal where id > 0 and receipt_id is not null limit 10000) waiting',
  ],
  [
    'events_undispatched',
    'Events that wait to be numbered.',
    'select coalesce(sum(jsonb_array_length(events)), 0) from (select events from journal where id > 0 and events is not null limit 10000) waiting',
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
    `select (select count(*) from preauths where status in ('open', 'in_use')) + (select count(*) from preauths where status = 'escalated')`,
  ],
  [
    'preauth_oldest_seconds',
    'Age of the oldest pre-authorised payment that is not closed.',
    `select coalesce(extract(epoch from now() - least(
      (select min(issued_at) from preauths where status in ('open', 'in_use')), (select min(issued_at) from preauths where status = 'escalated'))), 0)`,
  ],
  [
    'holds_open',
    'Holds on budgets, mandates and exposure that are neither spent nor released.',
    'select count(*) from open_holds',
  ],
]

const COUNTERS_PER_SCRAPE = 200

/**
 * Counters past their limit. The table's CHECK refuses them, so this only finds a damaged database: each scrape examines the
 * next counters, and the gauge keeps what the last pass over all of them has found.
 */
function createOverspentReader(db: AppContext['db']) {
  let position = { scope: '', period: '' }
  let foundInPass = 0
  let foundInLastPass = 0
  return async (): Promise<number> => {
    const { rows } = await sql<{ scope: string; period: string; overspent: boolean }>`
      select scope, period, spent_micro + reserved_micro > limit_micro as overspent from limits
      where (scope, period) > (${position.scope}, ${position.period}) order by scope, period limit ${COUNTERS_PER_SCRAPE}
    `.execute(db)
    foundInPass += rows.filter(({ overspent }) => overspent).length
    const overspentCount = Math.max(foundInPass, foundInLastPass)
    if (rows.length === COUNTERS_PER_SCRAPE) {
      position = rows.at(-1)!
      return overspentCount
    }
    position = { scope: '', period: '' }
    foundInLastPass = foundInPass
    foundInPass = 0
    return foundInLastPass
  }
}

const createRegister =
  ({ metrics, log }: Pick<AppContext, 'metrics' | 'log'>) =>
  (name: string, help: string, read: () => Promise<number>) =>
    metrics.gauge(name, help, () =>
      read().catch((error) => {
        // NaN shows up as a gap in monitoring; a zero would look like a reading.
        log.debug({ err: error, gauge: name }, 'a gauge could not be read')
        return Number.NaN
      }),
    )

/** Whether a failover could lose what was answered. */
export function registerDatabaseGauges(
  context: Pick<AppContext, 'metrics' | 'log'>,
  database: Pick<Database, 'readReplication'>,
  { isEmbedded }: { isEmbedded: boolean },
) {
  createRegister(context)(
    'database_replication_missing',
    '1 when commits wait for no other server, 0 when they do and with the embedded database.',
    async () => (isEmbedded || (await database.readReplication()) ? 0 : 1),
  )
}

/** How the log stands with the witnesses of LOG_POLICY. */
export function registerLogGauges(
  context: Pick<AppContext, 'db' | 'metrics' | 'log'>,
  transparencyLog: Pick<TransparencyLog, 'quorum'>,
  { hasPolicy }: { hasPolicy: boolean },
) {
  const register = createRegister(context)
  register(
    'log_quorum_missing_seconds',
    'For how long the newest tree of the log has been without its quorum; 0 when none is asked for.',
    async () => (await transparencyLog.quorum())?.behindSeconds ?? 0,
  )
  if (!hasPolicy) return
  register(
    'log_cosigned_entries',
    'Entries of the largest tree of the log that has the quorum of LOG_POLICY.',
    async () => Number((await transparencyLog.quorum())?.cosignedSize),
  )
  context.metrics.gauges(
    'log_witness_failures',
    'How often in a row a witness of LOG_POLICY has not cosigned a checkpoint.',
    'witness',
    () =>
      readWitnessFailures(context.db).catch((error) => {
        context.log.debug({ err: error }, 'the failures of witnesses could not be read')
        return {}
      }),
  )
}

/** The problems of `/api/health`, so that an operator is told of them. */
export function registerHealthGauge(
  { metrics }: Pick<AppContext, 'metrics'>,
  health: { report(): Promise<{ problems?: { part: HealthPart }[] }> },
) {
  metrics.gauges(
    'part_problem',
    'Whether a part of the service does not work, as /api/health says: 1 or 0 for each part.',
    'part',
    async () => {
      const { problems = [] } = await health.report()
      return Object.fromEntries(
        HEALTH_PARTS.map((part) => [part, problems.some((problem) => problem.part === part) ? 1 : 0]),
      )
    },
  )
}

export function registerGauges(
  { db, metrics, log }: Pick<AppContext, 'db' | 'metrics' | 'log'>,
  encryptionRotation: Pick<EncryptionRotation, 'progress'>,
) {
  const register = createRegister({ metrics, log })
  for (const [name, help, query] of gauges)
    register(name, help, async () => {
      const { rows } = await sql.raw<Record<string, unknown>>(query).execute(db)
      return Number(Object.values(rows[0]!)[0])
    })
  metrics.gauges(
    'retention_overdue_seconds',
    'For how long the oldest row of a table has been kept beyond its time; 0 while pruning keeps up.',
    'table',
    () =>
      readRetentionOverdue(db).catch((error) => {
        log.debug({ err: error }, 'the retention could not be read')
        return {}
      }),
  )
  metrics.gauges(
    'encryption_values_remaining',
    'Stored values under a key of ENCRYPTION_KEY_PREVIOUS, by table and column; no values when that is not set.',
    'column',
    async () =>
      encryptionRotation.progress().then(
        ({ remaining }) => remaining,
        (error) => {
          log.debug({ err: error }, 'the progress of the encryption could not be read')
          return {}
        },
      ),
  )
  register('limits_overspent', 'Counters past their limit; anything but 0 is a defect.', createOverspentReader(db))
}
