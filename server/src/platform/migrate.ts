import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from './db.ts'

const root = join(import.meta.dirname, '..', '..')

const sqlFiles = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(root, folder, name), 'utf8') }))

/**
 * Forward-only: each migration runs once, in a transaction of its own, under one lock for all processes.
 * The SQL functions under `sql/` are code, not data, and are put in place anew whenever one of them changed.
 */
export async function migrate(database: Pick<Database, 'connect'>): Promise<{ applied: string[] }> {
  const client = await database.connect()
  const applied: string[] = []
  try {
    await client.query(`select pg_advisory_lock(hashtext('countersign/migrate'))`)
    await client.query(
      `create table if not exists migrations (name text primary key, sha256 text not null, applied_at timestamptz not null default now())`,
    )
    const { rows } = await client.query<{ name: string; sha256: string }>('select name, sha256 from migrations')
    const done = new Map(rows.map((row) => [row.name, row.sha256]))
    for (const file of sqlFiles('migrations')) {
      const sha256 = digest(file.text)
      const earlier = done.get(file.name)
      if (earlier === sha256) continue
      if (earlier) throw new Error(`The migration ${file.name} was changed after it had been applied; write a new one.`)
      await inTransaction(client, file.text, file.name, sha256)
      applied.push(file.name)
    }
    const functions = sqlFiles('sql')
    const sha256 = digest(functions.map((file) => file.text).join('\n'))
    if (done.get('sql') !== sha256) {
      await inTransaction(client, functions.map((file) => file.text).join('\n'), 'sql', sha256)
      applied.push('sql')
    }
  } finally {
    await client.end()
  }
  return { applied }
}

const digest = (text: string) => createHash('sha256').update(text).digest('hex')

async function inTransaction(
  client: { query(text: string, values?: unknown[]): Promise<unknown> },
  text: string,
  name: string,
  sha256: string,
) {
  await client.query('begin')
  try {
    await client.query(text)
    await client.query(
      'insert into migrations (name, sha256) values ($1, $2) on conflict (name) do update set sha256 = $2, applied_at = now()',
      [name, sha256],
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw new Error(`The migration ${name} failed: ${(error as Error).message}`, { cause: error })
  }
}
