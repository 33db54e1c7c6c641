import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../test/database.ts'
import type { Database } from './db.ts'
import { createInstances } from './instances.ts'
import { describeThisProcess, hasEnded, type LocalProcess } from './local-process.ts'
import { createNotifications } from './notifications.ts'

let testDatabase: TestDatabase
let database: Database
const closers: (() => Promise<unknown>)[] = []
const children: ChildProcess[] = []

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open(4)
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await database.pool.query('delete from instances')
})
afterAll(async () => {
  await database?.close()
  await testDatabase?.drop()
})

const GRACE_MS = 800
const WAIT = { timeout: 20_000, interval: 50 }
const elsewhere: LocalProcess = { host: 'elsewhere', pid: 1, machine: null, pid_started: null }

async function join(id: string, { self, graceMs = GRACE_MS }: { self?: LocalProcess; graceMs?: number } = {}) {
  const session = await createNotifications(database, id, silentLog)
  closers.push(session.close)
  const instances = await createInstances({ id, session, log: silentLog, beatMs: 50, graceMs, ...(self && { self }) })
  closers.push(instances.close)
  return { ...instances, session }
}

/** The row of a process that no longer writes its beat. */
const leaveRow = (id: string, { host, pid, machine, pid_started }: LocalProcess = elsewhere) =>
  database.pool.query(
    'insert into instances (id, beat, host, pid, machine, pid_started) values ($1, 5, $2, $3, $4, $5)',
    [id, host, pid, machine, pid_started],
  )

const rowsOf = async () => (await database.pool.query('select id from instances order by id')).rows.map(({ id }) => id)

test('a process that beats is seen alive, and one that leaves is dead for the others at once', async () => {
  const first = await join('first', { graceMs: 60_000 })
  const second = await join('second', { self: elsewhere })
  await vi.waitUntil(() => first.isSeenAlive('second'), WAIT)
  expect(await first.findDead(['first', 'second'])).toEqual([])
  await second.close()
  // Long before the grace of 60 s.
  await vi.waitUntil(async () => (await first.findDead(['second'])).length === 1, WAIT)
  expect(await rowsOf()).toEqual(['first'])
})

test('a row whose beat stands still is dead after the grace, and is removed when nothing of it is left to take over', async () => {
  const observer = await join('observer')
  await leaveRow('silent')
  await vi.waitUntil(async () => (await observer.findDead(['silent'])).length === 1, WAIT)
  await observer.removeDead(async () => ['silent'])
  expect(await rowsOf()).toEqual(['observer', 'silent'])
  await observer.removeDead(async () => [])
  expect(await rowsOf()).toEqual(['observer'])
})

test('a dead process that has beaten since is not removed', async () => {
  const observer = await join('observer')
  await leaveRow('silent')
  await vi.waitUntil(async () => (await observer.findDead(['silent'])).length === 1, WAIT)
  await observer.removeDead(async () => {
    await database.pool.query(`update instances set beat = beat + 1 where id = 'silent'`)
    return []
  })
  expect(await rowsOf()).toEqual(['observer', 'silent'])
})

test('a process of this machine that was killed is dead at once, also while its parent has not read its status', async () => {
  const child = spawn('sleep', ['600'])
  children.push(child)
  await once(child, 'spawn')
  const self = describeThisProcess()
  const stat = await import('node:fs').then((fs) => fs.readFileSync(`/proc/${child.pid}/stat`, 'utf8'))
  const pid_started = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]!
  const other = { ...self, pid: child.pid!, pid_started }
  expect(hasEnded(other, self)).toBe(false)
  expect(hasEnded({ ...other, pid_started: '1' }, self)).toBe(true)
  expect(hasEnded({ ...other, machine: 'another', pid_started: '1' }, self)).toBe(false)

  const observer = await join('observer', { graceMs: 60_000 })
  await leaveRow('child', other)
  await vi.waitUntil(() => observer.session.query('select 1', [], 1_000), WAIT)
  expect(await observer.findDead(['child'])).toEqual([])
  child.kill('SIGKILL')
  await vi.waitUntil(async () => (await observer.findDead(['child'])).length === 1, WAIT)
})

test('an observer that loses its connection declares nobody dead before it has looked for a whole grace again', async () => {
  const observer = await join('observer', { graceMs: 3_000 })
  await leaveRow('silent')
  await vi.waitUntil(async () => (await observer.findDead(['silent'])).length === 1, WAIT)
  const before = observer.session.connectionCount()
  const lostAt = performance.now()
  await database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like '%into instances%' and pid <> pg_backend_pid()`,
  )
  await vi.waitUntil(() => observer.session.connectionCount() > before, WAIT)
  await vi.waitUntil(async () => (await observer.findDead(['silent'])).length === 0, WAIT)
  await vi.waitUntil(async () => (await observer.findDead(['silent'])).length === 1, WAIT)
  expect(performance.now() - lostAt).toBeGreaterThanOrEqual(3_000)
})

test('a process without a row is dead after the grace, and one of the release before is not while it holds its lock', async () => {
  const observer = await join('observer')
  const old = await database.connect()
  await old.query(`select pg_advisory_lock(hashtextextended('instance:old', 0))`)
  try {
    expect(await observer.findDead(['old', 'gone'])).toEqual([])
    await vi.waitUntil(async () => (await observer.findDead(['old', 'gone'])).includes('gone'), WAIT)
    expect(await observer.findDead(['old', 'gone'])).toEqual(['gone'])
  } finally {
    await old.end()
  }
  await vi.waitUntil(async () => (await observer.findDead(['old'])).length === 1, WAIT)
})

test('a process that cannot write its beat over the grace knows that others may think it dead, until it can again', async () => {
  const process = await join('process')
  expect(process.isCertainlyAlive()).toBe(true)
  const blocker = await database.connect()
  try {
    await blocker.query('begin; lock table instances in exclusive mode')
    await vi.waitUntil(() => !process.isCertainlyAlive(), WAIT)
    expect(await process.findDead(['other'])).toEqual([])
    await blocker.query('rollback')
    await vi.waitUntil(() => process.isCertainlyAlive(), WAIT)
  } finally {
    await blocker.end()
  }
})

test('a row that was removed by mistake is written again with the next beat', async () => {
  await join('process')
  await database.pool.query('delete from instances')
  await vi.waitUntil(async () => (await rowsOf()).length === 1, WAIT)
})

test('the beat leaves nothing behind in its session: a commit of money there would wait for its standby', async () => {
  const { session } = await join('process')
  const { rows } = await database.pool.query(`select current_setting('synchronous_commit') as mode`)
  expect(await session.query('select current_setting($1) as mode', ['synchronous_commit'], 1_000)).toEqual(rows)
})
