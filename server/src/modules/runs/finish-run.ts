import { StepRefused } from '../../platform/batch.ts'
import { isUnavailable } from '../../platform/db.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import { readStoredResponse } from './find-stored-response.ts'
import {
  type Failure,
  type PaidUnit,
  type Run,
  type RunResponse,
  type RunResult,
  stepOwner,
  type UnitResult,
} from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'
import { buildCompletion, buildFailure } from './run-responses.ts'
import { settlementUnknownResponse } from './settlement-unknown.ts'

/** How long the request may take to settle before the reconciler checks the chain. */
const SETTLE_GRACE_MS = 30_000

/**
 * Ends a unit whose result is stored. Called by the request and by the reconciler: the first call writes the response,
 * a second one returns it.
 */
export async function finishRun(
  deps: RunDeps,
  unit: PaidUnit,
  result: UnitResult,
  outcome: SettleResult,
): Promise<RunResponse> {
  if (outcome.state === 'unknown') return markUnknown(deps, unit, outcome.reason)
  if (outcome.state === 'failed')
    return abandonRun(deps, unit, {
      stage: 'settle',
      reason: outcome.reason,
      message: `The payment could not be settled: ${outcome.message}`,
      retryable: false,
    })
  const { item, response } = buildCompletion(deps, unit, result, outcome)
  try {
    const { first } = await deps.steps.complete({ ...item, admission: null }, unit.locks, stepOwner(unit))
    return toCompletedResponse(deps, unit, first, response)
  } catch (error) {
    // The facilitator named a transaction that already belongs to another payment, so its answer proves nothing.
    if ((error as { code?: string }).code === '23505') return markUnknown(deps, unit, 'transaction_used_before')
    throw error
  }
}

/** Transactions B and C in one: the price was set aside when the run was admitted, and no chain is involved. */
export async function finishFromWallet(deps: RunDeps, run: Run, result: RunResult): Promise<RunResponse> {
  try {
    return await completeFromWallet(deps, run, result)
  } catch (error) {
    if (error instanceof StepRefused) return readStoredResponse(deps, run.id)
    return giveUpRun(deps, run, error)
  }
}

/** Throws `StepRefused` when the run has gone on since it was read. */
export async function completeFromWallet(deps: RunDeps, run: Run, result: RunResult): Promise<RunResponse> {
  const { item, response } = buildCompletion(deps, run, result, 'wallet')
  const { first } = await deps.steps.complete({ ...item, admission: run.admission }, run.locks, stepOwner(run))
  return toCompletedResponse(deps, run, first, response)
}

/**
 * Ends a run whose result the database does not take, before any money has moved, so that its caller is not left with a
 * reserved payment. If the process dies before this is done, the orphan sweep of another process does it. While the
 * database cannot be reached at all, nothing can be written: then the sweep ends the run after its deadline.
 */
export async function giveUpRun(deps: RunDeps, run: Run, error: unknown): Promise<RunResponse> {
  if (isUnavailable(error)) throw error
  deps.log.error({ err: error, run_id: run.id }, 'the result of a run could not be stored')
  const failure: Failure = {
    stage: 'execute',
    reason: 'result_not_stored',
    message: 'The result could not be stored.',
    retryable: true,
  }
  return abandonRun(deps, run, failure, { admission: run.admission })
}

/** The state and the admission in which a run may be ended without a charge; in any other the step is refused. */
export type AbandonFrom = { state?: 'executing'; admission?: string }

/** Ends a unit without a charge: voids the pending money, releases the limits and signs a receipt with `charged: false`. */
export async function abandonRun(
  deps: RunDeps,
  unit: PaidUnit,
  failure: Failure,
  { state, admission }: AbandonFrom = {},
): Promise<RunResponse> {
  const { item, response } = buildFailure(deps, unit, failure)
  const from = { from_state: state ?? null, admission: admission ?? null }
  const { first } = await deps.steps.abandon({ ...item, ...from }, unit.locks, stepOwner(unit))
  if (!first) return readStoredResponse(deps, unit.id)
  deps.metrics.runs.inc({ kind: unit.kind, agent_id: unit.agentId, outcome: 'failed' })
  return response
}

/** What transaction B writes. */
export const toKeepItem = (deps: Pick<RunDeps, 'clock'>, unit: PaidUnit, result: UnitResult) => ({
  run_id: unit.id,
  admission: unit.admission,
  result,
  next_attempt_at: new Date(deps.clock.now().getTime() + SETTLE_GRACE_MS).toISOString(),
})

/** `first` is false when another process has completed the run before: its response is stored. */
async function toCompletedResponse(
  deps: RunDeps,
  unit: PaidUnit,
  first: boolean,
  response: RunResponse,
): Promise<RunResponse> {
  deps.afterStep('complete')
  if (!first) return readStoredResponse(deps, unit.id)
  countCompleted(deps, unit)
  return response
}

export function countCompleted(deps: Pick<RunDeps, 'metrics'>, { kind, agentId, priceMicro }: PaidUnit): void {
  deps.metrics.runs.inc({ kind, agent_id: agentId, outcome: 'completed' })
  deps.metrics.settledMicro.inc({ kind }, Number(priceMicro))
}

/** Records that it is not known whether the payment arrived; the reconciler will check the chain. */
async function markUnknown(deps: RunDeps, unit: PaidUnit, reason: string): Promise<RunResponse> {
  const at = deps.clock.now().toISOString()
  const event = {
    id: deps.ids.next('evt'),
    tenant_id: unit.tenantId,
    type: 'settlement.unknown',
    data: { run_id: unit.id, settlement_id: unit.settlementId, reason },
    created_at: at,
  }
  const { state } = await deps.steps.noteUnknown(
    { run_id: unit.id, reason, at, event },
    [`run:${unit.id}`],
    stepOwner(unit),
  )
  if (state !== 'unknown') return readStoredResponse(deps, unit.id)
  return settlementUnknownResponse(unit.id, unit.terms.request_id)
}
