import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller } from '../../platform/auth-context.ts'
import type { StepRefused } from '../../platform/batch.ts'
import { differentBody, stillInFlight } from '../../platform/idempotency.ts'
import { conflict } from '../../platform/problem.ts'
import { toPaymentNonce } from '../payments/x402.ts'
import { type PaidRequest, type RequestIdentity, requestKeys } from './paid-request.ts'
import type { RunResponse, RunTerms } from './paid-unit.ts'
import { pendingResponse } from './pending-response.ts'
import { replayHeaders } from './response-headers.ts'
import type { RunDeps } from './run-deps.ts'
import {
  findByKey,
  findRun,
  findRunWithSettlement,
  findSettlementOf,
  forgetUnanswered,
  type RunRow,
  readAnswerBody,
  type SettlementRow,
} from './runs.store.ts'
import { settlementUnknownResponse } from './settlement-unknown.ts'

type StoredResponseDeps = Pick<RunDeps, 'db' | 'reads' | 'clock' | 'offerReceipt' | 'publicUrl' | 'runToken'> & {
  payments: Pick<RunDeps['payments'], 'termsFor'>
}

/** The response to the same payment or the same idempotency key, if it was used before. */
export async function findStoredResponse(
  deps: StoredResponseDeps,
  request: RequestIdentity,
): Promise<RunResponse | undefined> {
  if (request.paid) {
    const runId = await deps.reads.findRunOfNonce(toPaymentNonce(request.paid, deps.payments.termsFor(0n)))
    if (runId !== undefined) {
      const existingRun = await findRunWithSettlement(deps.db, runId)
      const { signature } = existingRun.settlement.payment as { signature?: string }
      const isSamePayment = signature === request.paid.payment.signature
      if (!mayReadResponse(request.caller, existingRun.run, isSamePayment)) throw paymentUsed()
      if (!isSamePayment || existingRun.run.request_hash !== request.requestHash)
        throw conflict('This payment was used for another request. It was not charged again.')
      return replayResponse(deps, existingRun.run, existingRun.settlement)
    }
  }
  if (request.caller.kind !== 'tenant') return undefined
  const scope = `tenant:${request.caller.tenantId}`
  for (const key of requestKeys(request)) {
    const existingRun = await findByKey(deps.db, scope, request.route, key, deps.clock.now())
    if (!existingRun) continue
    if (existingRun.bodyHash !== request.bodyHash) throw differentBody()
    return replayToRepeat(deps, existingRun.run, existingRun.settlement)
  }
  return undefined
}

/**
 * The response to an earlier request of this tenant with the same body, which it was told to ask for again and did not
 * get: the client cannot send the same payment and would be asked for another.
 */
export async function findUnansweredResponse(
  deps: StoredResponseDeps,
  { caller, requestHash }: RequestIdentity,
): Promise<RunResponse | undefined> {
  if (caller.kind !== 'tenant') return undefined
  const runId = await deps.reads.findUnansweredRun({ requestHash, owner: { tenantId: caller.tenantId } })
  return runId === undefined ? undefined : answerUnanswered(deps, runId)
}

/** The same of a run that was found. The caller must have shown that it is theirs: a guest by a payment that was verified. */
export async function answerUnanswered(deps: StoredResponseDeps, runId: string): Promise<RunResponse | undefined> {
  const run = await findRun(deps.db, runId)
  if (run.state !== 'failed') return replayToRepeat(deps, run, await findSettlementOf(deps.db, run.id))
  // Nothing was charged for it, so this request is a new one.
  await forgetUnanswered(deps.db, run.id)
  return undefined
}

/**
 * A stored response belongs to its tenant. A guest's belongs to whoever has the payment. The payment alone would not do
 * for a tenant's: its signature is public once it is in a transaction, and the task may be guessed.
 */
const mayReadResponse = (caller: Caller, run: RunRow, isSamePayment: boolean): boolean =>
  run.tenant_id === null ? isSamePayment : caller.kind === 'tenant' && caller.tenantId === run.tenant_id

