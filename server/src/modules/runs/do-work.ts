import { sha256 } from '../../platform/canonical.ts'
import { StepBudgetExceeded } from '../../platform/step-budget.ts'
import { isStorableText } from '../../platform/storable-text.ts'
import type { RecalledMemory } from '../memory/run-memory.ts'
import type { OutputCheck, OutputVerification, VerifyOutputInput } from '../verification/verification.ts'
import { paymentMethodOf } from './draft-receipt.ts'
import type { Lane, LaneResult, PartialOutput } from './lane.ts'
import { type Failure, memoryUse, type Run, type RunResult, stepOwner, type Verification } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'

/** Does the work of an admitted run before its deadline, unless it is cancelled, and verifies the output. Never throws: a run must come to an end. */
export async function doWork(deps: RunDeps, run: Run, options: WorkOptions = {}): Promise<RunResult | Failure> {
  // A timer of its own instead of AbortSignal.timeout, whose timer stays until it fires: most work takes a moment of its time.
  const deadline = new AbortController()
  const msLeft = Math.max(1, run.deadlineAt.getTime() - deps.clock.now().getTime())
  const timer = setTimeout(
    () => deadline.abort(new DOMException('The deadline of the run has passed.', 'TimeoutError')),
    msLeft,
  )
  const signal = options.cancelled ? AbortSignal.any([deadline.signal, options.cancelled]) : deadline.signal
  try {
    return await execute(deps, run, signal, options.onText)
  } catch (error) {
    return internalFailure(deps, run, error)
  } finally {
    clearTimeout(timer)
  }
}

export type WorkOptions = { cancelled?: AbortSignal | undefined; onText?: ((part: PartialOutput) => void) | undefined }

async function execute(
  deps: RunDeps,
  run: Run,
  signal: AbortSignal,
  onText: WorkOptions['onText'],
): Promise<RunResult | Failure> {
  const startedAt = performance.now()
  const memories = await recallMemories(deps, run)
  if ('stage' in memories) return memories
  const context = memories.map((memory) => memory.content)
  const task = {
    runId: run.id,
    ...stepOwner(run),
    agentId: run.agentId,
    task: run.request.task,
    context,
    deadline: run.deadlineAt,
    signal,
    ...(onText && { onText }),
  }
  const result = await callLane(deps, task)
  if (!result.ok)
    return { stage: 'execute', reason: result.reason, message: result.message, retryable: result.retryable }
  const latency_ms = Math.round(performance.now() - startedAt)
  const reexecute = async () => {
    const secondResult = await callLane(deps, task)
    return secondResult.ok ? secondResult.output : ''
  }
  const { verification, judge } = await verifyResult(deps, run, {
    agentId: run.agentId,
    task: task.task,
    output: result.output,
    mode: result.mode,
    context,
    ...(result.finishedEarly && { finishedEarly: true }),
    ...(result.mode === 'offline' && { reexecute }),
    signal,
  })
  if (verification.verified === false && !verification.accepted_unverified)
    return verificationFailure(verification, result.mode)
  return {
    output: result.output,
    output_hash: sha256(result.output),
    execution: {
      provider: result.provider,
      model: result.model,
      mode: result.mode,
      latency_ms,
      usage: toUsage(result, judge),
      fallbacks: result.fallbacks,
      ...(judge && { judge: toJudgeUsage(judge) }),
    },
    verification,
    memory: {
      read: memories.map((memory) => memory.id),
      written: memoryUse(run).writes ? deps.ids.next('mem') : null,
    },
    ...(memories.length > 0 && { memory_reasons: memories.map(({ id, why, words }) => ({ id, why, words })) }),
    actions: await deps.evaluateActions(
      { tenantId: run.tenantId, keyId: run.terms.ruling.asked_by, agentId: run.agentId },
      run.request.proposed_actions ?? [],
    ),
    receipt_id: deps.ids.next('rcpt'),
    issued_at: deps.clock.now().toISOString(),
    ...(paymentMethodOf(run) === 'x402' && { public_url: deps.publicUrl() }),
  }
}

/** The tokens of the lane, and of the judge where one was asked. */
const toUsage = (
  { usage }: Pick<PartialOutput, 'usage'>,
  judge?: OutputVerification['judge'],
): RunResult['execution']['usage'] => ({
  input_tokens: usage.inputTokens + (judge?.usage.inputTokens ?? 0),
  output_tokens: usage.outputTokens + (judge?.usage.outputTokens ?? 0),
  cost_usd: Number((usage.costUsd + (judge?.usage.costUsd ?? 0)).toFixed(8)),
})

