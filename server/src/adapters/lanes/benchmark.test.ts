import { expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import type { Lane } from '../../modules/runs/lane.ts'
import { verifyOutput } from '../../modules/verification/verification.ts'
import { systemClock } from '../../platform/clock.ts'
import { type BenchmarkTask, passesCheck, readBenchmarkSuite, runBenchmark } from './benchmark.ts'
import { createOfflineLane } from './offline.ts'

const LANES = [
  'comedian-v1',
  'writer-v1',
  'support-v1',
  'analyst-v1',
  'coder-v1',
  'strategist-v1',
  'researcher-v2',
  'default',
].map((agentId) => ({ agentId, priceUsdc: 0.01 }))

const createScriptedLane = (outputs: Record<string, string | undefined>, onTask: () => void): Lane => ({
  name: 'scripted',
  mode: 'live',
  execute: async (task) => {
    onTask()
    const output = outputs[task.task]
    return output === undefined
      ? { ok: false, reason: 'unavailable', message: 'Down.', retryable: true }
      : {
          ok: true,
          output,
          provider: 'p',
          model: 'm',
          mode: 'live',
          usage: { inputTokens: 1, outputTokens: 1, costUsd: 0 },
          fallbacks: [],
        }
  },
})

test('the suite has several tasks for every lane, each with checks and a unique id', () => {
  const { tasks } = readBenchmarkSuite()
  for (const { agentId } of LANES)
    expect(tasks.filter((task) => task.agent_id === agentId).length).toBeGreaterThanOrEqual(6)
  for (const task of tasks) expect(task.checks.length).toBeGreaterThan(0)
  expect(new Set(tasks.map((task) => task.id)).size).toBe(tasks.length)
})

test('the offline lanes pass most of the suite, and trivial answers do not', async () => {
  const suite = readBenchmarkSuite()
  const { lanes: results } = await runBenchmark(
    { lane: createOfflineLane(), clock: systemClock, verify: verifyOutput },
    LANES,
    suite,
  )
  expect(results).toHaveLength(LANES.length)
  for (const result of results)
    expect([result.agent_id, result.success_rate >= 0.6, result.score.mean >= 0.7]).toEqual([
      result.agent_id,
      true,
      true,
    ])
  const { lanes: trivialResults } = await runBenchmark(
    {
      lane: createScriptedLane(Object.fromEntries(suite.tasks.map((task) => [task.task, 'Yes.'])), () => {}),
      clock: systemClock,
      verify: verifyOutput,
    },
    LANES,
    suite,
  )
  for (const result of trivialResults) expect(result.success_rate).toBeLessThanOrEqual(0.2)
})

test('success rate, interval, median latency and price per success are computed correctly', async () => {
  const clock = createTestClock()
  const latencies = [10, 30, 20, 40]
  const tasks: BenchmarkTask[] = ['a', 'b', 'c', 'd'].map((task) => ({
    id: task,
    agent_id: 'x',
    task,
    checks: [{ contains: 'river' }, { min_words: 2 }],
  }))
  const lane = createScriptedLane({ a: 'A river.', b: 'No stream.', c: 'Two rivers.' }, () =>
    clock.advance(latencies.shift()!),
  )
  const verify = async () => ({ verified: true, score: 1 })
  const suite = { suite_version: 't', tasks }
  const { lanes } = await runBenchmark({ lane, clock, verify }, [{ agentId: 'x', priceUsdc: 0.02 }], suite)
  const result = lanes[0]
  expect(result).toMatchObject({
    agent_id: 'x',
    n: 4,
    success_rate: 0.5,
    score: { mean: 0.625 },
    latency_ms: 30,
    // The last task failed and is not charged.
    price_per_verified_success_usdc: 0.03,
  })
  const [low, high] = result!.score.ci95
  expect(low).toBeLessThan(0.1)
  expect(high).toBe(1)
})

test('a perfect score keeps a confidence interval', async () => {
  const tasks = Array.from({ length: 12 }, (_, i) => ({ id: `t${i}`, agent_id: 'x', task: 'a', checks: [] }))
  const lane = createScriptedLane({ a: 'A river.' }, () => {})
  const verify = async () => ({ verified: true, score: 1 })
  const suite = { suite_version: 't', tasks }
  const { lanes } = await runBenchmark({ lane, clock: systemClock, verify }, [{ agentId: 'x', priceUsdc: 1 }], suite)
  expect(lanes[0]!.score).toEqual({ mean: 1, ci95: [0.7575, 1] })
})

test('an unverified output is no success, and without a success there is no price per success', async () => {
  const tasks: BenchmarkTask[] = [{ id: 'a', agent_id: 'x', task: 'a', checks: [{ contains: 'river' }] }]
  const deps = {
    lane: createScriptedLane({ a: 'A river.' }, () => {}),
    clock: systemClock,
    verify: async () => ({ verified: false, score: 0.4 }),
  }
  const { lanes } = await runBenchmark(deps, [{ agentId: 'x', priceUsdc: 1 }], { suite_version: 't', tasks })
  expect(lanes).toMatchObject([{ success_rate: 0, score: { mean: 0.4 }, price_per_verified_success_usdc: null }])
})

test('each check can fail', () => {
  expect(passesCheck({ contains: 'Rhine' }, 'the rhine')).toBe(true)
  expect(passesCheck({ contains: 'Rhine' }, 'the Elbe')).toBe(false)
  expect(passesCheck({ lacks: 'elbe' }, 'the Elbe')).toBe(false)
  expect(passesCheck({ matches: '\\b18\\b' }, '180')).toBe(false)
  expect(passesCheck({ json: true }, '{"a":1')).toBe(false)
  expect(passesCheck({ list: true }, 'one, two')).toBe(false)
  expect(passesCheck({ list: true }, 'Here:\n- one')).toBe(true)
  expect(passesCheck({ max_words: 2 }, 'one two three')).toBe(false)
  expect(passesCheck({ min_words: 3 }, 'one two')).toBe(false)
})
