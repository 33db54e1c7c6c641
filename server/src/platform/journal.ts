import { type RawBuilder, sql } from 'kysely'
import { type Db, isUnavailable, type Tx } from './db.ts'
import type { Log } from './log.ts'
import { BatchWithdrawn, type SequencedTask } from './sequencer.ts'

/** A row of the journal: what one step left to be numbered and summed after its commit. */
export type JournalRow = {
  id: bigint
  tenant_id: string | null
  at: Date
  events: JournalEvent[] | null
  audits: JournalAudit[] | null
  receipt_id: string | null
  ledger_id: string | null
  ended: Record<string, unknown> | null
}

export type JournalEvent = { id: string; type: string; data: unknown; only_for?: string }

export type JournalAudit = {
  id: string
  type: string
  occurred_at: string
  actor: string
  subject: string
  decision?: string | null
  policy_ids?: string[] | null
  input_hash?: string | null
  data?: unknown
}

export type JournalColumn = 'events' | 'audits' | 'receipt_id' | 'ledger_id' | 'ended'

/** What writes one column of the journal to its final place. Each column has one consumer. */
export type JournalConsumer = {
  name: string
  column: JournalColumn
  /** What to read instead of the whole column, for a consumer that can leave rows out early. */
  read?: RawBuilder<unknown>
  /** True when the consumer wants to be called although no row waits for it. */
  isDue?(): boolean
  /** `rows` have the column and are in the order of the journal. Throws `BatchTooLargeError` when it wants fewer of them. */
  process(tx: Tx, rows: JournalRow[]): Promise<void>
  /** Called when the commit of what `process` wrote was confirmed. When it fails, `isDue` must ask for another call. */
  afterCommit?(db: Db): Promise<void>
  /** Called when this process has taken the sequencer's lease. */
  onLease?(): void
}

/** `rows` is how many rows of this batch would have been few enough. */
export class BatchTooLargeError extends Error {
  readonly rows: number
  constructor(rows: number) {
    super(`The batch is too large: ${rows} rows of it fit.`)
    this.rows = rows
  }
}

export type JournalDeps = {
  log: Pick<Log, 'error' | 'debug'>
  consumers: readonly JournalConsumer[]
  /** Other tables whose rows live for seconds; they are vacuumed with the journal. */
  shortLivedTables?: readonly string[]
  batchSize?: number
}

const COLUMNS: readonly JournalColumn[] = ['events', 'audits', 'receipt_id', 'ledger_id', 'ended']
const BATCH_SIZE = 2_000
// Ids are given before commit, so a row can appear below ids that are already gone. Rows older than this are looked for only
// by the full scan, which also is the one that keeps the promise that no row is ever skipped.
const LATE_COMMIT_MS = 2_000
const FULL_SCAN_MS = 1_000
// Deleted rows stay in the table and its index until a vacuum; after so many, or when nothing has come for a while, it is run.
const ROWS_PER_VACUUM = 5_000
const QUIET_MS = 5_000
const FIRST_BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000

/**
 * Takes rows from the journal in batches and hands each column to its consumer, in one transaction of the sequencer that
 * also deletes the rows. A consumer that fails is left out for a while and its column stays in the journal, so that
 * a damaged log does not hold up webhooks, nor the other way round.
 */
