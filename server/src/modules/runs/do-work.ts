import { sha256 } from '../../platform/canonical.ts'
import type { Recalled } from '../memory/run-memory.ts'
import type { Failure } from './answer.ts'
import type { Deps } from './execute-run.ts'
import type { Lane, LaneResult } from './lane.ts'
import type { Run, RunResult } from './run.ts'

/** The work of an admitted run, under its deadline, verified: a result, or the reason why there is none. */
export async function doWork(d: Deps, run: Run): Promise<RunResult | Failure> {
  return execute(d, run).catch((error) => broken(d, run, error))
}

async function execute(d: Deps, run: Run): Promise<RunResult | Failure> {
  const started = performance.now()
  const memories = await recall(d, run)
  if ('stage' in memories) return memories
  const context = memories.map((memory) => memory.content)
  const signal = AbortSignal.timeout(Math.max(1, run.deadlineAt.getTime() - d.clock.now().getTime()))
  const task = {
    runId: run.id,
    agentId: run.agentId,
    task: run.request.task,
    context,
    deadline: run.deadlineAt,
    signal,
  }
  const done = await attempt(d, task)
  if (!done.ok) return { stage: 'execute', reason: done.reason, message: done.message, retryable: done.retryable }
  const latency_ms = Math.round(performance.now() - started)
  const reexecute = async () => {
    const again = await attempt(d, task)
    return again.ok ? again.output : ''
  }
  const judged = await d.verify({
    agentId: run.agentId,
    task: task.task,
    output: done.output,
    mode: done.mode,
    context,
    ...(done.mode === 'offline' && { reexecute }),
  })
  return {
    output: done.output,
    output_hash: sha256(done.output),
    execution: {
      provider: done.provider,
      model: done.model,
      mode: done.mode,
      latency_ms,
      usage: {
        input_tokens: done.usage.inputTokens,
        output_tokens: done.usage.outputTokens,
        cost_usd: done.usage.costUsd,
      },
      fallbacks: done.fallbacks,
    },
    verification: { verification_id: d.ids.next('ver'), ...judged } as RunResult['verification'],
    memory: {
      read: memories.map((memory) => memory.id),
      written: run.tenantId && run.request.options?.write_memory ? d.ids.next('mem') : null,
    },
    actions: await d.evaluateActions(
      { tenantId: run.tenantId, keyId: run.terms.ruling.asked_by, agentId: run.agentId },
      run.request.proposed_actions ?? [],
    ),
    receipt_id: d.ids.next('rcpt'),
    issued_at: d.clock.now().toISOString(),
  }
}

async function recall(d: Deps, { id, tenantId, sessionId, request }: Run): Promise<Recalled[] | Failure> {
  if (!tenantId || !request.options?.include_memory) return []
  try {
    return await d.memory.recall({ tenantId, sessionId, task: request.task })
  } catch (error) {
    d.log.error({ err: error, run_id: id }, 'memory could not be read')
    const message = 'The memory of the session could not be read.'
    return { stage: 'execute', reason: 'memory_unavailable', message, retryable: true }
  }
}

/** An admitted run comes to an end, whatever goes wrong on our side. */
function broken(d: Deps, run: Run, error: unknown): Failure {
  d.log.error({ err: error, run_id: run.id }, 'a run broke while it was worked on')
  return { stage: 'execute', reason: 'internal_error', message: 'Something went wrong on our side.', retryable: true }
}

async function attempt(d: Deps, task: Parameters<Lane['execute']>[0]): Promise<LaneResult> {
  try {
    return await d.lane.execute(task)
  } catch (error) {
    d.log.error({ err: error, run_id: task.runId }, 'a lane threw')
    return { ok: false, reason: 'unavailable', message: 'The lane failed.', retryable: true }
  }
}
