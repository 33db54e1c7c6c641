import { sql } from 'kysely'
import { afterEach, expect, test } from 'vitest'
import { readBenchmarkSuite } from '../../src/adapters/lanes/benchmark.ts'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { createTestDatabase, startService, type TestService } from '../harness.ts'

const suite = readBenchmarkSuite()
const services: TestService[] = []
afterEach(async () => {
  for (const service of services.splice(0)) await service.close()
})

const start = async (options: Parameters<typeof startService>[0]) => {
  const service = await startService(options)
  services.push(service)
  return service
}

/** A live lane that counts its tasks; `version` stands for its models. */
function countingLane({ costUsd = 0, available = true } = {}) {
  const state = { tasks: 0, version: 'model-1', available }
  const lane: Lane = {
    name: 'counting',
    mode: 'live',
    version: () => state.version,
    execute: async () => {
      state.tasks += 1
      if (!state.available) return { ok: false, reason: 'unavailable', message: 'Down.', retryable: true }
      const usage = { inputTokens: 1, outputTokens: 1, costUsd }
      return { ok: true, output: 'An answer.', provider: 'p', model: state.version, mode: 'live', usage, fallbacks: [] }
    },
  }
  return { lane, state }
}

const bySweep = { BENCHMARK_SUITE: 'on', BACKGROUND_WORK: 'off' }
const storedCount = async (service: TestService) =>
  (await service.db.selectFrom('benchmarks').select('id').execute()).length

async function until<Value>(read: () => Promise<Value | undefined>): Promise<Value> {
  const giveUpAt = performance.now() + 100_000
  for (;;) {
    const value = await read()
    if (value !== undefined) return value
    if (performance.now() > giveUpAt) throw new Error('It did not happen.')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a fresh start fills the benchmark, without anybody’s command', async () => {
  const service = await start({ env: { BENCHMARK_SUITE: 'on' } })
  const { headers } = await service.onboard()
  const results = await until(async () => {
    const { body } = await service.get('/api/benchmark', headers)
    return body.as_of === null ? undefined : body
  })
  expect(results).toMatchObject({ suite_version: suite.suite_version, mode: 'offline', cost_usd: 0 })
  expect(results.lanes.reduce((sum: number, lane: { n: number }) => sum + lane.n, 0)).toBe(suite.tasks.length)
  for (const { success_rate, success_ci95 } of results.lanes) {
    expect(success_ci95[0]).toBeLessThanOrEqual(success_rate)
    expect(success_ci95[1]).toBeGreaterThanOrEqual(success_rate)
    expect(success_ci95[1] - success_ci95[0]).toBeGreaterThan(0.1)
  }
})

test('processes on one database measure once, whoever sweeps at the same moment', async () => {
  const database = await createTestDatabase()
  const { lane, state } = countingLane()
  const options = { lane, env: bySweep, databaseUrl: database.url }
  const first = await start(options)
  const second = await start({ ...options, env: { ...bySweep, COUNTERSIGN_DATA_DIR: first.service.dataDir } })
  await Promise.all([first, second].map(({ service }) => service.benchmark.sweep()))
  await Promise.all([first, second].map(({ service }) => service.benchmark.sweep()))
  expect(await storedCount(first)).toBe(1)
  expect(state.tasks).toBe(suite.tasks.length)
  for (const service of services.splice(0)) await service.close()
  await database.drop()
})

test('a change of model is measured once, and going back to one that was measured is not paid again', async () => {
  const { lane, state } = countingLane()
  const service = await start({ lane, env: bySweep })
  const sweep = service.service.benchmark.sweep
  await sweep()
  state.version = 'model-2'
  await sweep()
  await sweep()
  state.version = 'model-1'
  await sweep()
  expect(await storedCount(service)).toBe(2)
  expect(state.tasks).toBe(2 * suite.tasks.length)
})

test('the results shown are those of the lanes as they are now', async () => {
  const { lane, state } = countingLane()
  const service = await start({ lane, env: bySweep })
  const { headers } = await service.onboard()
  const asOf = async () => (await service.get('/api/benchmark', headers)).body.as_of
  await service.service.benchmark.sweep()
  const first = await asOf()
  state.version = 'model-2'
  await service.service.benchmark.sweep()
  expect(await asOf()).not.toBe(first)
  state.version = 'model-1'
  expect(await asOf()).toBe(first)
})

