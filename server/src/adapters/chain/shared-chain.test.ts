import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, silentLog, type TestDatabase } from '../../../test/database.ts'
import { systemClock } from '../../platform/clock.ts'
import type { Database } from '../../platform/db.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
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

const openChain = (mayOwn = true) =>
  createSharedChain({ pool: database.pool, connect: database.connect, clock: systemClock, log: silentLog, mayOwn })
const PAYER = '0x00000000000000000000000000000000000000aa'

/** Simulates a database restart under a running process: the connection that holds the lock is closed. */
const closeLockConnections = () =>
  database.pool.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database =
       (select oid from pg_database where datname = current_database())`,
  )

test('an owner that loses its lock takes the chain over again with the next of many concurrent requests', async () => {
  const chain = await openChain()
  await chain.announce('http://127.0.0.1:1')
  await chain.mint(PAYER, 5n)
  await closeLockConnections()
  await vi.waitUntil(() => !chain.isOwner(), 5_000)

  const { balanceOf } = createChainReader(chain)
  const balances = await Promise.all(Array.from({ length: 50 }, () => balanceOf(USDC, PAYER)))
  expect(new Set(balances)).toEqual(new Set([5n]))
  expect(chain.isOwner()).toBe(true)
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
  expect(second.isOwner()).toBe(true)
  await worker.close()
  await second.close()
})

test('a process that fails to build the chain leaves its lock to the others', async () => {
  const failing = new Proxy(database.pool, {
    get: (pool, name) =>
      name === 'query' || name === 'connect'
        ? () => Promise.reject(new Error('The journal cannot be read.'))
        : Reflect.get(pool, name),
  })
  const broken = { pool: failing, connect: database.connect, clock: systemClock, log: silentLog, mayOwn: true }
  await expect(createSharedChain(broken)).rejects.toThrow('The embedded chain cannot read its journal.')
  const next = await openChain()
  expect(next.isOwner()).toBe(true)
  await next.close()
})
