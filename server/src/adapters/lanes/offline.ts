import { availableParallelism } from 'node:os'
import { extname } from 'node:path'
import type { Lane, LaneObstacle, LaneResult, LaneTask } from '../../modules/runs/lane.ts'
import { createThreadPool, type ThreadPool, type ThreadResult } from '../../platform/thread-pool.ts'
import { findOutOfReach, type OutOfReach } from './offline/out-of-reach.ts'
import { needsParsers, type OfflineInput, type OfflineOutput, runWithoutParsers, workerName } from './offline-task.ts'

/** Increased whenever an offline lane may give a different output for the same task: a verifier compares within one version. */
const VERSION = 4

/** Up to this length, task and memories together, a task takes less time than handing it to a thread. */
const MAX_INLINE_CHARACTERS = 2_000
const MAX_WAITING = 1_024
/** Every reader is linear and has a budget of steps, so that only a fault in a parser of code can take this long. */
const DEADLINE_MS = 5_000

const OBSTACLES: Record<OutOfReach | 'none', LaneObstacle | undefined> = {
  none: undefined,
  translation: {
    message: 'This task asks for a translation, and the lanes of this service work by rule, without a model.',
    needed: 'A service whose `lane_mode` is `live`: one with a language model behind its lanes.',
  },
  image: {
    message: 'This task asks for an image, and the lanes of this service answer with text.',
    needed: 'A service that makes images.',
  },
}

export type OfflinePool = ThreadPool<OfflineInput, OfflineOutput>

/** Threads start with the first task that needs one. */
const createOfflinePool = (): OfflinePool =>
  createThreadPool({
    // `.ts` in the repository, `.js` in the npm package.
    module: new URL(`./offline-thread${extname(import.meta.filename)}`, import.meta.url),
    maxThreads: Math.max(1, Math.min(4, availableParallelism() - 1)),
    maxWaiting: MAX_WAITING,
    deadlineMs: DEADLINE_MS,
  })

/**
 * The lanes that need no model. They are deterministic, so that anyone can run a task again and compare the output hash.
 * They are the default when no provider is configured.
 */
export function createOfflineLane(pool: OfflinePool = createOfflinePool()): Lane {
  return {
    name: 'offline',
    mode: 'offline',
    version: (agentId) => modelName(workerName(agentId)),
    isMomentary: (agentId, task) =>
      task.length <= MAX_INLINE_CHARACTERS && !needsParsers({ worker: workerName(agentId), task, context: [] }),
    findObstacle: (task) => OBSTACLES[findOutOfReach(task) ?? 'none'],
    execute: async (task: LaneTask) => {
      if (task.signal.aborted) return failure('timeout', 'The deadline passed before the lane started.')
      const worker = workerName(task.agentId)
      const input = { worker, task: task.task, context: task.context }
      const length = task.context.reduce((sum, memory) => sum + memory.length, task.task.length)
      const output = length <= MAX_INLINE_CHARACTERS ? await runWithoutParsers(input) : undefined
      return toLaneResult(worker, output ? { state: 'done', output } : await pool.run(input, task.signal))
    },
  }
}

function toLaneResult(worker: string, result: ThreadResult<OfflineOutput>): LaneResult {
  if (result.state === 'timeout') return failure('timeout', 'The task took too long to read and was stopped.')
  if (result.state === 'full') return failure('unavailable', 'Too many tasks are waiting for the offline lanes.')
  if (result.state === 'failed') return failure('unavailable', 'The lane failed.')
  if ('refused' in result.output)
    return { ok: false, reason: 'refused', message: result.output.refused, retryable: false }
  return {
    ok: true,
    output: result.output.output,
    provider: 'offline',
    model: modelName(worker),
    mode: 'offline',
    usage: { inputTokens: 0, outputTokens: 0, costUsd: 0 },
    fallbacks: [],
  }
}

const modelName = (worker: string) => `offline-${worker}-${VERSION}`

const failure = (reason: 'timeout' | 'unavailable', message: string): LaneResult => ({
  ok: false,
  reason,
  message,
  retryable: true,
})