test('while a living process has the turn nobody else measures, and a dead one’s turn is taken over at once', async () => {
  const { lane, state } = countingLane()
  const service = await start({ lane, env: bySweep })
  const { config, dataDir } = service.service
  const env = { ...bySweep, COUNTERSIGN_DATA_DIR: dataDir }
  const other = await start({ lane, env, databaseUrl: config.DATABASE_URL! })
  const sweep = service.service.benchmark.sweep
  const fingerprint = service.service.benchmark.fingerprint()
  await sql`insert into benchmark_turns values (${fingerprint}, ${other.service.instance}, 1, now() + interval '1 hour')`.execute(
    service.db,
  )
  await sweep()
  expect(state.tasks).toBe(0)
  services.splice(services.indexOf(other), 1)
  await other.close()
  // It is seen with the next beat that the other has left.
  const sweepUntilMeasured = async () => {
    await sweep()
    return state.tasks
  }
  await expect.poll(sweepUntilMeasured, { timeout: 30_000, interval: 100 }).toBe(suite.tasks.length)
  expect(await storedCount(service)).toBe(1)
})

test('a turn that every process died on is not taken for ever', async () => {
  const { lane, state } = countingLane()
  const service = await start({ lane, env: bySweep })
  const fingerprint = service.service.benchmark.fingerprint()
  await sql`insert into benchmark_turns values (${fingerprint}, 'dead', 5, now() - interval '1 hour')`.execute(
    service.db,
  )
  await service.service.benchmark.sweep()
  expect(state.tasks).toBe(0)
})

test('when no provider answers nothing is stored, and it is not tried again at once', async () => {
  const { lane, state } = countingLane({ available: false })
  const service = await start({ lane, env: bySweep })
  await service.service.benchmark.sweep()
  state.available = true
  await service.service.benchmark.sweep()
  expect(await storedCount(service)).toBe(0)
  expect(state.tasks).toBe(suite.tasks.length)
})

test('a paid model is asked no further once BENCHMARK_MAX_USD is spent, and every lane has had its turn', async () => {
  const { lane, state } = countingLane({ costUsd: 0.25 })
  const service = await start({ lane, env: { ...bySweep, BENCHMARK_MAX_USD: '3' } })
  await service.service.benchmark.sweep()
  expect(state.tasks).toBe(13)
  const { headers } = await service.onboard()
  const { body } = await service.get('/api/benchmark', headers)
  expect(body).toMatchObject({ mode: 'live', cost_usd: 3.25 })
  expect(body.lanes.map((measured: { n: number }) => measured.n).sort()).toEqual([1, 1, 1, 2, 2, 2, 2, 2])
})

test.each(['offline', 'off'])('with BENCHMARK_SUITE=%s a paid model is never asked', async (setting) => {
  const { lane, state } = countingLane()
  const service = await start({ lane, env: { ...bySweep, BENCHMARK_SUITE: setting } })
  await service.service.benchmark.sweep()
  expect(state.tasks).toBe(0)
})

test('a tenant’s own runs are apart from the suite, with an interval, and nobody else’s', async () => {
  const offline = createOfflineLane()
  let available = true
  const lane: Lane = {
    ...offline,
    execute: async (task) =>
      available ? offline.execute(task) : { ok: false, reason: 'unavailable', message: 'Down.', retryable: true },
  }
  const service = await start({ lane })
  const tenant = await service.onboard()
  const payer = await service.payer(1)
  const run = async (subject: string) => {
    const response = await payer.fetch(`${service.url}/api/loop`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...tenant.headers },
      body: JSON.stringify({ agent_id: 'comedian-v1', input: `Tell me a joke about ${subject}.` }),
    })
    return response.status
  }
  for (const subject of ['bees', 'cats', 'trains']) expect(await run(subject)).toBe(200)
  available = false
  expect(await run('ships')).toBe(500)
  const { body } = await service.get('/api/benchmark', tenant.headers)
  expect(body).toMatchObject({ as_of: null, lanes: [] })
  expect(body.own_runs.lanes).toEqual([
    // Wilson's interval of 3 in 4.
    {
      agent_id: 'comedian-v1',
      n: 4,
      success_rate: 0.75,
      success_ci95: [0.3006, 0.9544],
      price_per_success_usdc: 0.005,
    },
  ])
  const stranger = await service.onboard()
  expect((await service.get('/api/benchmark', stranger.headers)).body.own_runs.lanes).toEqual([])
})
