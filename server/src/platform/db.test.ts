import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../test/database.ts'
import { openDatabase } from './db.ts'

let pooled: TestDatabase
let direct: TestDatabase
beforeAll(async () => {
  pooled = await createTestDatabase({ empty: true })
  direct = await createTestDatabase({ empty: true })
})
afterAll(async () => {
  await pooled?.drop()
  await direct?.drop()
})

const nameOf = (database: TestDatabase) => new URL(database.url).pathname.slice(1)

test('what needs a session uses the direct address, everything else the pooled one', async () => {
  const database = openDatabase(pooled.url, { max: 1, log: silentLog, direct: direct.url })
  const session = await database.connect()
  try {
    const name = 'select current_database() as name'
    expect((await database.pool.query(name)).rows[0].name).toBe(nameOf(pooled))
    expect((await session.query(name)).rows[0].name).toBe(nameOf(direct))
  } finally {
    await session.end()
    await database.close()
  }
})
