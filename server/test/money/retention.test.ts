import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkBooks } from '../../src/modules/ledger/check-books.ts'
import { dropOldRuns, makePartitions } from '../../src/modules/runs/retention.ts'
import { startWorld, type World } from './world.ts'

/** Runs of months long past are dropped with their partition; what a payment needs stays. */
let world: World
beforeAll(async () => {
  world = await startWorld()
})
afterAll(() => world.close())

const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const partitions = async () => {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = 'ended_runs'::regclass order by 1`.execute(
    world.db,
  )
  return rows.map(({ name }) => name)
}

test('the partitions of the coming months are made once', async () => {
  const before = await partitions()
  expect(await makePartitions(world.db, new Date('2031-01-15T00:00:00Z'))).toBe(6)
  expect(await makePartitions(world.db, new Date('2031-01-31T00:00:00Z'))).toBe(0)
  expect(await partitions()).toEqual(
    [...before, 'ended_runs_2031_01', 'ended_runs_2031_02', 'ended_runs_2031_03'].sort(),
  )
})

test('with a retention of 0 days nothing is dropped', async () => {
  expect(await dropOldRuns(world.db, 0, new Date('2099-01-01T00:00:00Z'))).toBe(0)
})

test('a dropped month leaves the books balanced, and an x402 payment that still gets its answer and buys no second run', async () => {
  const tenant = await world.tenantWithWallet(0.1)
  const headers = { ...tenant.headers, 'content-type': 'application/json' }
  const fromWallet = await world.post('/api/run', { ...joke, payment: { wallet_id: tenant.walletId } }, tenant.headers)
  const { payment, answer: paid } = await world.pay(tenant.payer, '/api/run', joke, tenant.headers)
  expect([fromWallet.status, paid.status]).toEqual([200, 200])

  expect(await dropOldRuns(world.db, 1, new Date('2098-01-01T00:00:00Z'))).toBeGreaterThan(0)
  expect(await partitions()).toEqual(['ended_runs_default'])
  const { rows } = await sql<{
    id: string
    request: unknown
  }>`select id, request from ended_runs where kind = 'run'`.execute(world.db)
  expect(rows).toEqual([{ id: paid.body.run_id, request: {} }])
  expect((await world.get(`/api/runs/${fromWallet.body.run_id}`, headers)).status).toBe(404)
  const stored = await world.get(`/api/runs/${paid.body.run_id}`, headers)
  expect(stored.body.answer.body).toEqual(paid.body)
  const again = await world.post('/api/run', joke, { ...tenant.headers, ...payment })
  expect([again.status, again.text]).toEqual([200, paid.text])
  expect((await world.get(`/api/receipts/${fromWallet.body.receipt.receipt_id}`, headers)).status).toBe(200)
  const differences = (await checkBooks(world.db)).filter((check) => check.differences.length > 0)
  expect(differences).toEqual([])
})
