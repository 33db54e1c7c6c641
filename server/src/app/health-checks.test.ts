import { expect, test } from 'vitest'
import { createClockCheck, createDiskCheck } from './health-checks.ts'

const at = new Date('2026-11-16T12:00:00.000Z')
const pool = { query: async () => ({ rows: [{ at }] }) } as never
/** The clock of the process at the question and at the answer, in milliseconds after the database's. */
const checkClock = (askedMs: number, answeredMs = askedMs) => {
  const times = [askedMs, answeredMs]
  return createClockCheck(pool, { now: () => new Date(at.getTime() + times.shift()!) })()
}

test('a clock that is minutes ahead or behind is a problem, a slow answer of the database is none', async () => {
  expect(await checkClock(0)).toBeUndefined()
  expect(await checkClock(-30_000, 1_000)).toBeUndefined()
  expect(await checkClock(412_000)).toEqual({
    message: 'The clock of this process is 412 s ahead of that of the database.',
  })
  expect(await checkClock(-60_000)).toEqual({
    message: 'The clock of this process is 60 s behind that of the database.',
  })
})

test('a database server that cannot write degrades the service; with one of another machine the local disk says nothing', async () => {
  const check = (isFull: boolean) => createDiskCheck({ fullDisk: { isFull: async () => isFull }, dataDir: undefined })()
  expect(await check(true)).toMatchObject({ degrades: true })
  expect(await check(false)).toBeUndefined()
})
