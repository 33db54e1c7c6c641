/** What PostgreSQL writes and touches for a load, from the WAL itself and from pg_stat_statements. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BenchService } from './bench-service.ts'

export type TableWrites = {
  table: string
  inserted: number
  updated: number
  hot: number
  deleted: number
  locked: number
  /** Parts of large values, which PostgreSQL stores as rows of a TOAST table: written records, but no rows of ours. */
  toasted: number
}

export type StatementCost = { calls: number; ms: number; buffers: number; rows: number; text: string }
export type FunctionCost = { name: string; calls: number; totalMs: number; selfMs: number }

/** Totals of a load, without full-page images in `walBytes`. */
export type Writes = {
  inserted: number
  updated: number
  hot: number
  deleted: number
  locked: number
  toasted: number
  walRecords: number
  walBytes: number
  fullPageImages: number
  fullPageBytes: number
  buffers: number
  foreignKeyChecks: number
  statements: number
  commits: number
  tables: TableWrites[]
  records: { name: string; count: number; bytes: number }[]
  topStatements: StatementCost[]
  functions: FunctionCost[]
}

const QUIET_WINDOW_MS = 300
const QUIET_WINDOWS = 3
/** A renewal of the sequencer's lease writes some 300 bytes; the smallest batch of its work writes more than this. */
const QUIET_BYTES = 1_000
const MAX_DRAIN_MS = 120_000

type Query = BenchService['query']

const readPosition = async (query: Query): Promise<bigint> => {
  const [row] = await query<{ position: string }>(`select (pg_current_wal_insert_lsn() - '0/0')::text as position`)
  return BigInt(row!.position)
}

/**
 * Waits until the sequencer and the jobs have nothing left to write. Returns the WAL position at which that was so.
 * It goes by the WAL and not by names of tables, so that it holds for every version of the service.
 */
export async function waitForDrain(query: Query): Promise<bigint> {
  const deadline = performance.now() + MAX_DRAIN_MS
  let quietSince = await readPosition(query)
  let position = quietSince
  for (let quiet = 0; quiet < QUIET_WINDOWS; ) {
    if (performance.now() > deadline) throw new Error('The service still writes two minutes after the load.')
    await sleep(QUIET_WINDOW_MS)
    const next = await readPosition(query)
    if (next - position < QUIET_BYTES) quiet += 1
    else {
      quiet = 0
      quietSince = next
    }
    position = next
  }
  return quietSince
}

/**
 * Runs a load and returns what it wrote, the work of the sequencer and the jobs after it included. Autovacuum is off
 * meanwhile, because when it runs is chance. The load must have warmed up before.
 */
export async function measureWrites(query: Query, load: () => Promise<unknown>): Promise<Writes> {
  await waitForDrain(query)
  await setSettings(query, { autovacuum: 'off', track_functions: 'all', 'pg_stat_statements.track': 'all' })
  await query('checkpoint')
  await resetStatements(query)
  const functionsBefore = await readFunctions(query)
  const start = await readPosition(query)
  await load()
  const end = await waitForDrain(query)
  const statements = await readStatements(query)
  const topStatements = await readTopStatements(query)
  const functionsAfter = await readFunctions(query)
  await setSettings(query, { autovacuum: 'on', track_functions: 'none', 'pg_stat_statements.track': 'none' })
  const tables = await readTables(query, start, end)
  const sum = (count: (table: TableWrites) => number) => tables.reduce((total, table) => total + count(table), 0)
  const wal = await readWal(query, start, end)
  return {
    inserted: sum((table) => table.inserted),
    updated: sum((table) => table.updated),
    hot: sum((table) => table.hot),
    deleted: sum((table) => table.deleted),
    locked: sum((table) => table.locked),
    toasted: sum((table) => table.toasted),
    ...wal,
    ...statements,
    tables,
    topStatements,
    functions: subtractFunctions(functionsAfter, functionsBefore),
  }
}

async function setSettings(query: Query, settings: Record<string, string>) {
  for (const [name, value] of Object.entries(settings)) await query(`alter system set ${name} = '${value}'`)
  await query('select pg_reload_conf()')
  // Each process reads the new settings when it next waits for a command.
  await sleep(200)
}

/** A number of bytes as the position in the WAL that it is. */
const LSN = `'0/0'::pg_lsn + $`

async function readWal(query: Query, start: bigint, end: bigint) {
  const rows = await query<{ name: string; count: string; bytes: string; images: string }>(
    `select "resource_manager/record_type" as name, count, record_size as bytes, fpi_size as images
     from bench.pg_get_wal_stats(${LSN}1::numeric, ${LSN}2::numeric, true) where count > 0 order by count desc`,
    [`${start}`, `${end}`],
  )
  const [images] = await query<{ count: string }>(
    `select count(*) from bench.pg_get_wal_block_info(${LSN}1::numeric, ${LSN}2::numeric, false) where block_fpi_length > 0`,
    [`${start}`, `${end}`],
  )
  const total = (value: (row: (typeof rows)[number]) => string) =>
    rows.reduce((sum, row) => sum + Number(value(row)), 0)
  return {
    walRecords: total((row) => row.count),
    walBytes: total((row) => row.bytes),
    fullPageImages: Number(images!.count),
    fullPageBytes: total((row) => row.images),
    records: rows.map(({ name, count, bytes }) => ({ name, count: Number(count), bytes: Number(bytes) })),
  }
}

