import { dirname, join } from 'node:path'
import type pg from 'pg'
import type { Database } from './db.ts'
import { findPendingChanges, readMigrations, type SchemaChange } from './migrate.ts'

/** What a pending migration does to one table that exists already, as PostgreSQL itself says. */
export type TablePlan = {
  table: string
  /** The strongest lock it holds until its end. */
  lock: LockMode
  /** All of it is written anew. */
  isRewritten: boolean
  rows: number
  bytes: number
}
export type MigrationPlan = { name: string; creates: string[]; tables: TablePlan[] }

const lockModes = {
  RowExclusiveLock: 'its rows are written; others read and write on',
  ShareUpdateExclusiveLock: 'others read and write on',
  ShareLock: 'others read on, writers wait',
  ShareRowExclusiveLock: 'others read on, writers wait',
  ExclusiveLock: 'others read on, writers wait',
  AccessExclusiveLock: 'readers and writers wait',
} as const
type LockMode = keyof typeof lockModes
const strength = Object.keys(lockModes)

/** Left behind by a plan that was killed, it is removed by the next one. */
const SCRATCH = 'countersign_plan'

/**
 * What the pending migrations would lock, without touching a table of the service: they are applied in an empty schema
 * that was brought to the state of the database, and PostgreSQL is asked for the locks and files of each.
 */
export async function planMigrations(
  database: Pick<Database, 'connect'>,
  root = join(dirname(import.meta.dirname), '..'),
): Promise<MigrationPlan[]> {
  const client = await database.connect()
  const home = (await client.query<{ home: string }>('select current_schema() as home')).rows[0]!.home
  try {
    const pending = await readPending(client, root)
    const pendingNames = new Set(pending.map((change) => change.name))
    await client.query(
      `drop schema if exists ${SCRATCH} cascade; create schema ${SCRATCH}; set search_path = ${SCRATCH}`,
    )
    for (const migration of readMigrations(root))
      if (!pendingNames.has(migration.name)) await client.query(migration.text)
    const plans: MigrationPlan[] = []
    for (const change of pending.filter(({ name }) => name !== 'sql')) plans.push(await tryChange(client, change))
    await client.query(`set search_path = ${home}`)
    for (const plan of plans) for (const table of plan.tables) Object.assign(table, await readSize(client, table.table))
    return plans
  } finally {
    await client.query(`drop schema if exists ${SCRATCH} cascade`).catch(() => {})
    await client.end()
  }
}

async function readPending(client: pg.Client, root: string): Promise<SchemaChange[]> {
  const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('migrations') is not null as exists`)
  if (rows[0]!.exists) return findPendingChanges(client, { root })
  return readMigrations(root)
}

async function tryChange(client: pg.Client, change: SchemaChange): Promise<MigrationPlan> {
  const before = await readFiles(client)
  await client.query('begin')
  await client.query(change.text)
  const { rows: locks } = await client.query<{ table: string; lock: LockMode }>(`
    select class.relname as table, mode as lock from pg_locks join pg_class class on class.oid = relation
    where pid = pg_backend_pid() and locktype = 'relation' and class.relnamespace = current_schema()::regnamespace`)
  await client.query('commit')
  const after = await readFiles(client)
  const tables = [...before.keys()].flatMap((table): TablePlan[] => {
    const held = locks.filter((row) => row.table === table && strength.includes(row.lock))
    if (held.length === 0) return []
    const lock = held.map((row) => row.lock).reduce((a, b) => (strength.indexOf(a) > strength.indexOf(b) ? a : b))
    return [{ table, lock, isRewritten: after.has(table) && after.get(table) !== before.get(table), rows: 0, bytes: 0 }]
  })
  return { name: change.name, creates: [...after.keys()].filter((table) => !before.has(table)), tables }
}

/** The file of each table: another one after a migration means that the table was written anew. */
async function readFiles(client: pg.Client): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; file: string }>(`
    select relname as name, coalesce(pg_relation_filenode(oid), 0)::text as file from pg_class
    where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') order by relname`)
  return new Map(rows.map((row) => [row.name, row.file]))
}

async function readSize(client: pg.Client, table: string): Promise<{ rows: number; bytes: number }> {
  const { rows } = await client.query<{ rows: string; bytes: string }>(
    `select coalesce(sum(greatest(class.reltuples, 0)), 0)::bigint::text as rows,
            coalesce(sum(pg_total_relation_size(class.oid)), 0)::text as bytes
     from pg_class class
     where class.oid = to_regclass($1) or class.oid in (select relid from pg_partition_tree(to_regclass($1)))`,
    [table],
  )
  return { rows: Number(rows[0]!.rows), bytes: Number(rows[0]!.bytes) }
}

/** The plan in words, for an operator. */
export function describePlan(plans: MigrationPlan[]): string {
  if (plans.length === 0) return 'No migration is pending.'
  return plans
    .map(({ name, creates, tables }) =>
      [
        name,
        ...(creates.length > 0 ? [`  creates ${creates.join(', ')}`] : []),
        ...tables.map(
          ({ table, lock, isRewritten, rows, bytes }) =>
            `  locks ${table} (${lock}: ${lockModes[lock]}), about ${rows.toLocaleString('en')} rows, ${formatBytes(bytes)}${isRewritten ? ', written anew' : ''}`,
        ),
        ...(creates.length + tables.length === 0 ? ['  locks no table'] : []),
      ].join('\n'),
    )
    .join('\n')
}

const formatBytes = (bytes: number) =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
