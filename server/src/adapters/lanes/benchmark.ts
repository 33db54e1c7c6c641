import { readFileSync } from 'node:fs'
import type { Lane, LaneResult } from '../../modules/runs/lane.ts'
import type { Clock } from '../../platform/clock.ts'

/** A committed set of tasks for every lane, with checks of substance that any good answer passes, a model's or not. */
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

export type LaneBenchmark = {
  agent_id: string
  n: number
  /** Share of tasks that were done, passed all checks and were verified. */
  success_rate: number
  /** Mean score and the 95 % interval of that mean, all within 0..1; never of no width, since no suite proves perfection. */
  score: { mean: number; ci95: [number, number] }
  /** The median. */
  latency_ms: number
  /** What was charged for each verified success; null when there was none. */
  price_per_verified_success_usdc: number | null
}

export type BenchmarkDeps = {
  lane: Lane
  clock: Clock
  /** The verification every run goes through, so that the benchmark judges by the same rules. */
  verify(input: {
    agentId: string
    task: string
    output: string
    mode: 'live' | 'offline'
  }): Promise<{ verified: boolean; score: number }>
  taskTimeoutMs?: number
}

export type BenchmarkLane = { agentId: string; priceUsdc: number }

const TASK_TIMEOUT_MS = 60_000

export const readBenchmarkSuite = (): BenchmarkSuite =>
  JSON.parse(readFileSync(new URL('../../../data/benchmark/suite.json', import.meta.url), 'utf8')) as BenchmarkSuite

/** Runs the suite one task at a time, so that latency is a lane's own. */
export async function runBenchmark(
  deps: BenchmarkDeps,
  lanes: readonly BenchmarkLane[],
  suite: BenchmarkSuite,
): Promise<LaneBenchmark[]> {
  const results: LaneBenchmark[] = []
  for (const lane of lanes) {
    const marks: Mark[] = []
    for (const task of suite.tasks) if (task.agent_id === lane.agentId) marks.push(await markTask(deps, task))
    if (marks.length > 0) results.push(summarise(lane, marks))
  }
  return results
}

/** What failed is not charged; what was done is, good or not. */
type Mark = { success: boolean; charged: boolean; score: number; latencyMs: number }

async function markTask(deps: BenchmarkDeps, task: BenchmarkTask): Promise<Mark> {
  const started = deps.clock.now()
  const limit = deps.taskTimeoutMs ?? TASK_TIMEOUT_MS
  const result = await deps.lane.execute({
    runId: `benchmark_${task.id}`,
    agentId: task.agent_id,
    task: task.task,
    context: [],
    deadline: new Date(started.getTime() + limit),
    signal: AbortSignal.timeout(limit),
  })
  const latencyMs = deps.clock.now().getTime() - started.getTime()
  if (!result.ok) return { success: false, charged: false, score: 0, latencyMs }
  return { ...(await judge(deps, task, result)), charged: true, latencyMs }
}

/** The score is how many checks hold, times how far the output was verified: neither alone is quality. */
async function judge(deps: BenchmarkDeps, task: BenchmarkTask, result: Extract<LaneResult, { ok: true }>) {
  const passed = task.checks.filter((check) => holds(check, result.output)).length
  const verification = await deps.verify({
    agentId: task.agent_id,
    task: task.task,
    output: result.output,
    mode: result.mode,
  })
  const share = task.checks.length > 0 ? passed / task.checks.length : 1
  return { success: share === 1 && verification.verified, score: share * verification.score }
}

export function holds(check: BenchmarkCheck, output: string): boolean {
  const text = output.toLowerCase()
  if ('contains' in check) return text.includes(check.contains.toLowerCase())
  if ('lacks' in check) return !text.includes(check.lacks.toLowerCase())
  if ('matches' in check) return new RegExp(check.matches, 'i').test(output)
  if ('json' in check) return isJson(output)
  if ('list' in check) return /^\s*(?:[-*•]|\d{1,3}[.)])\s+\S/m.test(output)
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

function summarise(lane: BenchmarkLane, marks: readonly Mark[]): LaneBenchmark {
  const n = marks.length
  const successes = marks.filter((mark) => mark.success).length
  const charged = marks.filter((mark) => mark.charged).length
  const mean = marks.reduce((sum, mark) => sum + mark.score, 0) / n
  const latencies = marks.map((mark) => mark.latencyMs).sort((a, b) => a - b)
  return {
    agent_id: lane.agentId,
    n,
    success_rate: round(successes / n, 4),
    score: {
      mean: round(mean, 4),
      ci95: intervalOf(
        mean,
        marks.map((mark) => mark.score),
      ),
    },
    latency_ms: latencies[Math.floor(n / 2)]!,
    price_per_verified_success_usdc: successes > 0 ? round((lane.priceUsdc * charged) / successes, 6) : null,
  }
}

/**
 * The wider of two intervals: Student's, which knows how the scores spread, and Wilson's, which keeps a width where all
 * scores were the same. Twelve good answers of twelve do not prove that the thirteenth will be good.
 */
function intervalOf(mean: number, scores: readonly number[]): [number, number] {
  const n = scores.length
  const variance = n > 1 ? scores.reduce((sum, score) => sum + (score - mean) * (score - mean), 0) / (n - 1) : 0
  const student = (studentT(n - 1) * Math.sqrt(variance)) / Math.sqrt(n)
  const z = 1.96
  const centre = (mean + (z * z) / (2 * n)) / (1 + (z * z) / n)
  const wilson = (z * Math.sqrt((mean * (1 - mean)) / n + (z * z) / (4 * n * n))) / (1 + (z * z) / n)
  const low = Math.max(0, Math.min(mean - student, centre - wilson))
  const high = Math.min(1, Math.max(mean + student, centre + wilson))
  return [round(low, 4), round(high, 4)]
}

/** The two-sided 95 % quantile of Student's t. Suites are small, and the normal's 1.96 would promise too narrow an interval. */
function studentT(freedom: number): number {
  const table = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  ]
  if (freedom < 1) return 0
  return table[freedom - 1] ?? (freedom <= 30 ? 2.09 : 1.98)
}

const round = (value: number, decimals: number) => Number(value.toFixed(decimals))
