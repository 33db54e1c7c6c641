import type { Caller } from '../../platform/auth-context.ts'
import { StepRefused } from '../../platform/batch.ts'
import { hashJson } from '../../platform/canonical.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import { differentBody } from '../../platform/idempotency.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import type { Metrics } from '../../platform/metrics.ts'
import { conflict, invalid, Problem, unavailable } from '../../platform/problem.ts'
import type { Lane as PricedLane } from '../catalog/price-list.ts'
import type {
  AllowedAssessment,
  Assessment,
  AssessmentRequest,
  Offer,
  RefusedAssessment,
} from '../governance/assessment.ts'
import type { ActionContext } from '../governance/evaluate-actions.ts'
import type { Memory } from '../memory/memory.ts'
import type { PaymentTerms, SettleResult } from '../payments/facilitator.ts'
import type { Payments } from '../payments/payments.ts'
import type { ReceivedPayment } from '../payments/x402.ts'
import type { Receipts } from '../receipts/receipts.ts'
import { type Answer, completion, type Failure, failure, replay, stillUnknown } from './answer.ts'
import { doWork } from './do-work.ts'
import { admission, draftRun } from './draft-run.ts'
import { findEarlier } from './earlier.ts'
import type { Lane } from './lane.ts'
import { byX402, fromWallet, type Means, walletTooLow } from './means.ts'
import { offerFor } from './offer.ts'
import type { PaidUnit, Run, RunBody, RunResult, RunStep, UnitResult } from './run.ts'
import { findRun, findSettlementOf, type RunSteps, type StoredAnswer } from './runs.store.ts'
import type { VerifyOutputInput } from './verify-output.ts'

/** How often a run is judged anew because rules or limits moved under it. */
const MAX_LOOKS = 8

/** A request for paid work, read and normalised, with nothing judged yet. */
export type Ask = {
  kind: 'run' | 'loop'
  route: '/api/run' | '/api/loop'
  caller: Caller
  body: RunBody
  /** From `/api/route`; the quote of a 402 comes back inside the payment instead. */
  quoteToken: string | undefined
  requestHash: string
  bodyHash: string
  idempotencyKey: string | undefined
  paid: ReceivedPayment | undefined
  requestId: string
  /** Counts the request: against the payer once the payment is known to be his, against the address otherwise. */
  countPayer(payer: string): Promise<void>
  countAddress(): Promise<void>
}

export type Routed = {
  agentId: string
  route: Record<string, unknown>
  alternatives: readonly { agentId: string; score: number }[]
}

export type OfferReceipt = {
  offered(resourceUrl: string, terms: PaymentTerms): Record<string, unknown>
  delivered(resourceUrl: string, paid: { payer: string; issuedAt: Date; transaction: string }): Record<string, unknown>
}

export type Deps = {
  db: Db
  steps: RunSteps
  clock: Clock
  ids: Ids
  log: Log
  metrics: Metrics
  instance: string
  publicUrl: () => string
  deadlineSeconds: number
  exposureMicro: bigint
  find(agentId: string): PricedLane | undefined
  pricingVersion(): string
  choose(task: string, constraints: RunBody['constraints']): Routed
  assess(proposal: AssessmentRequest, offer: Offer, how: { rulesChanged: boolean }): Promise<Assessment>
  /** Writes a refusal down and gives the answer to it; undefined when the world has moved and it must be judged anew. */
  refuse(proposal: AssessmentRequest, ruling: RefusedAssessment): Promise<Problem | undefined>
  evaluateActions(
    asking: ActionContext,
    actions: readonly Record<string, unknown>[],
  ): Promise<Record<string, unknown>[]>
  payments: Payments
  /** A wallet of this tenant; throws `not_found` for any other. */
  wallet(tenantId: string, walletId: string): Promise<{ available_micro: bigint }>
  /** The x402 extension `offer-receipt`: signs the price in the 402 and the delivery in the answer. */
  offer: OfferReceipt
  memory: Pick<Memory, 'recall' | 'ofRun'>
  lane: Lane
  verify(
    input: VerifyOutputInput,
  ): Promise<{ verified: boolean; score: number; grade: string; checks: readonly unknown[] }>
  receipts: Pick<Receipts, 'sign'>
  /** Called after each step; the crash test stops the process there. */
  probe(step: RunStep): void
}

