import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { ConfigError } from './config.ts'
import type { Database } from './db.ts'
import { SCHEMA_VERSION } from './generated/schema-version.ts'
import type { Log } from './log.ts'
import { requireSession } from './pooler.ts'
import { requireServerVersion } from './server-version.ts'
import { secureTenantReads, type TenantReads } from './tenant-reads.ts'

/**
 * The oldest schema version whose processes may run beside this release's. Raise it, to the version of the release
 * before, with a migration or function that those cannot live with: a column they read is dropped, a function they call
 * gets other parameters.
 */
export const OLDEST_BESIDE = 1

/** Where the migrations and the functions are, and which release they are of. Tests pass others. */
export type SchemaSource = { root: string; version: number; oldestBeside: number }

const ownSchema: SchemaSource = {
  root: join(import.meta.dirname, '..', '..'),
  version: SCHEMA_VERSION,
  oldestBeside: OLDEST_BESIDE,
}

export type MigrateOptions = {
  schema?: SchemaSource
  log?: Pick<Log, 'info'>
  /** How long the beat of a process that is too old is watched before it counts as gone. */
  watchMs?: number
  /** How long another process may migrate before this one gives up. */
  lockWaitMs?: number
}

type Queries = Pick<pg.Client, 'query'>
type Recorded = { version: number; oldest_beside: number }

/** So short, because whoever wants the table next waits behind a migration that waits. */
const LOCK_TIMEOUT_MS = 2_000
const LOCK_ATTEMPTS = 100
const LOCK_PAUSE_MS = 1_000
/** Longer than a process goes without a beat. */
const WATCH_MS = 10_000
const LOCK_WAIT_MS = 30 * 60_000
const LOCK_POLL_MS = 100
const SAY_WAITING_MS = 5_000
const LOCK_NOT_AVAILABLE = '55P03'

/**
 * Forward-only: each migration runs once, in a transaction of its own, under one lock for all processes.
 * The SQL functions under `sql/` are code, not data: when one of them changes, all are created again in one transaction.
 * Processes of an older release may be running: migrations only add what those can live with, up to `oldestBeside`
 * (docs/decisions/0041-rolling-upgrades.md), and a process of an older release changes nothing.
 */
export async function migrate(
  database: Pick<Database, 'connect'> & Partial<Pick<Database, 'hasDirectAddress'>>,
  { schema = ownSchema, log, watchMs = WATCH_MS, lockWaitMs = LOCK_WAIT_MS }: MigrateOptions = {},
): Promise<{ applied: string[]; warnings: string[]; tenantReads: TenantReads }> {
  const client = await database.connect()
  const applied: string[] = []
  // A migration warns when data that was there before means something else from now on.
  const warnings: string[] = []
  client.on('notice', ({ severity, message }) => severity === 'WARNING' && message && warnings.push(message))
  try {
    await requireServerVersion(client)
    await requireSession(client, database)
    await takeMigrationLock(client, lockWaitMs, log)
    await client.query(CREATE_RECORDS)
    const recorded = await readRecordedVersion(client)
    if (recorded && recorded.oldest_beside > schema.version)
      throw new ConfigError(
        `This release has schema version ${schema.version}. The database is at version ${recorded.version}, beside which only releases from version ${recorded.oldest_beside} on may run: start a newer release.`,
      )
    const isOlder = recorded !== undefined && recorded.version > schema.version
    if (!isOlder) {
      await requireNoOlderProcess(client, schema, watchMs)
      for (const change of await findPendingChanges(client, schema)) {
        await applyChange(client, change, log)
        applied.push(change.name)
      }
      await client.query(
        `insert into schema_versions (version, oldest_beside) values ($1, $2)
         on conflict (version) do update set oldest_beside = excluded.oldest_beside
         where schema_versions.oldest_beside <> excluded.oldest_beside`,
        [schema.version, schema.oldestBeside],
      )
    }
    return { applied, warnings, tenantReads: await secureTenantReads(client) }
  } finally {
    await client.end()
  }
}

