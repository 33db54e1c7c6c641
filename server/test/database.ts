import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Database, openDatabase } from '../src/platform/db.ts'
import { createLog } from '../src/platform/log.ts'

export const silentLog = createLog('silent')

export type TestDatabase = { url: string; open(max?: number): Database; drop(): Promise<void> }

/** Creates a database for one test file: a clone of the migrated template, or an empty one. */
export async function createTestDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const server = process.env.COUNTERSIGN_TEST_DATABASE
  if (!server) throw new Error('The test database is not running: start the tests with vitest and its global set-up.')
  const name = `t_${randomBytes(6).toString('hex')}`
  const asAdmin = async (statement: string) => {
    const client = new pg.Client({ connectionString: server })
    await client.connect()
    try {
      // PostgreSQL refuses two clones of one template at the same time, so they take a lock.
      await client.query('select pg_advisory_lock(42)')
      await client.query(statement)
    } finally {
      await client.end()
    }
  }
  const drop = async (retries = 50): Promise<void> => {
    try {
      await asAdmin(`drop database if exists ${name} with (force)`)
    } catch (error) {
      // Autovacuum may be running in it, which this user may not terminate; it ends soon.
      if ((error as { code?: string }).code !== '42501' || retries === 0) throw error
      await sleep(200)
      await drop(retries - 1)
    }
  }
  await asAdmin(`create database ${name}${empty ? '' : ' template template_test'}`)
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href
  return { url, open: (max = 10) => openDatabase(url, { max, log: silentLog }), drop: () => drop() }
}

/** Brings an empty database to the state before a migration, as an earlier release left it. */
export async function migrateUntil(database: Database, before: string): Promise<void> {
  const folder = join(import.meta.dirname, '../migrations')
  await database.pool.query(
    'create table migrations (name text primary key, sha256 text not null, applied_at timestamptz not null default now())',
  )
  for (const name of readdirSync(folder).sort()) {
    if (name >= before) break
    const text = readFileSync(join(folder, name), 'utf8')
    await database.pool.query(text)
    const sha256 = createHash('sha256').update(text).digest('hex')
    await database.pool.query('insert into migrations (name, sha256) values ($1, $2)', [name, sha256])
  }
}
