import type { Lane, LaneTask } from '../../modules/runs/lane.ts'
import type { Brief } from './offline/brief.ts'
import { readBrief } from './offline/brief.ts'
import type { Report } from './offline/report.ts'
import { renderReport } from './offline/report.ts'

/** Increased whenever an offline lane may give a different output for the same task: a verifier compares within one version. */
const VERSION = 2

type Worker = (brief: Brief) => Report | Promise<Report>

/** Each worker is loaded on its first task, so that it costs nothing at startup. */
const WORKERS: Readonly<Record<string, () => Promise<Worker>>> = {
  analyst: async () => (await import('./offline/analyst.ts')).analyseData,
  coder: async () => (await import('./offline/coder.ts')).reviewCode,
  comedian: async () => (await import('./offline/comedian.ts')).writeJokes,
  researcher: async () => (await import('./offline/researcher.ts')).researchText,
  strategist: async () => (await import('./offline/strategist.ts')).evaluateOptions,
  support: async () => (await import('./offline/support.ts')).triageSupport,
  writer: async () => (await import('./offline/writer.ts')).writeText,
  default: async () => (await import('./offline/general.ts')).answerGeneral,
}

/** Kept once loaded: a dynamic import resolves its module again on every call. */
const loadedWorkers = new Map<string, Worker>()

async function loadWorker(name: string): Promise<Worker> {
  const worker = await WORKERS[name]!()
  loadedWorkers.set(name, worker)
  return worker
}

/** The version suffix is ignored, so "coder-v1" and "coder-v2" use the same worker; an unknown agent uses the general one. */
const workerName = (agentId: string) => {
  const name = agentId.replace(/-v\d+$/, '')
  return Object.hasOwn(WORKERS, name) ? name : 'default'
}

/**
 * The lanes that need no model. They are deterministic, so that anyone can run a task again and compare the output hash.
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
      const worker = loadedWorkers.get(name) ?? (await loadWorker(name))
      const output = renderReport(await worker(brief), brief.format)
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