const INCOMPLETE: OutputCheck = {
  name: 'answered',
  passed: false,
  weight: 1,
  decides: true,
  reason: 'The run was cancelled while the output was written.',
}

/** The result of a run that was cancelled after its tenant has seen text of it: what there was, unverified and paid for. */
export function toCancelledResult(deps: RunDeps, run: Run, part: PartialOutput): RunResult {
  const { output, provider, model } = part
  const now = deps.clock.now()
  const latency_ms = Math.max(0, now.getTime() - run.createdAt.getTime())
  return {
    output,
    output_hash: sha256(output),
    execution: { provider, model, mode: 'live', latency_ms, usage: toUsage(part), fallbacks: [], cancelled: true },
    verification: {
      verification_id: deps.ids.next('ver'),
      verified: false,
      score: 0,
      grade: 'F',
      checks: [INCOMPLETE],
      accepted_unverified: true,
    },
    memory: { read: [], written: null },
    actions: [],
    receipt_id: deps.ids.next('rcpt'),
    issued_at: now.toISOString(),
  }
}

const toJudgeUsage = ({ provider, model, usage }: NonNullable<OutputVerification['judge']>) => ({
  provider,
  model,
  usage: { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens, cost_usd: usage.costUsd },
})

type VerifiedResult = { verification: Verification; judge?: OutputVerification['judge'] }

async function verifyResult(deps: RunDeps, run: Run, input: VerifyOutputInput): Promise<VerifiedResult> {
  const verification_id = deps.ids.next('ver')
  const { verify, accept_unverified } = run.request.options ?? {}
  if (verify === false)
    return { verification: { verification_id, verified: null, score: null, grade: null, checks: [] } }
  const { judge, ...verification } = await deps.verify(input)
  return {
    verification: {
      verification_id,
      ...verification,
      ...(!verification.verified && accept_unverified && { accepted_unverified: true as const }),
    },
    ...(judge && { judge }),
  }
}

/** The caller pays for verified work only. An offline lane would give the same output again. */
function verificationFailure(verification: Verification, mode: 'live' | 'offline'): Failure {
  const failedChecks = verification.checks.filter(({ passed, decides }) => !passed && decides).map(({ name }) => name)
  return {
    stage: 'verify',
    reason: 'verification_failed',
    message: `The output failed what decides over it (${failedChecks.join(', ')}), so it is not delivered.`,
    retryable: mode === 'live',
    verification,
  }
}

async function recallMemories(deps: RunDeps, run: Run): Promise<RecalledMemory[] | Failure> {
  const { id, tenantId, sessionId, request } = run
  if (!tenantId || !memoryUse(run).reads) return []
  try {
    return await deps.memory.recall({ tenantId, sessionId, task: request.task })
  } catch (error) {
    deps.log.error({ err: error, run_id: id }, 'memory could not be read')
    const message = 'The memory of the session could not be read.'
    return { stage: 'execute', reason: 'memory_unavailable', message, retryable: true }
  }
}

function internalFailure(deps: RunDeps, run: Run, error: unknown): Failure {
  if (error instanceof StepBudgetExceeded)
    return { stage: 'verify', reason: 'step_budget_exceeded', message: error.message, retryable: false }
  deps.log.error({ err: error, run_id: run.id }, 'a run failed with an internal error')
  return { stage: 'execute', reason: 'internal_error', message: 'Something went wrong on our side.', retryable: true }
}

async function callLane(deps: RunDeps, task: Parameters<Lane['execute']>[0]): Promise<LaneResult> {
  try {
    return rejectUnstorable(await deps.lane.execute(task))
  } catch (error) {
    deps.log.error({ err: error, run_id: task.runId }, 'a lane failed with an internal error')
    return { ok: false, reason: 'unavailable', message: 'The lane failed.', retryable: true }
  }
}

/** An output that cannot be stored is the lane's fault, and is noticed before the result is kept. */
const rejectUnstorable = (result: LaneResult): LaneResult =>
  !result.ok || isStorableText(result.output)
    ? result
    : {
        ok: false,
        reason: 'invalid_output',
        message: 'The lane returned characters that are not text.',
        retryable: true,
      }