/** The same words whatever the payment was used for, so that they tell nothing about it. */
const paymentUsed = () =>
  conflict('This payment has been used. Nothing was charged for this request.', { code: 'payment_used' })

const FIRST_PAUSE_MS = 25
const MAX_PAUSE_MS = 500

/**
 * The response of the run that an approval was used for, to the same request sent again: the service may have started it,
 * or is at it, and is waited for. A run paid by x402 is found by its payment alone.
 */
export async function findApprovedResponse(
  deps: StoredResponseDeps & Pick<RunDeps, 'findRunOfApproval' | 'deadlineSeconds'>,
  request: PaidRequest,
): Promise<RunResponse | undefined> {
  const { approval_id: approvalId, payment } = request.body
  if (approvalId === undefined || payment === undefined || request.caller.kind !== 'tenant') return undefined
  const runId = await deps.findRunOfApproval(request.caller, approvalId)
  if (runId === undefined) return undefined
  const deadline = performance.now() + deps.deadlineSeconds * 1000
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
    const run = await findRun(deps.db, runId)
    if (run.tenant_id !== request.caller.tenantId || run.request_hash !== request.requestHash) return undefined
    if (run.answer_status !== null || performance.now() > deadline)
      return replayResponse(deps, run, await findSettlementOf(deps.db, runId))
    if (request.respondAsync) return pendingResponse(deps, { id: runId, tenantId: run.tenant_id })
    await sleep(pause)
  }
}

/** The response to the request that came first, when a step was refused because it used the same payment or key. */
export async function findResponseToFirstRequest(
  deps: StoredResponseDeps,
  request: RequestIdentity,
  refusal: StepRefused,
): Promise<RunResponse | undefined> {
  if (refusal.message === 'nonce_used') return findStoredResponse(deps, request)
  if (refusal.message !== 'key_used') return undefined
  if (!refusal.detail.same_body) throw differentBody()
  const runId = String(refusal.detail.run_id)
  return replayToRepeat(deps, await findRun(deps.db, runId), await findSettlementOf(deps.db, runId))
}

/** The response stored for a run that another request or the reconciler has ended. */
export async function readStoredResponse(deps: StoredResponseDeps, runId: string): Promise<RunResponse> {
  return replayResponse(deps, await findRun(deps.db, runId), await findSettlementOf(deps.db, runId))
}

/** The same request with another payment or none. While the first payment is unknown, another must not be signed or used. */
async function replayToRepeat(deps: StoredResponseDeps, run: RunRow, settlement: SettlementRow): Promise<RunResponse> {
  if (run.answer_status === null && settlement.state === 'unknown' && !isAsync(run)) throw paymentUnknown(run.id)
  return replayResponse(deps, run, settlement)
}

const paymentUnknown = (runId: string) =>
  conflict(
    'It is not known yet whether the payment for this same request arrived. Nothing was charged now, and no other payment is needed: send this request again in a moment.',
    { retryable: true, retryAfterSeconds: 2, extra: { run_id: runId } },
  )

const isAsync = (run: RunRow) => (run.terms as RunTerms).async !== undefined

/** The stored response byte for byte. While there is none, the 202 of an asynchronous run, or a 409 or 503 that asks for the same request again. */
async function replayResponse(deps: StoredResponseDeps, run: RunRow, settlement: SettlementRow): Promise<RunResponse> {
  const body = await readAnswerBody(deps.db, run)
  if (body === null || run.answer_status === null) {
    if (isAsync(run)) return pendingResponse(deps, { id: run.id, tenantId: run.tenant_id })
    if (settlement.state === 'unknown') return settlementUnknownResponse(run.id, (run.terms as RunTerms).request_id)
    throw stillInFlight('payment or idempotency key')
  }
  if (settlement.method === 'x402') await forgetUnanswered(deps.db, run.id)
  return {
    status: run.answer_status,
    body,
    headers: { ...replayHeaders(deps, run, settlement), 'idempotent-replayed': 'true' },
  }
}
