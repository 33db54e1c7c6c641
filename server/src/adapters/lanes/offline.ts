import type { Lane, LaneTask } from '../../modules/runs/lane.ts'
import type { Brief } from './offline/brief.ts'
import { readBrief } from './offline/brief.ts'
import type { Report } from './offline/report.ts'
import { render } from './offline/report.ts'

/** Raised whenever any offline lane could give other bytes for the same task: a verifier compares within one version. */
const VERSION = 2

type Worker = (brief: Brief) => Report | Promise<Report>

/** Each worker is loaded when its first task arrives, so that starting the service costs nothing for them. */
const WORKERS: Readonly<Record<string, () => Promise<Worker>>> = {
  analyst: async () => (await import('./offline/analyst.ts')).analyse,
  coder: async () => (await import('./offline/coder.ts')).review,
  comedian: async () => (await import('./offline/comedian.ts')).amuse,
  researcher: async () => (await import('./offline/researcher.ts')).research,
  strategist: async () => (await import('./offline/strategist.ts')).strategise,
  support: async () => (await import('./offline/support.ts')).support,
  writer: async () => (await import('./offline/writer.ts')).write,
  default: async () => (await import('./offline/general.ts')).help,
}

/** "coder-v1" and a later "coder-v2" are both the coder; an agent nobody wrote a worker for gets the general one. */
const workerName = (agentId: string) => {
  const name = agentId.replace(/-v\d+$/, '')
  return Object.hasOwn(WORKERS, name) ? name : 'default'
}

/**
 * The lanes that need no model: deterministic, so that anyone can run a task again and compare the hash of the output.
 * They are the default when no provider is configured.
 */
export function createOfflineLane(): Lane {
  return {
    name: 'offline',
    mode: 'offline',
    execute: async (task: LaneTask) => {
      if (task.signal.aborted)
        return {
          ok: false,
          reason: 'timeout',
          message: 'The deadline passed before the lane started.',
          retryable: true,
        }
      const name = workerName(task.agentId)
      const brief = readBrief(task.task, task.context)
      const worker = await WORKERS[name]!()
      const output = render(await worker(brief), brief.wish)
      return {
        ok: true,
        output,
        provider: 'offline',
        model: `offline-${name}-${VERSION}`,
        mode: 'offline',
        usage: { inputTokens: 0, outputTokens: 0, costUsd: 0 },
        fallbacks: [],
      }
    },
  }
}
