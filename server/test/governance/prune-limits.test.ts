import { afterAll, beforeAll, expect, test } from 'vitest'
import { pruneEndedLimits, pruneExposureLimits } from '../../src/modules/governance/counters/limit-counters.store.ts'
import { periodOf, type Window } from '../../src/modules/governance/counters/windows.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open()
})
afterAll(async () => {
  await database?.close()
  await scratch?.drop()
})

const windows: Window[] = ['minute', 'day', 'week', 'two_weeks', 'month', 'quarter', 'year', 'total']
const now = new Date('2026-11-15T12:00:00Z')
const insertCounter = (scope: string, period: string, spent = 5, reserved = 0) =>
  database.pool.query(
    'insert into limits (scope, period, limit_micro, spent_micro, reserved_micro) values ($1, $2, 100, $3, $4)',
    [scope, period, spent, reserved],
  )
const listCounters = async () =>
  (
    await database.pool.query<{ name: string }>(`select scope || ' ' || period as name from limits order by 1`)
  ).rows.map(({ name }) => name)

test('counters of ended windows are deleted; current, total and reserved ones stay', async () => {
  for (const window of windows) {
    await insertCounter('now', periodOf(window, now))
    await insertCounter('old', periodOf(window, new Date('2024-03-01T00:00:00Z')))
    await insertCounter('reserved', periodOf(window, new Date('2024-03-01T00:00:00Z')), 5, 1)
  }
  expect(await pruneEndedLimits(database.db, now, 3)).toBe(3)
  expect(await pruneEndedLimits(database.db, now, 1_000)).toBe(4)
  expect(await pruneEndedLimits(database.db, now, 1_000)).toBe(0)
  const kept = await listCounters()
  expect(kept.filter((name) => name.startsWith('now '))).toHaveLength(8)
  expect(kept.filter((name) => name.startsWith('reserved '))).toHaveLength(8)
  expect(kept.filter((name) => name.startsWith('old '))).toEqual(['old total'])
  await database.pool.query('delete from limits')
})

test('a payer with nothing under way has no counter; one in use is left alone', async () => {
  await insertCounter('payer:idle', 'open', 0)
  await insertCounter('payer:busy', 'open', 0, 7)
  await insertCounter('payer:locked', 'open', 0)
  await insertCounter('budget', 'total')
  const client = await database.pool.connect()
  await client.query('begin')
  await client.query(`select pg_advisory_xact_lock(hashtextextended('limit:payer:locked', 0))`)
  expect(await pruneExposureLimits(database.db, 100)).toBe(1)
  await client.query('commit')
  client.release()
  expect(await listCounters()).toEqual(['budget total', 'payer:busy open', 'payer:locked open'])
  expect(await pruneExposureLimits(database.db, 100)).toBe(1)
})
