import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReconciler } from '../../src/modules/runs/reconcile.ts'
import type { RunDeps } from '../../src/modules/runs/run-deps.ts'
import { findOrphanedRuns } from '../../src/modules/runs/runs.store.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase, silent } from '../harness.ts'
import { buildAdmission, callSet } from './run-items.ts'

/** Open runs of a process that has died, as another process finds them. */
const NOW = new Date('2026-11-16T15:00:10.000Z')
const GRACE_MS = 30_000

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(4)
  await database.pool.query(
    `insert into tenants (id, org_name, email, created_at, updated_at) values ('ten_1', 'x', 'x@example.com', now(), now())`,
  )
  await database.pool.query(
    `insert into wallets (id, tenant_id, name, available_micro, created_at) values ('wal_1', 'ten_1', 'x', 10000000, now())`,
  )
})
beforeEach(() => database.pool.query('delete from open_runs'))
afterAll(async () => {
  await database.close()
  await scratch.drop()
})

let serial = 0
async function leaveRuns(kind: 'run' | 'topup', count: number, instance: string) {
  const runs = Array.from({ length: count }, () => {
    serial += 1
    const id = `run_${String(serial).padStart(6, '0')}`
    return { id, kind, tenantId: 'ten_1', walletId: 'wal_1', priceMicro: 1n, pendingId: `ltx_${id}` }
  })
  const next_attempt_at = kind === 'topup' ? new Date(NOW.getTime() + GRACE_MS).toISOString() : null
  const deadline_at = new Date(NOW.getTime() + 120_000).toISOString()
  const items = runs.map((run) => {
    const authorization = {
      from: '0xpayer',
      to: '0xours',
      nonce: run.id,
      value: '1',
      validAfter: '0',
      validBefore: '4000000000',
    }
    const terms = { network: 'eip155:8453', asset: 'USDC', payTo: '0xours', amountMicro: '1' }
    const payment = kind === 'topup' ? { x402Version: 2, signature: '0x', authorization, terms } : null
    return buildAdmission(run, { instance, deadline_at, next_attempt_at, payment })
  })
  for (const answer of await callSet(database.pool, 'admit_runs', items))
    expect(answer).toEqual({ ruling: null, holds: [] })
  return runs.map(({ id }) => id)
}

const dead = new Set(['dead'])

/** A reconciler whose payments never come to an end, and the time of each attempt. */
function openReconciler(instance: string) {
  const clock = { now: () => new Date(NOW.getTime() + elapsed) }
  let elapsed = 0
  const attempts: { id: string; at: number }[] = []
  const reconcile = async (settlement: { payment: { authorization: { nonce: string } } }) => {
    attempts.push({ id: settlement.payment.authorization.nonce, at: elapsed })
    throw new Error('The chain cannot be reached.')
  }
  const findDeadInstances = async (ids: readonly string[]) => ids.filter((id) => dead.has(id))
  const parts = { db: database.db, clock, instance, findDeadInstances, log: silent, payments: { reconcile } }
  const deps = parts as unknown as RunDeps
  const advance = (ms: number) => {
    elapsed += ms
  }
  return { ...createReconciler(deps), attempts, advance }
}

test('settlements of a dead process that cannot end do not keep its interrupted runs from being found', async () => {
  await leaveRuns('topup', 60, 'dead')
  const interrupted = await leaveRuns('run', 1, 'dead')
  const orphans = await findOrphanedRuns(database.db, ['dead'], NOW, 50)
  expect(orphans.map(({ id }) => id)).toEqual(interrupted)
})

test('a settlement of a dead process is tried at once, and then not before its lease ends', async () => {
  const [settling] = await leaveRuns('topup', 1, 'dead')
  const reconciler = openReconciler('living')
  const second = async () => {
    await reconciler.sweepOrphans()
    await reconciler.sweepSettlements()
    reconciler.advance(1_000)
  }
  for (let count = 0; count < 25; count++) await second()
  expect(reconciler.attempts).toEqual([{ id: settling, at: 0 }])
  for (let count = 0; count < 10; count++) await second()
  expect(reconciler.attempts).toEqual([
    { id: settling, at: 0 },
    { id: settling, at: 30_000 },
  ])
})

test('a settlement with an unknown outcome keeps its back-off when its process dies', async () => {
  const [settling] = await leaveRuns('topup', 1, 'dead')
  await database.pool.query(`update open_runs set payment_state = 'unknown' where id = $1`, [settling])
  const reconciler = openReconciler('living')
  await reconciler.sweepOrphans()
  await reconciler.sweepSettlements()
  expect(reconciler.attempts).toEqual([])
})

test('a settlement that a living process has claimed is not taken from it, and one of a reconciler that died is', async () => {
  const [settling] = await leaveRuns('topup', 1, 'dead')
  const first = openReconciler('claimant')
  await first.sweepOrphans()
  await first.sweepSettlements()
  const second = openReconciler('living')
  second.advance(1_000)
  await second.sweepOrphans()
  await second.sweepSettlements()
  expect([first.attempts.length, second.attempts.length]).toEqual([1, 0])
  dead.add('claimant')
  await second.sweepOrphans()
  await second.sweepSettlements()
  expect(second.attempts).toEqual([{ id: settling, at: 1_000 }])
})
