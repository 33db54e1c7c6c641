import { readFileSync } from 'node:fs'
import type { LaneBenchmark } from '../../modules/insights/benchmark.ts'
import type { Lane, LaneResult } from '../../modules/runs/lane.ts'
import { sha256 } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import { wilsonInterval } from '../../platform/wilson.ts'

/** A committed set of tasks for every lane, with checks that any good output passes, whether a model wrote it or not. */
export type BenchmarkSuite = { suite_version: string; tasks: readonly BenchmarkTask[] }
export type BenchmarkTask = { id: string; agent_id: string; task: string; checks: readonly BenchmarkCheck[] }
export type BenchmarkCheck =
  | { contains: string }
  | { lacks: string }
  | { matches: string }
  | { json: true }
  | { list: true }
  | { max_words: number }
  | { min_words: number }

export type BenchmarkDeps = {
  lane: Lane
  clock: Clock
  /** The verification of runs, so that the benchmark uses the same rules. */
  verify(input: {
    agentId: string
    task: string
    output: string
    mode: 'live' | 'offline'
    everyCheck: true
  }): Promise<{ verified: boolean; score: number }>
  taskTimeoutMs?: number
  /** Called before each task; false ends the measurement with the tasks that were done. */
  mayContinue?(costUsd: number): Promise<boolean>
  /** Ends the task under way. */
  signal?: AbortSignal
}

export type BenchmarkLane = { agentId: string; priceUsdc: number }

const TASK_TIMEOUT_MS = 60_000

export const readBenchmarkSuite = (): BenchmarkSuite =>
  JSON.parse(readFileSync(new URL('../../../data/benchmark/suite.json', import.meta.url), 'utf8')) as BenchmarkSuite

/** What a measurement depends on: the suite, and what stands behind each of its lanes. */
export function benchmarkFingerprint(lane: Lane, suite: BenchmarkSuite): string {
  const agentIds = [...new Set(suite.tasks.map((task) => task.agent_id))].sort()
  const lanes = agentIds.map((agentId) => [agentId, lane.version?.(agentId) ?? lane.name])
  return sha256(JSON.stringify([suite, lane.mode, lanes]))
}

/**
 * Runs the suite one task at a time, so that tasks do not affect each other's latency, and the lanes in turns, so that a
 * measurement that ends early has tasks of all of them. `unavailable` is true when no provider answered a single task.
 */
export async function runBenchmark(
  deps: BenchmarkDeps,
  lanes: readonly BenchmarkLane[],
  suite: BenchmarkSuite,
): Promise<{ lanes: LaneBenchmark[]; costUsd: number; unavailable: boolean }> {
  const queues = lanes.map((lane) => ({
    lane,
    waiting: suite.tasks.filter((task) => task.agent_id === lane.agentId),
    results: [] as TaskResult[],
  }))
  let costUsd = 0
  const mayContinue = async () => (await deps.mayContinue?.(costUsd)) ?? true
  measuring: for (let turn = 0; queues.some(({ waiting }) => turn < waiting.length); turn++) {
    for (const { waiting, results } of queues) {
      const task = waiting[turn]
      if (!task) continue
      if (!(await mayContinue())) break measuring
      const result = await runTask(deps, task)
      results.push(result)
      costUsd += result.costUsd
    }
  }
  const measured = queues.filter(({ results }) => results.length > 0)
  return {
    lanes: measured.map(({ lane, results }) => summariseLane(lane, results)),
    costUsd: round(costUsd, 6),
    unavailable: measured.every(({ results }) => results.every((result) => result.unavailable)),
  }
}

/** A task that failed is not charged; a completed one is, whatever its score. */
type TaskResult = {
  success: boolean
  charged: boolean
  unavailable: boolean
  score: number
  latencyMs: number
  costUsd: number
}