export function createJournalTask({
  log,
  consumers,
  shortLivedTables = [],
  batchSize = BATCH_SIZE,
}: JournalDeps): SequencedTask {
  const backoffs = new Map<JournalColumn, { until: number; delayMs: number }>()
  let limit = batchSize
  /** No row below it is looked for until the next full scan. */
  let floor = 0n
  /** The highest id taken so far and when, oldest first: what was taken long enough ago becomes the floor. */
  const batchEnds: { id: bigint; at: number }[] = []
  let scannedAt = Number.NEGATIVE_INFINITY
  let rowsSinceVacuum = 0
  let tookAt = 0

  const isActive = ({ column }: JournalConsumer) => (backoffs.get(column)?.until ?? 0) <= performance.now()

  const raiseFloor = (now: number) => {
    while (batchEnds[0] && batchEnds[0].at < now - LATE_COMMIT_MS) {
      const { id } = batchEnds.shift()!
      if (id > floor) floor = id
    }
  }

  const scanFrom = (now: number): bigint => {
    raiseFloor(now)
    if (now - scannedAt < FULL_SCAN_MS) return floor
    scannedAt = now
    return 0n
  }

  /** Leaves the failed consumer out for a while; the batch is done again without it. */
  const leaveOut = (consumer: JournalConsumer, error: unknown) => {
    const delayMs = Math.min((backoffs.get(consumer.column)?.delayMs ?? FIRST_BACKOFF_MS / 2) * 2, MAX_BACKOFF_MS)
    backoffs.set(consumer.column, { until: performance.now() + delayMs, delayMs })
    log.error({ err: error, consumer: consumer.name }, 'a consumer of the journal failed and will be retried')
  }

  let from = 0n
  let processed: JournalConsumer[] = []
  return {
    name: 'journal',

    onLease() {
      for (const consumer of consumers) consumer.onLease?.()
    },

    async afterCommit(db) {
      for (const consumer of processed.splice(0)) {
        try {
          await consumer.afterCommit?.(db)
        } catch (error) {
          if (isUnavailable(error)) throw error
          leaveOut(consumer, error)
        }
      }
    },

    async hasWork(db) {
      const active = consumers.filter(isActive)
      from = scanFrom(performance.now())
      if (active.some((consumer) => consumer.isDue?.())) return true
      return isAnyRow(db, from, keptColumns(active))
    },

    async processBatch(tx) {
      const active = consumers.filter(isActive)
      processed = []
      const rows = await takeRows(tx, { from, limit, active, kept: keptColumns(active) })
      for (const consumer of active) {
        const own = rows.filter((row) => row[consumer.column] !== null)
        if (own.length === 0 && !consumer.isDue?.()) continue
        try {
          await consumer.process(tx, own)
          processed.push(consumer)
          backoffs.delete(consumer.column)
        } catch (error) {
          if (isUnavailable(error)) throw error
          if (error instanceof BatchTooLargeError) limit = Math.max(1, rows.indexOf(own[error.rows]!))
          else leaveOut(consumer, error)
          throw new BatchWithdrawn()
        }
      }
      const isFull = rows.length === limit
      limit = Math.min(batchSize, limit * 2)
      if (rows.length > 0) {
        tookAt = performance.now()
        batchEnds.push({ id: rows.at(-1)!.id, at: tookAt })
        rowsSinceVacuum += rows.length
      }
      return isFull
    },

    async maintain(db) {
      const isQuiet = rowsSinceVacuum > 0 && performance.now() - tookAt > QUIET_MS
      if (rowsSinceVacuum < ROWS_PER_VACUUM && !isQuiet) return
      rowsSinceVacuum = 0
      // Giving pages back to the system locks the table, so it waits until nothing is being written.
      for (const table of ['journal', ...shortLivedTables])
        await sql`vacuum (truncate ${sql.lit(isQuiet)}) ${sql.table(table)}`
          .execute(db)
          .catch((error) => log.debug({ err: error, table }, 'a table could not be vacuumed; autovacuum will do it'))
    },
  }

  function keptColumns(active: readonly JournalConsumer[]): JournalColumn[] {
    return consumers.filter((consumer) => !active.includes(consumer)).map(({ column }) => column)
  }
}

const anyOf = (columns: readonly JournalColumn[]) =>
  sql`(${sql.join(
    columns.map((column) => sql`journal.${sql.ref(column)} is not null`),
    sql` or `,
  )})`

/** While a consumer is left out, only rows with something for another one are of interest. */
const whereOfInterest = (from: bigint, kept: readonly JournalColumn[]) => {
  const rest = COLUMNS.filter((column) => !kept.includes(column))
  if (kept.length === 0) return sql`id > ${from}`
  return rest.length === 0 ? sql`false` : sql`id > ${from} and ${anyOf(rest)}`
}

async function isAnyRow(db: Db, from: bigint, kept: readonly JournalColumn[]): Promise<boolean> {
  const { rows } = await sql<{ some: boolean }>`
    select (select id from journal where ${whereOfInterest(from, kept)} order by id limit 1) is not null as some
  `.execute(db)
  return rows[0]!.some
}

type Take = { from: bigint; limit: number; active: readonly JournalConsumer[]; kept: readonly JournalColumn[] }

/** Reads the next rows and deletes them; of a row with a kept column, only the other columns are cleared. */
async function takeRows(tx: Tx, { from, limit, active, kept }: Take): Promise<JournalRow[]> {
  const values = sql.join(
    COLUMNS.map((column) => {
      const consumer = active.find((candidate) => candidate.column === column)
      return sql`${consumer ? (consumer.read ?? sql`journal.${sql.ref(column)}`) : sql`null`} as ${sql.ref(column)}`
    }),
  )
  const places = sql`array(select ctid from journal where ${whereOfInterest(from, kept)} order by id limit ${limit})`
  const { rows } =
    kept.length === 0
      ? await sql<JournalRow>`
          with batch as (
            delete from journal where ctid = any(${places}) returning id, tenant_id, at, ${values}
          )
          select * from batch order by id
        `.execute(tx)
      : await sql<JournalRow>`
          with batch as materialized (
            select ctid as place, ${anyOf(kept)} as is_kept, id, tenant_id, at, ${values} from journal where ctid = any(${places})
          ), deleted as (
            delete from journal where ctid = any(array(select place from batch where not is_kept))
          ), cleared as (
            update journal set ${sql.join(COLUMNS.filter((column) => !kept.includes(column)).map((column) => sql`${sql.ref(column)} = null`))}
            where ctid = any(array(select place from batch where is_kept))
          )
          select id, tenant_id, at, events, audits, receipt_id, ledger_id, ended from batch order by id
        `.execute(tx)
  return rows
}
