import type { AwaitAudit } from '../../platform/audit-link.ts'
import type { TenantCaller } from '../../platform/auth-context.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Db } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import type { Log } from '../../platform/log.ts'
import type { Metrics } from '../../platform/metrics.ts'
import type { Problem } from '../../platform/problem.ts'
import type { Lane as PricedLane } from '../catalog/price-list.ts'
import type { Assessment, AssessmentRequest, Offer, RefusedAssessment } from '../governance/assess/assessment.ts'
import type { ActionContext } from '../governance/assess/evaluate-actions.ts'
import type { Memory } from '../memory/memory.ts'
import type { PaymentTerms } from '../payments/facilitator.ts'
import type { Payments } from '../payments/payments.ts'
import type { Receipts } from '../receipts/receipts.ts'
import type { OutputVerification, VerifyOutputInput } from '../verification/verification.ts'
import type { BackgroundRuns } from './background-runs.ts'
import type { Lane } from './lane.ts'
import type { RunBody, RunStep } from './paid-unit.ts'
import type { RunReads, RunSteps } from './runs.store.ts'

/** What runs, top-ups and the reconciler need. The composition root passes it in. */
export type RunDeps = {
  db: Db
  steps: RunSteps
  reads: RunReads
  clock: Clock
  ids: Ids
  log: Log
  metrics: Metrics
  /** The name of this process; its runs are taken over when it dies. */
  instance: string
  /** Which of these processes have died. */
  findDeadInstances(ids: readonly string[]): Promise<string[]>
  publicUrl: () => string
  /** How long a lane may work on a run, unless the lane has a deadline of its own. */
  deadlineSeconds: number
  background: BackgroundRuns
  /** What a guest proves with that an asynchronous run is theirs; it cannot be guessed from the id. */
  runToken(runId: string): string
  /** The maximum amount of one payer's payments that are verified and not yet settled. */
  exposureMicro: bigint
  /** What a payer's runs have settled so far. */
  readSettledMicro(payer: string): Promise<bigint>
  findLane(agentId: string): PricedLane | undefined
  /** For a hint when there is no such lane. */
  laneIds(): string[]
  pricingVersion(): string
  /** The lowest and the highest price of such a call. */
  priceRange(kind: 'run' | 'loop'): { minMicro: bigint; maxMicro: bigint }
  chooseLane(task: string, constraints: RunBody['constraints']): LaneRoute
  assess(request: AssessmentRequest, offer: Offer, options: { rulesChanged: boolean }): Promise<Assessment>
  /** Records a refusal and returns its error; undefined when the rules have changed and the run must be assessed again. */
  recordRefusal(request: AssessmentRequest, assessment: RefusedAssessment): Promise<Problem | undefined>
  /** The run that an approval was used for. */
  findRunOfApproval(caller: TenantCaller, approvalId: string): Promise<string | undefined>
  evaluateActions(
    context: ActionContext,
    actions: readonly Record<string, unknown>[],
  ): Promise<Record<string, unknown>[]>
  payments: Payments
  /** A wallet of this tenant; throws `not_found` for any other. */
  findWallet(tenantId: string, walletId: string): Promise<{ available_micro: bigint }>
  offerReceipt: OfferReceipt
  memory: Pick<Memory, 'recall' | 'createRunMemory'>
  lane: Lane
  verify(input: VerifyOutputInput): Promise<OutputVerification>
  receipts: Pick<Receipts, 'sign'>
  awaitAudit: AwaitAudit
  /** Called after each step. The crash test kills the process there. */
  afterStep(step: RunStep): void
}

export const deadlineSecondsOf = (deps: Pick<RunDeps, 'findLane' | 'deadlineSeconds'>, agentId: string): number =>
  deps.findLane(agentId)?.deadlineSeconds ?? deps.deadlineSeconds

/** The lane chosen for a task, why it was chosen, and which others could do it. */
export type LaneRoute = {
  agentId: string
  route: Record<string, unknown>
  alternatives: readonly { agentId: string; score: number; route: Record<string, unknown> }[]
}

/** The x402 extension `offer-receipt`: signs the price in the 402 and the delivery in the response. */
export type OfferReceipt = {
  offered(resourceUrl: string, terms: PaymentTerms): Record<string, unknown>
  delivered(
    resource: { publicUrl: string; path: string },
    paid: { payer: string; issuedAt: Date; transaction: string },
  ): Record<string, unknown>
}
