import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from './db.ts'
import { secureTenantReads, type TenantReads } from './tenant-reads.ts'

const root = join(import.meta.dirname, '..', '..')

const sqlFiles = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.sql'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(root, folder, name), 'utf8') }))

/**
 * Forward-only: each migration runs once, in a transaction of its own, under one lock for all processes.
 * The SQL functions under `sql/` are code, not data: when one of them changes, all are dropped and created again in one
 * transaction, because PostgreSQL cannot rename a parameter in place and a removed function must not live on.
 */
export async function migrate(
  database: Pick<Database, 'connect'>,
): Promise<{ applied: string[]; warnings: string[]; tenantReads: TenantReads }> {
  const client = await database.connect()
  const applied: string[] = []
  // A migration warns when data that was there before means something else from now on.
  const warnings: string[] = []
  client.on('notice', ({ severity, message }) => severity === 'WARNING' && message && warnings.push(message))
  try {
    await client.query(`select pg_advisory_lock(hashtext('countersign/migrate'))`)
    await client.query(
      `create table if not exists migrations (name text primary key, sha256 text not null, applied_at timestamptz not null default now())`,
    )
    const { rows } = await client.query<{ name: string; sha256: string }>('select name, sha256 from migrations')
    const appliedHashes = new Map(rows.map((row) => [row.name, row.sha256]))
    for (const file of sqlFiles('migrations')) {
      const sha256 = digest(file.text)
      const appliedHash = appliedHashes.get(file.name)
      if (appliedHash === sha256) continue
      if (appliedHash)
        throw new Error(`The migration ${file.name} was changed after it had been applied; write a new one.`)
      await inTransaction(client, file.text, file.name, sha256)
      applied.push(file.name)
    }
    const text = sqlFiles('sql')
      .map((file) => file.text)
      .join('\n')
    const sha256 = digest(text)
    if (appliedHashes.get('sql') !== sha256) {
      await inTransaction(client, `${dropFunctions(text)}\n${text}`, 'sql', sha256)
      applied.push('sql')
    }
    return { applied, warnings, tenantReads: await secureTenantReads(client) }
  } finally {
    await client.end()
  }
}

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

/** Only our own names: the schema may hold an operator's functions as well. */
function dropFunctions(sqlText: string): string {
  const names = [...sqlText.matchAll(/^create (?:or replace )?function (\w+)/gm)].map(([, name]) => name!)
  const quoted = [...new Set([...names, ...RETIRED_FUNCTIONS])].map((name) => `'${name}'`).join(', ')
  return `
    do $$
    declare
      signature regprocedure;
    begin
      for signature in
        select oid from pg_proc where pronamespace = current_schema()::regnamespace and proname in (${quoted})
      loop
        execute format('drop function %s', signature);
      end loop;
    end $$;`
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
