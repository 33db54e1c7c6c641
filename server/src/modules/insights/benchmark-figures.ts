import { usdcFromMicro } from '../../platform/money.ts'

/** One task of the suite on one lane. */
export type BenchmarkResult = {
  agentId: string
  taskId: string
  /** The lane gave an output, so a caller would have paid for it. */
  completed: boolean
  verified: boolean
  /** 0..1 */
  score: number
  latencyMs: number
  priceMicro: bigint
  provider: string | null
  model: string | null
  mode: string | null
}

/** What a lane's results amount to. Its price for a verified success counts what its other outputs cost as well. */
export function laneFigures(agentId: string, results: readonly BenchmarkResult[]) {
  const n = results.length
  const verified = results.filter((result) => result.verified)
  const scores = results.map((result) => result.score)
  const latencies = results.map((result) => result.latencyMs).sort((one, other) => one - other)
  const paidMicro = results.reduce((sum, { completed, priceMicro }) => sum + (completed ? priceMicro : 0n), 0n)
  const models = [...new Set(results.flatMap(({ model }) => (model === null ? [] : [model])))].sort()
  const modes = [...new Set(results.flatMap(({ mode }) => (mode === null ? [] : [mode])))].sort()
  return {
    agent_id: agentId,
    n,
    success_rate: round(verified.length / n),
    success_ci95: wilson(verified.length / n, n),
    score: { mean: round(mean(scores)), ci95: meanInterval(scores) },
    latency_ms: { p50: percentile(latencies, 0.5), p95: percentile(latencies, 0.95) },
    price_per_verified_success_usdc:
      verified.length === 0 ? null : usdcFromMicro(dividedUp(paidMicro, BigInt(verified.length))),
    models,
    modes,
  }
}

const round = (value: number) => Math.round(value * 10_000) / 10_000
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
const dividedUp = (amount: bigint, by: bigint) => (amount + by - 1n) / by

/** The nearest rank: always a latency that was really measured. */
const percentile = (sorted: readonly number[], share: number) =>
  Math.round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]! * 1_000) / 1_000

type Interval = [low: number, high: number]
const within = (low: number, high: number): Interval => [round(Math.max(0, low)), round(Math.min(1, high))]

/** For a share of successes: it stays within 0 and 1 and does not vanish when everything succeeded. */
export function wilson(rate: number, n: number): Interval {
  const z = 1.96
  const centre = rate + (z * z) / (2 * n)
  const spread = z * Math.sqrt((rate * (1 - rate) + (z * z) / (4 * n)) / n)
  const whole = 1 + (z * z) / n
  return within((centre - spread) / whole, (centre + spread) / whole)
}

/**
 * Student's interval of the mean. Where every task scored alike, the spread is not known to be nothing, only not seen:
 * then the widest that a score between 0 and 1 can have is taken, which is that of successes.
 */
export function meanInterval(scores: readonly number[]): Interval {
  const n = scores.length
  const middle = mean(scores)
  const variance = scores.reduce((sum, score) => sum + (score - middle) ** 2, 0) / Math.max(1, n - 1)
  if (variance < 1e-12) return wilson(middle, n)
  const half = studentT(n - 1) * Math.sqrt(variance / n)
  return within(middle - half, middle + half)
}

/** Two-sided 95 % quantiles, from one to thirty degrees of freedom; past those the remainder follows 2.4 / df closely. */
const T95 = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11,
  2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
]
const studentT = (degrees: number) => T95[degrees - 1] ?? 1.96 + 2.4 / degrees
