import { MAX_STEPS_PER_TASK, StepBudgetExceeded, withStepBudget } from '../../platform/step-budget.ts'
import { type Brief, readBrief } from './offline/brief.ts'
import { withRecalled } from './offline/recalled.ts'
import { type Report, renderReport } from './offline/report.ts'
import { findSources } from './offline/source.ts'

export type OfflineInput = { worker: string; task: string; context: readonly string[] }
export type OfflineOutput = { output: string } | { refused: string }

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
  const loaded = loadedWorkers.get(name)
  if (loaded) return loaded
  const worker = await WORKERS[name]!()
  loadedWorkers.set(name, worker)
  return worker
}

/** The version suffix is ignored, so "coder-v1" and "coder-v2" use the same worker; an unknown agent uses the general one. */
export const workerName = (agentId: string) => {
  const name = agentId.replace(/-v\d+$/, '')
  return Object.hasOwn(WORKERS, name) ? name : 'default'
}

/** Does a task in this thread. No other task may be under way in it, because the parsers of code are loaded on first use. */
export async function runOfflineTask(input: OfflineInput): Promise<OfflineOutput> {
  const worker = await loadWorker(input.worker)
  try {
    return await withStepBudget(MAX_STEPS_PER_TASK, async () => {
      const brief = readBrief(input.task, input.context)
      return { output: renderReport(withRecalled(await worker(brief), brief), brief.format) }
    })
  } catch (error) {
    return toRefusal(error)
  }
}

/** Whether a task is one for the threads: there is code in it, or it takes more steps to read than a run may use. */
export function needsParsers({ worker, task, context }: OfflineInput): boolean {
  if (worker !== 'default') return worker === 'coder'
  try {
    return withStepBudget(MAX_STEPS_PER_TASK, () => findSources(readBrief(task, context)).length > 0)
  } catch {
    return true
  }
}

/**
 * Does a task on the event loop. Undefined when there is code in it, which only a thread may parse: the parsers are not
 * ours and cannot be stopped.
 */
export async function runWithoutParsers(input: OfflineInput): Promise<OfflineOutput | undefined> {
  if (input.worker === 'coder') return undefined
  const worker = await loadWorker(input.worker)
  try {
    return withStepBudget(MAX_STEPS_PER_TASK, () => {
      const brief = readBrief(input.task, input.context)
      if (input.worker === 'default' && findSources(brief).length > 0) return undefined
      return { output: renderReport(withRecalled(worker(brief) as Report, brief), brief.format) }
    })
  } catch (error) {
    return toRefusal(error)
  }
}

function toRefusal(error: unknown): OfflineOutput {
  if (error instanceof StepBudgetExceeded) return { refused: error.message }
  throw error
}
