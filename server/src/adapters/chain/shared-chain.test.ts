import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../../test/database.ts'
import { systemClock } from '../../platform/clock.ts'
import type { Database } from '../../platform/db.ts'
import { createInstances } from '../../platform/instances.ts'
import { createNotifications } from '../../platform/notifications.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
import { createPostgresJournal, JournalTakenOver } from './journal.ts'
import { createSharedChain } from './shared-chain.ts'

let testDatabase: TestDatabase
let database: Database

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open(4)
})
afterAll(async () => {
  await database?.close()
  await testDatabase?.drop()
})

let count = 0
const openSession = async (beatMs = 50) => {
  const id = `process-${++count}`
  const session = await createNotifications(database, id, silentLog)
  // Another machine, as far as this one can see: a process that is gone is noticed by its beat alone.
  const self = { host: id, pid: 1, machine: null, pid_started: null }
  const instances = await createInstances({ id, session, log: silentLog, beatMs, graceMs: 1_000, self })
  const leave = async () => {
    await instances.close()
    await session.close()
  }
  return { instances, session, leave }
}
const openChain = async (mayOwn = true, beatMs = 50) => {
  const { instances, leave } = await openSession(beatMs)
  const { pool, connect } = database
  const chain = await createSharedChain({ pool, connect, instances, clock: systemClock, log: silentLog, mayOwn })
  const close = async () => {
    opened.delete(close)
    await chain.close()
    await leave()
  }
  opened.add(close)
  return { ...chain, close, id: instances.id }
}
/** What a failed test leaves open would own the chain of the next one. */
const opened = new Set<() => Promise<void>>()
afterEach(async () => {
  for (const close of opened) await close()
})
/** On a busy machine the owner may be late with its beat; it is the owner again with the next. */
const waitUntilOwner = (chain: { isOwner(): boolean }) => vi.waitUntil(() => chain.isOwner(), 20_000)
const PAYER = '0x00000000000000000000000000000000000000aa'

/** Simulates a database restart under a running process: the connection with the lock and the one with the beat are closed. */
const closeSessions = () =>
  database.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and (query like '%pg_try_advisory_lock%' or query like '%into instances%') and pid <> pg_backend_pid()`,
  )

test('an owner that loses its lock takes the chain over again with the next of many concurrent requests', async () => {
  const chain = await openChain()
  await chain.announce('http://127.0.0.1:1')
  await chain.mint(PAYER, 5n)
  await closeSessions()
  await vi.waitUntil(() => !chain.isOwner(), 20_000)

  const { balanceOf } = createChainReader(chain)
  const balances = await Promise.all(Array.from({ length: 50 }, () => balanceOf(USDC, PAYER)))
  expect(new Set(balances)).toEqual(new Set([5n]))
  await waitUntilOwner(chain)
  await chain.close()
})

test('a process that cannot reach the owner reports it, and a process that may not own the chain never takes it over', async () => {
  const owner = await openChain()
  await owner.announce('http://127.0.0.1:1')
  const second = await openChain()
  await expect(second.request('eth_blockNumber', [])).rejects.toThrow('The node did not respond.')
  expect(second.isOwner()).toBe(false)

  await owner.close()
  const worker = await openChain(false)
  await expect(worker.request('eth_blockNumber', [])).rejects.toThrow('The node did not respond.')
  expect(await second.request('eth_chainId', [])).toBe('0x2105')
  await waitUntilOwner(second)
  await worker.close()
  await second.close()
})

test('a process that fails to build the chain leaves its lock to the others', async () => {
  const failing = new Proxy(database.pool, {
    get: (pool, name) =>
      name === 'query'
        ? (text: string, values: unknown[]) =>
            /chain_head/.test(text) ? Promise.reject(new Error('It cannot be read.')) : pool.query(text, values)
        : Reflect.get(pool, name),
  })
  const { instances, leave } = await openSession()
  const broken = {
    pool: failing,
    connect: database.connect,
    instances,
    clock: systemClock,
    log: silentLog,
    mayOwn: true,
  }
  await expect(createSharedChain(broken)).rejects.toThrow('The embedded chain cannot read its journal.')
  await leave()
  const next = await openChain()
  await waitUntilOwner(next)
  await next.close()
})

test('an owner whose beat stands still stops by itself, and another takes the chain over though the lock of the first is held', async () => {
  const silent = await openChain(true, 600_000)
  await silent.announce('http://127.0.0.1:1')
  await silent.mint(PAYER, 7n)
  const journal = createPostgresJournal(database.pool, silent.id)
  const { epoch } = await journal.load()

  const { balanceOf } = createChainReader(silent)
  const next = await openChain()
  await waitUntilOwner(next)
  expect(silent.isOwner()).toBe(false)
  await expect(silent.mint(PAYER, 1n)).rejects.toThrow()
  await expect(balanceOf(USDC, PAYER)).rejects.toThrow()
  await expect(journal.reserveBlocks(epoch, 1_000_000n)).rejects.toThrow(JournalTakenOver)
  await expect(journal.load()).rejects.toThrow(JournalTakenOver)
  expect(await createChainReader(next).balanceOf(USDC, PAYER)).toBe(12n)
  await next.close()
  await silent.close()
})

test('of several processes that find the owner dead one takes the chain over', async () => {
  const silent = await openChain(true, 600_000)
  const others = await Promise.all([openChain(), openChain(), openChain()])
  expect(others.filter((chain) => chain.isOwner())).toHaveLength(1)
  for (const chain of others) await chain.close()
  await silent.close()
})
