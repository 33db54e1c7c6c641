import { setImmediate } from 'node:timers/promises'
import { readBenchmarkSuite } from '../adapters/lanes/benchmark.ts'
import { runWithoutParsers, workerName } from '../adapters/lanes/offline-task.ts'
import { verifyOutput } from '../modules/verification/verification.ts'

/**
 * The first tasks of a process compile what reads them, up to a tenth of a second in one go, while everybody else waits. So
 * it reads the tasks of the benchmark once when it has started, one at a time; it stores nothing and calls no model.
 */
export async function warmUp({ chooseLane, mode }: { chooseLane(task: string): unknown; mode: 'live' | 'offline' }) {
  let output = ''
  for (const { agent_id: agentId, task } of readBenchmarkSuite().tasks) {
    chooseLane(task)
    await setImmediate()
    const result =
      mode === 'offline' ? await runWithoutParsers({ worker: workerName(agentId), task, context: [] }) : undefined
    if (result && 'output' in result) output = result.output
    await setImmediate()
    if (output) await verifyOutput({ agentId, task, output, mode })
    if (mode === 'live') output = task
    await setImmediate()
  }
}