/**
 * The lock is the session's, so the database releases it when the process is killed; the probes of the connection do the
 * same for a machine that is gone.
 */
async function takeMigrationLock(client: Queries, waitMs: number, log: MigrateOptions['log']) {
  await client.query(`set statement_timeout = 0; set application_name = 'countersign migrate';
    set tcp_keepalives_idle = 15; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3`)
  const startedAt = performance.now()
  let sayAt = startedAt + SAY_WAITING_MS
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      `select pg_try_advisory_lock(hashtext('countersign/migrate')) as taken`,
    )
    if (rows[0]!.taken) return
    const now = performance.now()
    const isOver = now - startedAt >= waitMs
    if (isOver || now >= sayAt) {
      sayAt = now + SAY_WAITING_MS
      const others = await describeMigrations(client)
      if (isOver) throw new Error(`Another process has been migrating this database for too long: ${others}.`)
      log?.info({ waited_s: Math.round((now - startedAt) / 1000), others }, 'waits for another process that migrates')
    }
    await delay(LOCK_POLL_MS)
  }
}

/** Sessions that migrate or wait to: which they are tells an operator what to look for. */
async function describeMigrations(client: Queries): Promise<string> {
  const { rows } = await client.query<{ pid: number; host: string; since: string }>(`
    select pid, coalesce(host(client_addr), 'this machine') as host, to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') as since
    from pg_stat_activity
    where datname = current_database() and application_name = 'countersign migrate' and pid <> pg_backend_pid()
    order by backend_start limit 5`)
  const list = rows.map(({ pid, host, since }) => `session ${pid} from ${host} since ${since}`)
  return list.join(', ') || 'a session of an older release'
}

const CREATE_RECORDS = `
  create table if not exists migrations (name text primary key, sha256 text not null, applied_at timestamptz not null default now());
  create table if not exists schema_versions (version int primary key, oldest_beside int not null, applied_at timestamptz not null default now())`

async function readRecordedVersion(client: Queries): Promise<Recorded | undefined> {
  const { rows } = await client.query<Recorded>(
    'select version, oldest_beside from schema_versions order by version desc limit 1',
  )
  return rows[0]
}

/** What a process needs is not removed while it runs. Releases from before the table `instances` are version 1 and unseen. */
async function requireNoOlderProcess(client: Queries, schema: SchemaSource, watchMs: number) {
  const readBeats = async () => {
    const { rows } = await client.query<{ id: string; beat: string; version: number }>(
      'select id, beat::text, coalesce(schema_version, 1) as version from instances where coalesce(schema_version, 1) < $1',
      [schema.oldestBeside],
    )
    return rows
  }
  const { rows } = await client.query<{ exists: boolean }>(`select to_regclass('instances') is not null as exists`)
  if (!rows[0]!.exists) return
  const before = new Map((await readBeats()).map((row) => [row.id, row.beat]))
  if (before.size === 0) return
  await delay(watchMs)
  const running = (await readBeats()).filter((row) => before.get(row.id) !== row.beat)
  if (running.length > 0)
    throw new ConfigError(
      `Schema version ${schema.version} removes what processes before version ${schema.oldestBeside} need, and ${running.length} such ${running.length === 1 ? 'process is' : 'processes are'} running, of version ${[...new Set(running.map((row) => row.version))].join(', ')}: stop them, or bring them to a release in between first.`,
    )
}

export type SchemaChange = { name: string; sha256: string; text: string }

/** What a start or `migrate` would do, in order; the functions, together, are named `sql`. */
export async function findPendingChanges(
  client: Queries,
  { root }: Pick<SchemaSource, 'root'> = ownSchema,
): Promise<SchemaChange[]> {
  const { rows } = await client.query<{ name: string; sha256: string }>('select name, sha256 from migrations')
  const appliedHashes = new Map(rows.map((row) => [row.name, row.sha256]))
  const pending: SchemaChange[] = []
  for (const file of readMigrations(root)) {
    const appliedHash = appliedHashes.get(file.name)
    if (appliedHash && appliedHash !== file.sha256)
      throw new Error(`The migration ${file.name} was changed after it had been applied; write a new one.`)
    if (!appliedHash) pending.push(file)
  }
  const functions = readFunctions(root)
  if (appliedHashes.get('sql') !== functions.sha256)
    pending.push({ ...functions, text: replaceFunctions(functions.text) })
  return pending
}