/** The whole story of a paid run. What fails before `keep` is not charged; what fails after it, the reconciler finishes. */
export const createExecuteRun = (d: Deps) => {
  const tell = async (ask: Ask, look = { count: 0, rulesChanged: false }): Promise<Answer> => {
    const lookAgain = (rulesChanged: boolean) => {
      if (look.count >= MAX_LOOKS) throw unavailable('The limits of this run keep changing; nothing was charged.', 1)
      return tell(ask, { count: look.count + 1, rulesChanged })
    }
    refuseGuestMemory(ask)
    const earlier = await findEarlier(d, ask)
    if (earlier) return earlier
    const offer = offerFor(d, ask)
    d.probe('route')
    const proposal = proposalOf(ask)
    const ruling = await d.assess(proposal, offer, look)
    if (ruling.refused) {
      const refusal = await d.refuse(proposal, ruling)
      if (!refusal) return lookAgain(true)
      throw refusal
    }
    d.probe('assess')
    const means = await (ask.body.payment ? fromWallet : byX402)(d, ask, ruling.offer)
    if ('status' in means) return means
    if (look.count === 0) await ask.countPayer(means.payer)
    d.probe('check')
    const run = draftRun(d, ask, ruling, means)
    const taken = await admit(d, ask, run, means, ruling)
    if (taken === 'rules_changed' || taken === 'limit_reached') return lookAgain(taken === 'rules_changed')
    if (taken) return taken
    d.probe('admit')
    const work = await doWork(d, run)
    if ('stage' in work) return abandon(d, run, work)
    d.probe('execute')
    if (run.terms.escrow_id && !work.verification.verified) return abandon(d, run, unverified(work))
    if (means.method === 'wallet') return finishFromWallet(d, run, work)
    if (!(await keep(d, run, work))) return answerOf(d, run.id)
    d.probe('keep')
    const outcome = await d.payments.settle(means.settlement)
    d.probe('settle')
    return finish(d, run, work, outcome)
  }
  return (ask: Ask) => tell(ask)
}

/** The reconciler's only door too. Whoever comes first writes the answer; the other reads it. */
export async function finish(d: Deps, unit: PaidUnit, work: UnitResult, outcome: SettleResult): Promise<Answer> {
  if (outcome.state === 'unknown') return leaveUnknown(d, unit, outcome.reason)
  if (outcome.state === 'failed')
    return abandon(d, unit, {
      stage: 'settle',
      reason: outcome.reason,
      message: `The payment could not be settled: ${outcome.message}`,
      retryable: false,
    })
  const { item, headers } = completion(d, unit, work, outcome)
  try {
    const stored = await d.steps.complete(item, unit.locks)
    return completed(d, unit, stored, headers)
  } catch (error) {
    // The facilitator named a transaction that already stands for another payment: what it says proves nothing.
    if ((error as { code?: string }).code === '23505') return leaveUnknown(d, unit, 'transaction_used_before')
    throw error
  }
}

/** Transactions B and C in one: the price was set aside when the run was admitted, and no chain is asked. */
async function finishFromWallet(d: Deps, run: Run, work: RunResult): Promise<Answer> {
  const { item, headers } = completion(d, run, work, 'wallet')
  try {
    const stored = await d.steps.keepAndComplete({ ...item, keep: kept(d, run, work) }, run.locks)
    return completed(d, run, stored, headers)
  } catch (error) {
    if (error instanceof StepRefused) return answerOf(d, run.id)
    throw error
  }
}

function completed(d: Deps, unit: PaidUnit, stored: StoredAnswer, headers: Answer['headers']): Answer {
  d.probe('complete')
  if (stored.first) {
    d.metrics.runs.inc({ kind: unit.kind, agent_id: unit.agentId, outcome: 'completed' })
    d.metrics.settledMicro.inc({ kind: unit.kind }, Number(unit.priceMicro))
  }
  return { status: stored.status, body: stored.body, headers }
}

/** Escrow was asked for, and it is released only for work that holds. */
const unverified = ({ verification }: RunResult): Failure => ({
  stage: 'verify',
  reason: 'verification_failed',
  message: `The output was graded ${verification.grade} and did not pass verification. The escrow went back to the wallet.`,
  retryable: true,
})

/** Told before anything is asked for: a run that silently forgot would be paid for in vain. */
function refuseGuestMemory({ caller, body: { options } }: Ask) {
  if (caller.kind === 'guest' && (options?.include_memory || options?.write_memory))
    throw invalid('Memory belongs to a tenant: send an X-API-Key, or leave include_memory and write_memory out.')
}

