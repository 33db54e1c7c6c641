import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../test/database.ts'
import type { Database } from './db.ts'
import { createNotifications } from './notifications.ts'

let testDatabase: TestDatabase
let database: Database
beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open(2)
})
afterAll(async () => {
  await database.close()
  await testDatabase.drop()
})

const LOCK = `hashtextextended('instance:process-1', 0)`
const isLockFree = async () => {
  const { rows } = await database.pool.query(`select pg_try_advisory_xact_lock(${LOCK}) as free`)
  return rows[0].free as boolean
}

test('a lost connection that still holds the lock of this process keeps no message from it, and the lock is taken later', async () => {
  const lost = await database.connect()
  await lost.query(`select pg_advisory_lock(${LOCK})`)
  const notifications = await createNotifications(database, 'process-1', silentLog)
  try {
    const payloads: unknown[] = []
    notifications.listen('prices', (payload) => payloads.push(payload))
    await vi.waitFor(async () => {
      await database.pool.query(`select pg_notify('prices', 'changed')`)
      expect(payloads).toContain('changed')
    }, 20_000)
    await lost.end()
    await vi.waitFor(async () => expect(await isLockFree()).toBe(false), 20_000)
  } finally {
    await notifications.close()
  }
  await vi.waitFor(async () => expect(await isLockFree()).toBe(true), 20_000)
})
