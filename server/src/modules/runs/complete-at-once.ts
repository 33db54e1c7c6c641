import { StepRefused } from '../../platform/batch.ts'
import { isUnavailable } from '../../platform/db.ts'
import { Problem } from '../../platform/problem.ts'
import type { AllowedAssessment } from '../governance/assess/assessment.ts'
import { toStoredHold } from '../governance/counters/limit-hold-item.ts'
import { doWork } from './do-work.ts'
import { buildAdmission } from './draft-run.ts'
import { countCompleted } from './finish-run.ts'
import type { PaidRequest } from './paid-request.ts'
import {
  type Failure,
  memoryUse,
  type Run,
  type RunResponse,
  type RunResult,
  type RunTerms,
  stepOwner,
} from './paid-unit.ts'
import type { PaymentMethod } from './payment-method.ts'
import type { RunDeps } from './run-deps.ts'
import { buildCompletion } from './run-responses.ts'
import type { CompletionAtOnceItem } from './runs.steps.ts'

/**
 * Whether a run may be done before it is written down: a wallet pays for it, nobody but us is called, the work takes a moment,
 * and nothing that it uses can be used once only. If the process dies over it, nothing has happened.
 */
export const mayCompleteAtOnce = (
  deps: Pick<RunDeps, 'lane'>,
  { body, respondAsync }: Pick<PaidRequest, 'body' | 'respondAsync'>,
  run: Run,
  { summary, runId }: AllowedAssessment,
  paymentMethod: PaymentMethod,
): boolean => {
  const { reads, writes } = memoryUse(run)
  return (
    paymentMethod.method === 'wallet' &&
    !paymentMethod.escrow &&
    !respondAsync &&
    !reads &&
    !writes &&
    body.proposed_actions === undefined &&
    runId === undefined &&
    summary.approval_id === null &&
    summary.override_id === null &&
    summary.preauth_id === null &&
    // Warnings are told from the counters at admission.
    summary.policy_applied.every(({ outcome, verdict }) => outcome !== 'warning' && verdict !== 'blocked') &&
    deps.lane.isMomentary?.(run.agentId, run.request.task) === true
  )
}

/** The answer of a run that was completed at once, or the work of one that must be admitted first. */
type Attempt = { response: RunResponse } | { work: RunResult | Failure }

/**
 * Does the work, then writes admission and completion in one transaction. When the work failed or the step was refused, nothing has
 * been written and the usual way says why. After any other error nobody knows, so the usual way asks for the run first.
 */
export async function completeAtOnce(
  deps: RunDeps,
  request: PaidRequest,
  draft: Run,
  paymentMethod: PaymentMethod,
  assessment: AllowedAssessment,
): Promise<Attempt> {
  const { item: admission, locks } = buildAdmission(deps, request, draft, paymentMethod, assessment)
  const run: Run = { ...draft, holds: admission.holds.map(toStoredHold) }
  const work = await doWork(deps, run)
  if ('stage' in work) return { work }
  deps.afterStep('execute')
  request.endTurn()

  const { item: completion, response } = buildCompletion(deps, run, work, 'wallet')
  const item = toItem(admission, completion, run.terms)
  if (!item) return { work }
  try {
    await deps.steps.completeAtOnce(item, locks, stepOwner(run))
  } catch (error) {
    // Too much is waiting, or the database is away: it says so itself.
    if (error instanceof Problem || isUnavailable(error)) throw error
    if (!(error instanceof StepRefused))
      deps.log.error({ err: error, run_id: run.id }, 'a run could not be completed at once')
    return { work }
  }
  deps.afterStep('complete')
  countCompleted(deps, run)
  return { response }
}

type Admission = ReturnType<typeof buildAdmission>['item']
type Completion = ReturnType<typeof buildCompletion>['item']

/** Undefined for a run without a tenant, a wallet or rules that it was assessed by. */
function toItem(admission: Admission, completion: Completion, terms: RunTerms): CompletionAtOnceItem | undefined {
  const { instance, payment, nonce, escrow, result, next_attempt_at, audit, grants, ...draft } = admission
  const { tenant_id, wallet_id } = draft
  if (tenant_id === null || wallet_id === null || grants?.rules_version === undefined) return undefined
  const { at, ledger_id, answer, result: summary, cost_usd, latency_ms, receipt, events } = completion
  return {
    ...draft,
    tenant_id,
    wallet_id,
    grants: { rules_version: grants.rules_version, needs: grants.needs ?? [] },
    terms: keptTerms(terms),
    at,
    ledger_id,
    answer,
    result: summary,
    cost_usd,
    latency_ms,
    receipt,
    events,
    audits: [audit, completion.audit],
  }
}

/**
 * What is kept of the terms of a completed run; its answer tells the rest, and simulations read the outcomes of its rules. The
 * same as SQL `move_to_ended` keeps.
 */
function keptTerms({ ruling, ...terms }: RunTerms): Record<string, unknown> {
  const { locks, route, pricing, pending_id, input_hash, salt, counter_salt, request_id, escrow_id, ...kept } = terms
  const outcomes = ruling.policy_applied.map(({ policy_id, outcome, verdict, mode }) =>
    withoutNulls({ policy_id, outcome, verdict, mode }),
  )
  const distinct = new Map(outcomes.map((outcome) => [JSON.stringify(outcome), outcome]))
  return withoutNulls({ ...kept, ruling: withoutNulls({ ...ruling, policy_applied: [...distinct.values()] }) })
}

const withoutNulls = (value: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null && member !== undefined))
