import { afterAll, beforeAll, expect, test } from 'vitest'
import { readBenchmarkSuite } from '../../src/adapters/lanes/benchmark.ts'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import { measureLanes } from '../../src/app/benchmark.ts'
import { benchmark } from '../../src/commands/benchmark.ts'
import { createBenchmark } from '../../src/modules/insights/benchmark.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { verifyOutput } from '../../src/modules/verification/verification.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createIds } from '../../src/platform/ids.ts'
import { startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const readBenchmark = async () => {
  const tenant = await service.onboard()
  return (await service.get('/api/benchmark', tenant.headers)).body
}

test('there are no results before the first benchmark, and none without a key', async () => {
  expect(await readBenchmark()).toMatchObject({
    as_of: null,
    suite_version: null,
    mode: null,
    lanes: [],
    own_runs: { lanes: [] },
  })
  expect((await service.get('/api/benchmark')).status).toBe(401)
})

test('the command measures every lane on the committed suite, and the service returns the saved results', async () => {
  const printedLines: string[] = []
  const log = console.log
  console.log = (text: string) => void printedLines.push(text)
  try {
    await benchmark(service.service.config)
  } finally {
    console.log = log
  }
  const results = await readBenchmark()
  const suite = readBenchmarkSuite()
  expect(results).toMatchObject({ suite_version: suite.suite_version, mode: 'offline' })
  expect(Date.now() - Date.parse(results.as_of)).toBeLessThan(60_000)
  const { body: pricing } = await service.get('/api/pricing')
  const agents: string[] = pricing.agents.map((agent: { agent_id: string }) => agent.agent_id)
  expect(results.lanes.map((lane: { agent_id: string }) => lane.agent_id)).toEqual([...agents, 'default'])
  for (const lane of results.lanes) {
    expect(lane.n).toBe(suite.tasks.filter((task) => task.agent_id === lane.agent_id).length)
    const [low, high] = lane.score.ci95
    expect(low).toBeLessThanOrEqual(lane.score.mean)
    expect(high).toBeGreaterThanOrEqual(lane.score.mean)
    expect(printedLines.join('\n')).toContain(lane.agent_id)
  }
  const analyst = results.lanes.find((lane: { agent_id: string }) => lane.agent_id === 'analyst-v1')
  expect(analyst.price_per_verified_success_usdc).toBeCloseTo(0.025 / analyst.success_rate, 4)
})

test('a lane is measured at its current price, and a failing lane has no price per success', async () => {
  const headers = { 'x-admin-key': service.service.adminKey }
  await service.call('PATCH', '/api/lane/comedian-v1', { base_price_usdc: 0.095 }, headers)
  const suite = readBenchmarkSuite()
  const jokes = { ...suite, tasks: suite.tasks.filter(({ agent_id }) => agent_id === 'comedian-v1') }
  const measure = (lane: Lane) => {
    const { catalog } = service.service
    const deps = { lane, clock: systemClock, verify: verifyOutput }
    return measureLanes(deps, [...catalog.all(), catalog.fallback()], jokes)
  }
  const [workingLane] = (await measure(createOfflineLane())).lanes
  expect(workingLane!.price_per_verified_success_usdc).toBeCloseTo(0.1 / workingLane!.success_rate, 4)
  const failingLane = {
    ...createOfflineLane(),
    execute: async () => ({ ok: false as const, reason: 'unavailable' as const, message: 'Down.', retryable: true }),
  }
  const [failingLaneResult] = (await measure(failingLane)).lanes
  expect(failingLaneResult).toMatchObject({
    success_rate: 0,
    score: { mean: 0 },
    price_per_verified_success_usdc: null,
  })
})

test('the newest result is returned, and only the last twenty are stored', async () => {
  const clock = systemClock
  const { save } = createBenchmark({ db: service.db, clock, ids: createIds(clock) })
  for (let n = 0; n < 22; n++) await save({ suite_version: `v${n}`, mode: 'live', lanes: [] })
  expect(await readBenchmark()).toMatchObject({ suite_version: 'v21', mode: 'live', lanes: [] })
  expect(await service.db.selectFrom('benchmarks').select('id').execute()).toHaveLength(20)
})
