import { afterAll, beforeAll, expect, test } from 'vitest'
import { computeSnapshotVersion, createRoutingMeasurements } from '../../src/modules/routing/measurements.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase } from '../harness.ts'
import { addRun } from '../insights/rows.ts'
import { type Node, onboard, openNode } from '../tenants/test-node.ts'

let testDatabase: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: Node
let tenantId: string

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  database = testDatabase.open()
  node = await openNode(database)
  tenantId = (await onboard(node)).tenant_id
})
afterAll(async () => {
  await node?.close()
  await database?.close()
  await testDatabase?.drop()
})

const addRuns = async (count: number, latencyMs: number) => {
  for (let i = 0; i < count; i++) await addRun(node, database, { tenantId, state: 'completed', latencyMs })
}

test('measurements are frozen for the hour: every process has the same snapshot until the next one', async () => {
  const clock = createTestClock()
  // Nobody is notified: a process that tries to take a snapshot reads the newest one too.
  const notifications = { listen: () => {} }
  const open = () => createRoutingMeasurements({ db: database.db, clock, notifications })
  const first = await open()
  expect(first.current()).toBeUndefined()

  await addRuns(12, 100)
  await first.takeSnapshot()
  const frozen = first.current()!
  const writer = frozen.lanes.find(({ agent_id }) => agent_id === 'writer-v1')!
  expect(writer.runs).toBe(12)
  expect(Math.abs(writer.median_ms! - 100)).toBeLessThanOrEqual(6)
  expect(frozen.version).toBe(computeSnapshotVersion(frozen.lanes))

  // A process that starts later, and one that tries to take the same hour's snapshot again, read the frozen one.
  await addRuns(30, 4000)
  const second = await open()
  expect(second.current()).toEqual(frozen)
  clock.advance(59 * 60_000)
  await Promise.all([first.takeSnapshot(), second.takeSnapshot()])
  expect([first.current(), second.current()]).toEqual([frozen, frozen])

  clock.advance(60_000)
  await Promise.all([first.takeSnapshot(), second.takeSnapshot()])
  expect(first.current()!.version).not.toBe(frozen.version)
  expect(second.current()).toEqual(first.current())
  expect(first.current()!.lanes.find(({ agent_id }) => agent_id === 'writer-v1')!.runs).toBe(42)
})
