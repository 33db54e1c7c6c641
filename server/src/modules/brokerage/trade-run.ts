import type { ApprovalPayload } from './approval-payload.ts'
import type { Instrument, Quote } from './broker.ts'
import type { Check } from './risk.ts'
import type { Terms } from './terms.ts'

/** `approved` and `executing` are on their way; the last three are where a run comes to rest. */
export type RunState = 'pending_approval' | 'approved' | 'executing' | 'executed' | 'cancelled' | 'rejected'

export type RunPolicy = {
  policyId: string
  name: string
  contentHash: string | null
  /** `pass`, or why a person was asked. */
  verdict: string
  checks: Check[]
}

/** One governed trade, as it is stored. */
export type TradeRun = {
  id: string
  tenantId: string
  keyId: string
  agentId: string | null
  broker: string
  mode: 'paper' | 'live'
  state: RunState
  reason: string | null
  clientOrderId: string | null
  terms: Terms
  instrument: Instrument
  policy: RunPolicy
  approval: ApprovalPayload | null
  expiresAt: Date | null
  executeBy: Date
  approvedAt: Date | null
  approvedBy: string | null
  approvedByClaimed: string | null
  leaseUntil: Date | null
  attempts: number
  sentAt: Date | null
  nextAttemptAt: Date | null
  brokerOrderId: string | null
  stopReason: string | null
  executionQuote: ExecutionQuote | null
  answerStatus: number | null
  answerBody: string | null
  createdAt: Date
  updatedAt: Date
  finishedAt: Date | null
}

export type ExecutionQuote = Pick<Quote, 'markE8' | 'source' | 'observedAt'>

export const isFinal = (state: RunState) => state === 'executed' || state === 'cancelled' || state === 'rejected'

/** What the broker knows the order by: the run's own id, so that two attempts are one order. */
export const brokerClientOrderId = (run: Pick<TradeRun, 'id'>) => run.id