async function runTask(deps: BenchmarkDeps, task: BenchmarkTask): Promise<TaskResult> {
  const startedAt = deps.clock.now()
  const timeoutMs = deps.taskTimeoutMs ?? TASK_TIMEOUT_MS
  const timeout = AbortSignal.timeout(timeoutMs)
  const result = await deps.lane.execute({
    runId: `benchmark_${task.id}`,
    agentId: task.agent_id,
    task: task.task,
    context: [],
    deadline: new Date(startedAt.getTime() + timeoutMs),
    signal: deps.signal ? AbortSignal.any([deps.signal, timeout]) : timeout,
  })
  const latencyMs = deps.clock.now().getTime() - startedAt.getTime()
  if (!result.ok) {
    const unavailable = result.reason === 'unavailable' || result.reason === 'timeout'
    return { success: false, charged: false, unavailable, score: 0, latencyMs, costUsd: 0 }
  }
  const { costUsd } = result.usage
  return { ...(await scoreOutput(deps, task, result)), charged: true, unavailable: false, latencyMs, costUsd }
}

/** The score is the share of passed checks times the verification score. */
async function scoreOutput(deps: BenchmarkDeps, task: BenchmarkTask, result: Extract<LaneResult, { ok: true }>) {
  const passed = task.checks.filter((check) => passesCheck(check, result.output)).length
  const verification = await deps.verify({
    agentId: task.agent_id,
    task: task.task,
    output: result.output,
    mode: result.mode,
    everyCheck: true,
  })
  const passedShare = task.checks.length > 0 ? passed / task.checks.length : 1
  return { success: passedShare === 1 && verification.verified, score: passedShare * verification.score }
}

export function passesCheck(check: BenchmarkCheck, output: string): boolean {
  const text = output.toLowerCase()
  if ('contains' in check) return text.includes(check.contains.toLowerCase())
  if ('lacks' in check) return !text.includes(check.lacks.toLowerCase())
  if ('matches' in check) return new RegExp(check.matches, 'i').test(output)
  if ('json' in check) return isJson(output)
  if ('list' in check) return /^[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+\S/m.test(output)
  const words = output.split(/\s+/).filter(Boolean).length
  return 'max_words' in check ? words <= check.max_words : words >= check.min_words
}

function isJson(output: string): boolean {
  try {
    JSON.parse(output)
    return true
  } catch {
    return false
  }
}

function summariseLane(lane: BenchmarkLane, taskResults: readonly TaskResult[]): LaneBenchmark {
  const n = taskResults.length
  const successes = taskResults.filter((taskResult) => taskResult.success).length
  const charged = taskResults.filter((taskResult) => taskResult.charged).length
  const mean = taskResults.reduce((sum, taskResult) => sum + taskResult.score, 0) / n
  const latencies = taskResults.map((taskResult) => taskResult.latencyMs).sort((a, b) => a - b)
  return {
    agent_id: lane.agentId,
    n,
    success_rate: round(successes / n, 4),
    score: {
      mean: round(mean, 4),
      ci95: confidenceInterval(
        mean,
        taskResults.map((taskResult) => taskResult.score),
      ),
    },
    latency_ms: latencies[Math.floor(n / 2)]!,
    price_per_verified_success_usdc: successes > 0 ? round((lane.priceUsdc * charged) / successes, 6) : null,
  }
}

/**
 * The wider of two intervals: Student's, which reflects the spread of the scores, and Wilson's, which keeps a width when
 * all scores are equal.
 */
function confidenceInterval(mean: number, scores: readonly number[]): [number, number] {
  const n = scores.length
  const variance = n > 1 ? scores.reduce((sum, score) => sum + (score - mean) * (score - mean), 0) / (n - 1) : 0
  const studentMargin = (studentT(n - 1) * Math.sqrt(variance)) / Math.sqrt(n)
  const wilson = wilsonInterval(mean, n)
  const low = Math.max(0, Math.min(mean - studentMargin, wilson.low))
  const high = Math.min(1, Math.max(mean + studentMargin, wilson.high))
  return [round(low, 4), round(high, 4)]
}

/** The two-sided 95 % quantile of Student's t. Suites are small, so the normal quantile 1.96 would give too narrow an interval. */
function studentT(degreesOfFreedom: number): number {
  const table = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  ]
  if (degreesOfFreedom < 1) return 0
  return table[degreesOfFreedom - 1] ?? (degreesOfFreedom <= 30 ? 2.09 : 1.98)
}

const round = (value: number, decimals: number) => Number(value.toFixed(decimals))
