import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrateUntil } from '../../test/database.ts'
import { createTestDatabase } from '../../test/harness.ts'
import type { Database } from './db.ts'
import { SCHEMA_VERSION } from './generated/schema-version.ts'
import { migrate, OLDEST_BESIDE, readMigrations, type SchemaSource } from './migrate.ts'
import { describePlan, planMigrations } from './migration-plan.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let root: string
beforeEach(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(4)
  root = mkdtempSync(join(tmpdir(), 'countersign-release-'))
  for (const folder of ['migrations', 'sql'])
    cpSync(join(import.meta.dirname, '../..', folder), join(root, folder), { recursive: true })
})
afterEach(async () => {
  await database.close()
  await scratch.drop()
  rmSync(root, { recursive: true })
})

/** The next release: our own files and what a test adds to them. */
const release = (change: Partial<SchemaSource> = {}): SchemaSource => ({
  root,
  version: SCHEMA_VERSION + 1,
  oldestBeside: OLDEST_BESIDE,
  ...change,
})
const addMigration = (text: string) => writeFileSync(join(root, 'migrations/9000_next.sql'), text)
const addFunction = (text: string) => writeFileSync(join(root, 'sql/zz-next.sql'), text)
const ask = async <Row>(sql: string): Promise<Row[]> => (await database.pool.query(sql)).rows
const answer = async () => (await ask<{ answer: number }>('select next_answer() as answer'))[0]!.answer

test('a process of the older release that starts again leaves the functions of the newer one', async () => {
  addFunction('create or replace function next_answer() returns int language sql as $$ select 2 $$;')
  await migrate(database, { schema: release() })
  expect(await answer()).toBe(2)

  expect(await migrate(database)).toMatchObject({ applied: [] })
  expect(await answer()).toBe(2)
  expect(await migrate(database, { schema: release() })).toMatchObject({ applied: [] })
})

test('a release that the database has left behind does not start', async () => {
  await migrate(database, { schema: release({ version: SCHEMA_VERSION + 2, oldestBeside: SCHEMA_VERSION + 1 }) })
  await expect(migrate(database)).rejects.toThrow(
    `This release has schema version ${SCHEMA_VERSION}. The database is at version ${SCHEMA_VERSION + 2}, beside which only releases from version ${SCHEMA_VERSION + 1} on may run: start a newer release.`,
  )
  await migrate(database, { schema: release() })
})

test('what a running process needs is not removed, and is once that process is gone', async () => {
  await database.pool.query(`
    create table if not exists instances (id text primary key, beat bigint, host text, pid int, schema_version int);
    insert into instances (id, beat, host, pid, schema_version) values ('old', 1, 'elsewhere', 1, ${SCHEMA_VERSION});
    alter table migrations add column needed_by_old int`)
  addMigration('alter table migrations drop column needed_by_old;')
  const schema = release({ oldestBeside: SCHEMA_VERSION + 1 })
  const beating = setInterval(() => database.pool.query('update instances set beat = beat + 1').catch(() => {}), 50)
  try {
    await expect(migrate(database, { schema, watchMs: 500 })).rejects.toThrow(
      `removes what processes before version ${SCHEMA_VERSION + 1} need, and 1 such process is running, of version ${SCHEMA_VERSION}`,
    )
  } finally {
    clearInterval(beating)
  }
  await delay(200)
  expect(await migrate(database, { schema, watchMs: 300 })).toMatchObject({ applied: ['9000_next.sql'] })
})

test('a function keeps its identity unless its parameters or its result change', async () => {
  addFunction('create or replace function next_answer() returns int language sql as $$ select 1 $$;')
  await migrate(database, { schema: release() })
  const identities = () =>
    ask<{ name: string; oid: number }>(
      'select proname as name, oid::int from pg_proc where pronamespace = current_schema()::regnamespace order by 1, 2',
    )
  const before = await identities()
  addFunction('create or replace function next_answer() returns int language sql as $$ select 2 $$;')
  await migrate(database, { schema: release({ version: SCHEMA_VERSION + 2 }) })
  expect(await identities()).toEqual(before)
  expect(await answer()).toBe(2)

  addFunction('create or replace function next_answer() returns bigint language sql as $$ select 3::bigint $$;')
  await migrate(database, { schema: release({ version: SCHEMA_VERSION + 3 }) })
  const changed = (await identities()).filter(({ oid }) => !before.some((row) => row.oid === oid))
  expect(changed.map(({ name }) => name)).toEqual(['next_answer'])
})

test('a migration that waits for a table lets readers pass, and goes on when the table is free', async () => {
  const holder = await database.connect()
  await holder.query('begin; select from tenants')
  addMigration('alter table tenants add column next_note text;')
  const waits: unknown[] = []
  const migration = migrate(database, {
    schema: release(),
    log: { info: (...line: unknown[]) => waits.push(line) } as never,
  })
  await expect.poll(() => waits.length, { timeout: 30_000 }).toBeGreaterThan(0)
  await ask('select from tenants')
  await holder.query('commit')
  await holder.end()
  expect(await migration).toMatchObject({ applied: ['9000_next.sql'] })
})

test('the plan names each table that a pending migration locks, by what PostgreSQL says, and changes nothing', async () => {
  addMigration(`
    create table next_table (id int primary key);
    alter table tenants add column next_note text;
    alter table log_head alter column size type numeric;
    create index on receipts (issued_at);
    update sessions set expires_at = expires_at where false;`)
  const plans = await planMigrations(database, root)
  expect(plans).toMatchObject([
    {
      name: '9000_next.sql',
      creates: ['next_table'],
      tables: [
        { table: 'log_head', lock: 'AccessExclusiveLock', isRewritten: true },
        { table: 'receipts', lock: 'ShareLock', isRewritten: false },
        { table: 'sessions', lock: 'RowExclusiveLock', isRewritten: false },
        { table: 'tenants', lock: 'AccessExclusiveLock', isRewritten: false },
      ],
    },
  ])
  for (const { bytes } of plans[0]!.tables) expect(bytes).toBeGreaterThan(0)
  expect(describePlan(plans)).toContain(
    '  locks tenants (AccessExclusiveLock: readers and writers wait), about 0 rows,',
  )
  expect(await ask(`select from pg_namespace where nspname like 'countersign%'`)).toEqual([])
  expect(await ask(`select from pg_attribute where attname = 'next_note'`)).toEqual([])
})

test('a plan of a database that is up to date is empty', async () => {
  expect(describePlan(await planMigrations(database, root))).toBe('No migration is pending.')
})

/** Migrations that take something away, each with the OLDEST_BESIDE that came with it. */
const CONTRACTING: Record<string, number> = {}

test('migrations since 0120 leave what the release before reads, and write no table anew', async () => {
  const empty = await createTestDatabase({ empty: true })
  const earlier = empty.open(1)
  try {
    await migrateUntil(earlier, '0120')
    const plans = await planMigrations(earlier)
    expect(plans.flatMap((plan) => plan.tables.filter((table) => table.isRewritten))).toEqual([])
    for (const { name, text } of readMigrations(join(import.meta.dirname, '../..'))) {
      if (name < '0120') continue
      const takesAway =
        /\b(drop (table|column|view|type)|rename (to|column)|alter column \w+ (type|set not null))\b/i.test(text)
      if (takesAway) expect(CONTRACTING[name], `${name} takes something away`).toBeLessThanOrEqual(OLDEST_BESIDE)
    }
  } finally {
    await earlier.close()
    await empty.drop()
  }
})
