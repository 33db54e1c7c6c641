import { expect, test } from 'vitest'
import { type BenchmarkResult, laneFigures, meanInterval, wilson } from './benchmark-figures.ts'

const result = (change: Partial<BenchmarkResult>): BenchmarkResult => ({
  agentId: 'writer-v1',
  taskId: 't',
  completed: true,
  verified: true,
  score: 1,
  latencyMs: 10,
  priceMicro: 13_000n,
  provider: 'offline',
  model: 'offline-writer-1',
  mode: 'offline',
  ...change,
})

test('a verified success costs what all outputs cost together; work that gave none costs nothing', () => {
  const results = [
    result({ latencyMs: 5 }),
    result({ latencyMs: 7 }),
    result({ verified: false, score: 0.4, latencyMs: 90 }),
    result({ completed: false, verified: false, score: 0, latencyMs: 30, model: null, mode: null }),
  ]
  expect(laneFigures('writer-v1', results)).toMatchObject({
    agent_id: 'writer-v1',
    n: 4,
    success_rate: 0.5,
    score: { mean: 0.6 },
    latency_ms: { p50: 7, p95: 90 },
    price_per_verified_success_usdc: 0.0195,
    models: ['offline-writer-1'],
    modes: ['offline'],
  })
})

test('a third of a micro is rounded up, and no success has no price', () => {
  const thrice = [result({ priceMicro: 1n }), result({ priceMicro: 3n }), result({ priceMicro: 3n })]
  expect(laneFigures('a', thrice).price_per_verified_success_usdc).toBe(0.000003)
  expect(laneFigures('a', [result({ verified: false })]).price_per_verified_success_usdc).toBeNull()
})

test('the intervals are those of the textbooks', () => {
  // Ten of twelve: Wilson 0.552 to 0.953.
  expect(wilson(10 / 12, 12)).toEqual([0.552, 0.953])
  // 0.2, 0.4, 0.6, 0.8: mean 0.5, s = 0.2582, t(3) = 3.182.
  expect(meanInterval([0.2, 0.4, 0.6, 0.8])).toEqual([0.0892, 0.9108])
  const many = Array.from({ length: 101 }, (_, n) => n / 100)
  const [low, high] = meanInterval(many)
  expect(high - low).toBeCloseTo(2 * 1.984 * (Math.sqrt((101 * 102) / 12) / 100 / Math.sqrt(101)), 3)
})

test('a dozen perfect scores do not prove perfection, and one score proves little', () => {
  expect(meanInterval(Array(12).fill(1))).toEqual([0.7575, 1])
  expect(meanInterval([1])[0]).toBeLessThan(0.3)
})