export const readMigrations = (root: string): SchemaChange[] =>
  sqlFiles(root, 'migrations').map(({ name, text }) => ({ name, text, sha256: digest(text) }))

export function readFunctions(root: string): SchemaChange {
  const text = sqlFiles(root, 'sql')
    .map((file) => file.text)
    .join('\n')
  return { name: 'sql', text, sha256: digest(text) }
}

const sqlFiles = (root: string, folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(root, folder, name), 'utf8') }))

// Functions of earlier releases that no file under `sql/` defines any more. `any_word_of` and `claim_given_up` join them in
// the next release: processes of the release before this one call them by name and may still be running.
const RETIRED_FUNCTIONS = [
  'abandon_run',
  'admit_and_keep_run',
  'admit_run',
  'any_word_of',
  'begin_in_wallet',
  'claim_given_up',
  'claim_key',
  'complete_run',
  'each_item',
  'end_in_wallet',
  'ended_runs',
  'insert_run',
  'keep_and_complete_run',
  'keep_run',
  'ledger_enqueue',
  'ledger_pend',
  'ledger_post',
  'ledger_resolve',
  'ledger_void',
  'ledger_write',
  'need_no_room',
  'need_rules_version',
  'need_same_room',
  'reserve_nonce',
  'ruling_as_counted',
  'take_over_holds',
  'tell',
  'transfer_holds',
]

/**
 * The functions by `create or replace`, which keeps a function's identity, so that a call that another process is making
 * at this moment finds it. PostgreSQL refuses to replace a function under other parameters or another result; such
 * functions are found by creating all in a schema apart, and are dropped first. Only our own names: the schema may hold an
 * operator's functions as well.
 */
function replaceFunctions(functions: string): string {
  const names = [...functions.matchAll(/^create (?:or replace )?function (\w+)/gm)].map(([, name]) => name!)
  const quoted = [...new Set([...names, ...RETIRED_FUNCTIONS])].map((name) => `'${name}'`).join(', ')
  return `
    create schema countersign_next;
    select set_config('countersign.home', quote_ident(current_schema()), true);
    select set_config('search_path', 'countersign_next, ' || current_setting('countersign.home'), true);
    ${functions}
    select set_config('search_path', current_setting('countersign.home'), true);
    do $$
    declare
      signature regprocedure;
    begin
      for signature in
        select old.oid from pg_proc old
        where old.pronamespace = current_schema()::regnamespace and old.proname in (${quoted})
          and not exists (
            select from pg_proc next
            where next.pronamespace = 'countersign_next'::regnamespace and next.proname = old.proname
              and replace(pg_get_function_arguments(next.oid), 'countersign_next.', '') = pg_get_function_arguments(old.oid)
              and replace(pg_get_function_result(next.oid), 'countersign_next.', '') = pg_get_function_result(old.oid))
      loop
        execute format('drop function %s', signature);
      end loop;
    end $$;
    drop schema countersign_next cascade;
    ${functions}`
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

/** In one transaction with its record. A lock that is not free soon is left alone for a moment, so that nobody queues behind it for long. */
async function applyChange(client: Queries, { name, text, sha256 }: SchemaChange, log: MigrateOptions['log']) {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.query(`begin; set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      await client.query(text)
      await client.query(
        'insert into migrations (name, sha256) values ($1, $2) on conflict (name) do update set sha256 = $2, applied_at = now()',
        [name, sha256],
      )
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback')
      if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE || attempt === LOCK_ATTEMPTS)
        throw new Error(`The migration ${name} failed: ${(error as Error).message}`, { cause: error })
      log?.info({ migration: name, attempt }, 'a migration waits for a table that is in use')
      await delay(LOCK_PAUSE_MS * (0.5 + Math.random()))
    }
  }
}
