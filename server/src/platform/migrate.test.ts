import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase } from '../../test/harness.ts'
import type { Database } from './db.ts'
import { migrate } from './migrate.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(2)
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const parameterNames = async (name: string) => {
  const { rows } = await database.pool.query<{ names: string[] }>(
    'select proargnames as names from pg_proc where proname = $1',
    [name],
  )
  return rows.map((row) => row.names)
}

test('an upgrade renames parameters, removes retired functions and leaves those of the operator', async () => {
  await database.pool.query(`
    drop function emit_event(jsonb);
    create function emit_event(i jsonb) returns void language sql as $$ select $$;
    create function tell(i jsonb) returns void language sql as $$ select $$;
    create function operators_own(i jsonb) returns void language sql as $$ select $$;
    update migrations set sha256 = 'of an earlier release' where name = 'sql';`)

  expect(await migrate(database)).toMatchObject({ applied: ['sql'], tenantReads: { ok: true } })
  expect(await parameterNames('emit_event')).toEqual([['input']])
  expect(await parameterNames('tell')).toEqual([])
  expect(await parameterNames('operators_own')).toEqual([['i']])
  expect(await migrate(database)).toMatchObject({ applied: [], tenantReads: { ok: true } })
})

test('a start that finds another migrating says which session it waits for, gives up at its limit, and goes on when that session is gone', async () => {
  const other = scratch.open(1)
  const holder = await other.connect()
  holder.on('error', () => undefined)
  await holder.query(
    `set application_name = 'countersign migrate'; select pg_advisory_lock(hashtext('countersign/migrate'))`,
  )
  const { rows } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
  await expect(migrate(database, { lockWaitMs: 300 })).rejects.toThrow(
    `Another process has been migrating this database for too long: session ${rows[0]!.pid} from this machine since`,
  )
  const waiting = migrate(database)
  await database.pool.query('select pg_terminate_backend($1)', [rows[0]!.pid])
  expect(await waiting).toMatchObject({ applied: [] })
  await holder.end().catch(() => undefined)
  await other.close()
})