const proposalOf = (ask: Ask): AssessmentRequest => ({
  kind: ask.kind,
  caller: ask.caller,
  action: ask.kind,
  sessionId: ask.body.session_id ?? '',
  requestHash: ask.requestHash,
  request: ask.body,
  budget: ask.body.budget,
  policy: ask.body.policy,
  preauthToken: ask.body.preauth_token,
  approvalId: ask.body.approval_id,
  overrideToken: ask.body.override_token,
})

/** Transaction A. An answer comes back only when this run may not begin: somebody was first, or its judgement no longer holds. */
async function admit(
  d: Deps,
  ask: Ask,
  run: Run,
  means: Means,
  ruling: AllowedAssessment,
): Promise<Answer | 'rules_changed' | 'limit_reached' | undefined> {
  try {
    const { item, locks } = admission(d, ask, run, means, ruling)
    const admitted = await d.steps.admit(item, locks)
    // Warnings are told as they were counted, not as they were foreseen.
    run.terms.ruling = admitted.ruling
    return undefined
  } catch (error) {
    if (!(error instanceof StepRefused)) throw error
    if (error.message === 'rules_changed' || error.message === 'limit_reached') return error.message
    if (error.message === 'nonce_used') {
      const known = await findEarlier(d, ask)
      if (known) return known
    }
    if (error.message === 'key_used') {
      if (!error.detail.same_body) throw differentBody()
      const runId = String(error.detail.run_id)
      return replay(d, await findRun(d.db, runId), await findSettlementOf(d.db, runId))
    }
    if (error.message === 'payer_exposure')
      throw new Problem('error', 'Too much of this payer is verified and not yet settled; try again in a moment.', {
        status: 429,
        code: 'rate_limited',
        retryable: true,
        retryAfterSeconds: 2,
      })
    if (error.message === 'wallet_balance')
      return walletTooLow(d, ask, ruling.offer, BigInt(String(error.detail.available)))
    throw conflict(`The run could not begin: ${error.message.replaceAll('_', ' ')}.`, { cause: error })
  }
}

/** Transaction B. False when a reconciler has meanwhile taken this run for dead; then its answer is the answer. */
async function keep(d: Deps, run: Run, work: RunResult): Promise<boolean> {
  try {
    await d.steps.keep(kept(d, run, work), [`run:${run.id}`])
    return true
  } catch (error) {
    if (error instanceof StepRefused) return false
    throw error
  }
}

/** Half a minute for the request to settle by itself; after that the reconciler looks. */
export const kept = (d: Pick<Deps, 'clock'>, unit: PaidUnit, work: UnitResult) => ({
  run_id: unit.id,
  admission: unit.admission,
  result: work,
  next_attempt_at: new Date(d.clock.now().getTime() + 30_000).toISOString(),
})

async function answerOf(d: Deps, runId: string): Promise<Answer> {
  return replay(d, await findRun(d.db, runId), await findSettlementOf(d.db, runId))
}

/** The way out of every failure before money moved: void, release, and a signed word that nothing was charged. */
export async function abandon(d: Deps, run: PaidUnit, why: Failure): Promise<Answer> {
  const { item, headers } = failure(d, run, why)
  const stored = await d.steps.abandon(item, run.locks)
  if (stored.first) d.metrics.runs.inc({ kind: run.kind, agent_id: run.agentId, outcome: 'failed' })
  return { status: stored.status, body: stored.body, headers }
}

async function leaveUnknown(d: Deps, run: PaidUnit, reason: string): Promise<Answer> {
  const now = d.clock.now()
  const event = {
    id: d.ids.next('evt'),
    tenant_id: run.tenantId,
    type: 'settlement.unknown',
    data: { run_id: run.id, settlement_id: run.settlementId, reason },
    created_at: now.toISOString(),
  }
  const { state } = await d.steps.noteUnknown(
    { settlement_id: run.settlementId, reason, at: now.toISOString(), event },
    [`run:${run.id}`],
  )
  if (state !== 'unknown') return answerOf(d, run.id)
  return stillUnknown(run.id, run.terms.request_id)
}

export const requestHash = (path: string, body: Record<string, unknown>): string => {
  const notBound = ['idempotency_key', 'approval_id', 'override_token', 'preauth_token', 'quote']
  const bound = Object.fromEntries(Object.entries(body).filter(([name]) => !notBound.includes(name)))
  return hashJson({ method: 'POST', path, body: bound })
}