/** Rows by table, read from the WAL. Rows of the catalog are records but not rows here. */
async function readTables(query: Query, start: bigint, end: bigint): Promise<TableWrites[]> {
  const rows = await query<Record<keyof TableWrites, string>>(
    `select relations.table_name as table,
       count(*) filter (where record_type like 'INSERT%' and not is_toast) as inserted,
       count(*) filter (where record_type like 'UPDATE%' or record_type like 'HOT_UPDATE%') as updated,
       count(*) filter (where record_type like 'HOT_UPDATE%') as hot,
       count(*) filter (where record_type like 'DELETE%' and not is_toast) as deleted,
       count(*) filter (where record_type like 'LOCK%') as locked,
       count(*) filter (where record_type like 'INSERT%' and is_toast) as toasted
     from bench.pg_get_wal_block_info(${LSN}1::numeric, ${LSN}2::numeric, false) as block
     join (
       select pg_relation_filenode(file.oid) as filenode, file.relkind = 't' as is_toast,
         coalesce(parent.relname, owner.relname)::text as table_name
       from pg_class as owner
       join pg_namespace on pg_namespace.oid = owner.relnamespace
       join pg_class as file on file.oid in (owner.oid, owner.reltoastrelid)
       left join pg_inherits on inhrelid = owner.oid
       left join pg_class as parent on parent.oid = inhparent
       where owner.relkind = 'r' and nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
     ) as relations on relations.filenode = block.relfilenode
     where resource_manager = 'Heap' and block_id = 0
     group by 1 order by 2 desc, 3 desc, 1`,
    [`${start}`, `${end}`],
  )
  return rows.map((row) => ({
    table: row.table,
    inserted: Number(row.inserted),
    updated: Number(row.updated),
    hot: Number(row.hot),
    deleted: Number(row.deleted),
    locked: Number(row.locked),
    toasted: Number(row.toasted),
  }))
}

/** Leaves out the statements of the measurement itself. */
const SERVICE_STATEMENTS = `query !~* 'pg_current_wal|pg_stat_|pg_reload_conf|^checkpoint|^alter system'`

async function readStatements(query: Query) {
  const [row] = await query<Record<'buffers' | 'checks' | 'statements' | 'commits', string | null>>(
    `select
       sum(shared_blks_hit + shared_blks_read) filter (where toplevel) as buffers,
       sum(calls) filter (where query like '%FOR KEY SHARE OF x%') as checks,
       sum(calls) filter (where toplevel) as statements,
       sum(calls) filter (where toplevel and query ilike 'commit%') as commits
     from bench.pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database()) and ${SERVICE_STATEMENTS}`,
  )
  return {
    buffers: Number(row!.buffers ?? 0),
    foreignKeyChecks: Number(row!.checks ?? 0),
    statements: Number(row!.statements ?? 0),
    commits: Number(row!.commits ?? 0),
  }
}

export const setStatementTracking = (query: Query, track: 'all' | 'none') =>
  setSettings(query, { 'pg_stat_statements.track': track })

export const resetStatements = (query: Query) => query('select bench.pg_stat_statements_reset()')

/** Buffers of the service's statements since `resetStatements`; what a tenant reads runs under a role of its own. */
export async function readBuffers(query: Query): Promise<number> {
  const [row] = await query<{ buffers: string | null }>(
    `select sum(shared_blks_hit + shared_blks_read) as buffers from bench.pg_stat_statements
     where toplevel and userid <> (select oid from pg_roles where rolname = 'postgres')`,
  )
  return Number(row!.buffers ?? 0)
}

async function readTopStatements(query: Query): Promise<StatementCost[]> {
  const rows = await query<Record<keyof StatementCost, string>>(
    `select sum(calls) as calls, sum(total_exec_time) as ms, sum(shared_blks_hit + shared_blks_read) as buffers,
       sum(rows) as rows, regexp_replace(query, '\\s+', ' ', 'g') as text
     from bench.pg_stat_statements
     where dbid = (select oid from pg_database where datname = current_database()) and ${SERVICE_STATEMENTS}
     group by 5 order by 2 desc limit 40`,
  )
  return rows.map((row) => ({
    calls: Number(row.calls),
    ms: Number(row.ms),
    buffers: Number(row.buffers),
    rows: Number(row.rows),
    text: row.text,
  }))
}

async function readFunctions(query: Query): Promise<FunctionCost[]> {
  return query<FunctionCost>(
    `select funcname as name, sum(calls)::int as calls, sum(total_time) as "totalMs", sum(self_time) as "selfMs"
     from pg_stat_user_functions group by 1`,
  )
}

const subtractFunctions = (after: FunctionCost[], before: FunctionCost[]): FunctionCost[] => {
  const earlier = new Map(before.map((cost) => [cost.name, cost]))
  return after
    .map(({ name, calls, totalMs, selfMs }) => ({
      name,
      calls: calls - (earlier.get(name)?.calls ?? 0),
      totalMs: totalMs - (earlier.get(name)?.totalMs ?? 0),
      selfMs: selfMs - (earlier.get(name)?.selfMs ?? 0),
    }))
    .filter(({ calls }) => calls > 0)
    .toSorted((a, b) => b.selfMs - a.selfMs)
}
