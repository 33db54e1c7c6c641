import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../test/database.ts'
import { type Database, openDatabase } from './db.ts'
import { migrate } from './migrate.ts'

let testDatabase: TestDatabase
let database: Database
beforeAll(async () => {
  testDatabase = await createTestDatabase({ empty: true })
  database = openDatabase(testDatabase.url, { max: 2, log: silentLog })
})
afterAll(async () => {
  await database?.close()
  await testDatabase?.drop()
})

/** A real server whose connections say that they are of another version. */
const withVersion = (number: number, name: string): Pick<Database, 'connect'> => ({
  connect: async () => {
    const client = await database.connect()
    const query = client.query.bind(client)
    client.query = ((text: unknown, ...rest: unknown[]) =>
      typeof text === 'string' && text.includes('server_version_num')
        ? query(`select ${number} as number, '${name}' as name`)
        : (query as (...args: unknown[]) => unknown)(text, ...rest)) as typeof client.query
    return client
  },
})

test('PostgreSQL 14 is refused before anything is changed', async () => {
  await expect(migrate(withVersion(140_022, '14.22'))).rejects.toThrow(
    'DATABASE_URL leads to PostgreSQL 14.22. Countersign needs PostgreSQL 15 or newer; nothing was changed.',
  )
  const { rows } = await database.pool.query(`select from pg_tables where schemaname = 'public'`)
  expect(rows).toEqual([])
})

test('PostgreSQL 15 is accepted', async () => {
  const { applied } = await migrate(withVersion(150_000, '15.0'))
  expect(applied.length).toBeGreaterThan(10)
})
