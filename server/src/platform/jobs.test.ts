import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/database.ts'
import type { Database } from './db.ts'
import { createJobs } from './jobs.ts'
import { createLog } from './log.ts'

let scratch: TestDatabase
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase({ empty: true })
  database = scratch.open(2)
  await database.pool.query('create table work (id int)')
})
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

const silent = createLog('silent')
const clock = { now: () => new Date() }

test('sweeps run when their condition holds, and all conditions are one statement', async () => {
  const read: string[] = []
  const db = database.db.withPlugin({
    transformQuery: ({ node }) => {
      read.push(node.kind)
      return node
    },
    transformResult: async ({ result }) => result,
  })
  const jobs = createJobs({ db, clock, log: silent })
  let swept = 0
  let woken = 0
  jobs.everyDue(
    'work',
    () => sql`exists (select 1 from work)`,
    async () => {
      swept += 1
      await database.pool.query('delete from work')
    },
  )
  jobs.everyDue(
    'never',
    () => sql`false`,
    async () => {
      woken += 1
    },
  )
  await database.pool.query('insert into work values (1)')
  await expect.poll(() => swept).toBe(1)
  const statements = read.length
  await expect.poll(() => read.length).toBe(statements + 2)
  expect({ swept, woken }).toEqual({ swept: 1, woken: 0 })
  jobs.wake('never')
  await expect.poll(() => woken).toBe(1)
  await jobs.stop()
})
