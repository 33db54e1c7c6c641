import { setTimeout as sleep } from 'node:timers/promises'
import { auditPending, pendingAuditId, withAuditLink } from '../../platform/audit-link.ts'
import { StepRefused } from '../../platform/batch.ts'
import { conflict, invalid, Problem, unavailable } from '../../platform/problem.ts'
import type { AllowedAssessment, AssessmentRequest } from '../governance/assess/assessment.ts'
import { completeAtOnce, mayCompleteAtOnce } from './complete-at-once.ts'
import { buildAdmission, draftRun } from './draft-run.ts'
import {
  findApprovedResponse,
  findResponseToFirstRequest,
  findStoredResponse,
  findUnansweredResponse,
} from './find-stored-response.ts'
import { chooseOffer } from './offer.ts'
import type { PaidRequest } from './paid-request.ts'
import { type Run, type RunResponse, stepOwner } from './paid-unit.ts'
import {
  areFundsMoving,
  checkWallet,
  checkX402Payment,
  fundsPromisedResponse,
  type PaymentMethod,
  walletTooLowResponse,
} from './payment-method.ts'
import { pendingResponse } from './pending-response.ts'
import { performRun } from './perform-run.ts'
import type { RunDeps } from './run-deps.ts'
import { createAnswerOrNote } from './unanswered.ts'

/** How often a run is assessed again because rules or limits changed while it was being admitted. */
const MAX_REASSESSMENTS = 8

/** A payment that is being settled has left the balance and is still promised: a moment later it is one of the two. */
const SETTLING_PAUSE_MS = 100

/**
 * A paid run from the request to its admission; `perform-run.ts` does the rest, before the response or, when the caller
 * prefers an early one, after it. A run that fails before its result is stored is not charged; one that is interrupted
 * after that is finished by the reconciler.
 */
export const createExecuteRun = (deps: RunDeps) => {
  const answerOrNote = createAnswerOrNote(deps)
  const executeRun = async (
    request: PaidRequest,
    attempt = { count: 0, rulesChanged: false },
  ): Promise<RunResponse> => {
    const reassess = (rulesChanged: boolean) => {
      if (attempt.count >= MAX_REASSESSMENTS)
        throw unavailable('The limits of this run keep changing; nothing was charged.', 1)
      return executeRun(request, { count: attempt.count + 1, rulesChanged })
    }

    requireTenantForMemory(request)
    const storedResponse =
      (await findStoredResponse(deps, request)) ??
      (await findApprovedResponse(deps, request)) ??
      (request.body.payment ? undefined : await findUnansweredResponse(deps, request))
    if (storedResponse) return storedResponse
    requireAbleLane(deps, request)

    const offer = chooseOffer(deps, request)
    deps.afterStep('route')

    const assessmentRequest = toAssessmentRequest(request)
    const assessment = await deps.assess(assessmentRequest, offer, attempt).catch(async (error: unknown) => {
      // The approval may have been used since, for this very request.
      const approvedResponse = await findApprovedResponse(deps, request)
      if (approvedResponse) return approvedResponse
      throw error
    })
    if ('status' in assessment) return assessment
    if (assessment.refused) {
      const refusal = await deps.recordRefusal(assessmentRequest, assessment)
      if (!refusal) return reassess(true)
      throw refusal
    }
    deps.afterStep('assess')

    const paymentMethod = await (request.body.payment ? checkWallet : checkX402Payment)(deps, request, assessment.offer)
    if ('status' in paymentMethod) return paymentMethod
    if (attempt.count === 0) await request.countPayer(paymentMethod.payer)
    deps.afterStep('check')

    const run = draftRun(deps, request, assessment, paymentMethod)
    const { owner } = stepOwner(run)
    const atOnce = mayCompleteAtOnce(deps, request, run, assessment, paymentMethod)
      ? await completeAtOnce(deps, request, run, paymentMethod, assessment)
      : undefined
    if (atOnce && 'response' in atOnce) return atOnce.response
    if (request.respondAsync) deps.background.requireRoom(owner)
    const mayWait = attempt.count < MAX_REASSESSMENTS
    const options = { mayWait, repeated: atOnce !== undefined }
    const admission = await admitRun(deps, request, run, paymentMethod, assessment, options)
    if (admission === 'rules_changed' || admission === 'limit_reached') return reassess(admission === 'rules_changed')
    if (admission === 'funds_settling') {
      await sleep(SETTLING_PAUSE_MS)
      return reassess(false)
    }
    if (admission !== 'admitted') return admission
    deps.afterStep('admit')
    request.endTurn()

    const settlement = paymentMethod.method === 'x402' ? paymentMethod.settlement : undefined
    if (!request.respondAsync) {
      const response = performRun(deps, run, settlement, { work: atOnce?.work })
      return settlement ? answerOrNote(run, response) : response
    }
    deps.background.start(run.id, owner, (cancelled) => performRun(deps, run, settlement, { cancelled }))
    return pendingResponse(deps, run)
  }
  return async (request: PaidRequest) => completeAudit(deps, request, await executeRun(request))
}

/** An answer that a policy wants on the record is sent only with the place of its event in the audit chain. */
async function completeAudit(deps: RunDeps, request: PaidRequest, response: RunResponse): Promise<RunResponse> {
  const eventId = pendingAuditId(response.body)
  if (eventId === undefined || request.caller.kind !== 'tenant') return response
  const link = await deps.awaitAudit(request.caller.tenantId, eventId)
  if (link) return { ...response, body: withAuditLink(response.body, link) }
  const { run_id } = JSON.parse(response.body) as { run_id: string }
  const isRepeatable = request.paid !== undefined || request.idempotencyKey !== undefined
  throw auditPending({ run_id }, `/api/runs/${run_id}`, isRepeatable)
}

/** A lane that knows that it cannot do a task says so before anything is paid, whoever pays and whatever was quoted. */
function requireAbleLane(deps: Pick<RunDeps, 'lane'>, { body }: PaidRequest) {
  const obstacle = deps.lane.findObstacle?.(body.task)
  if (!obstacle) return
  const { message, needed } = obstacle
  throw new Problem('invalid_request', `${message} Nothing was charged. Needed: ${needed}`, {
    status: 400,
    code: 'lane_cannot',
    extra: { lane_mode: deps.lane.mode, needed },
  })
}

/** Checked before the 402: a guest would pay for memory and get none. */
function requireTenantForMemory({ caller, body: { options } }: PaidRequest) {
  if (caller.kind === 'guest' && (options?.include_memory || options?.write_memory))
    throw invalid('Memory belongs to a tenant: send an X-API-Key, or leave include_memory and write_memory out.')
}

const toAssessmentRequest = (request: PaidRequest): AssessmentRequest => ({
  kind: request.kind,
  caller: request.caller,
  action: request.kind,
  sessionId: request.body.session_id ?? '',
  requestHash: request.requestHash,
  request: request.body,
  budget: request.body.budget,
  policy: request.body.policy,
  spender: request.body.spender,
  tags: request.body.tags,
  mandateId: request.body.mandate_id,
  preauthToken: request.body.preauth_token,
  approvalId: request.body.approval_id,
  overrideToken: request.body.override_token,
  resend: {
    bodyHash: request.bodyHash,
    idempotencyKey: request.idempotencyKey,
    quoteToken: request.quoteToken,
  },
})

/** `repeated`: the run may have been written before, and nobody knows. */
type AdmitOptions = { mayWait: boolean; repeated: boolean }

/**
 * Transaction A: reserves the nonce and the key, holds the limits, consumes the grants and writes the run. Returns a
 * response when the run may not begin, and the reason when its assessment is out of date.
 */
async function admitRun(
  deps: RunDeps,
  request: PaidRequest,
  run: Run,
  paymentMethod: PaymentMethod,
  assessment: AllowedAssessment,
  { mayWait, repeated }: AdmitOptions,
): Promise<'admitted' | 'rules_changed' | 'limit_reached' | 'funds_settling' | RunResponse> {
  try {
    const { item, locks } = buildAdmission(deps, request, run, paymentMethod, assessment)
    const admission = await deps.steps.admit(item, locks, { ...stepOwner(run), repeated })
    // Warnings are reported from the counters at admission, not from those of the assessment.
    if (admission.ruling) run.terms.ruling = admission.ruling
    run.holds = admission.holds
    return 'admitted'
  } catch (error) {
    if (!(error instanceof StepRefused)) throw error
    if (error.message === 'rules_changed' || error.message === 'limit_reached') return error.message
    // Another mandate than the one that was chosen comes first now.
    if (error.message === 'room_changed') return 'limit_reached'
    const storedResponse =
      error.message === 'approval_used'
        ? await findApprovedResponse(deps, request)
        : await findResponseToFirstRequest(deps, request, error)
    if (storedResponse) return storedResponse
    if (error.message === 'payer_exposure')
      throw new Problem('error', 'Too much of this payer is verified and not yet settled; try again in a moment.', {
        status: 429,
        code: 'rate_limited',
        retryable: true,
        retryAfterSeconds: 2,
      })
    if (error.message === 'payer_funds' && paymentMethod.method === 'x402') {
      const { funds, payer } = paymentMethod
      if (mayWait && (await areFundsMoving(deps, payer, funds))) return 'funds_settling'
      const inFlightMicro = BigInt(String(error.detail.reserved_micro))
      return fundsPromisedResponse(deps, request, assessment.offer, funds, inFlightMicro)
    }
    if (error.message === 'wallet_balance')
      return walletTooLowResponse(deps, request, assessment.offer, BigInt(String(error.detail.available)))
    throw conflict(`The run could not begin: ${error.message.replaceAll('_', ' ')}.`, { cause: error })
  }
}
