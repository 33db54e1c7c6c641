import type { StoredHold } from '../governance/counters/counted-by.ts'
import type { RuleResult } from '../governance/rules/rule-result.ts'
import type { ApprovalPayload } from './approval-payload.ts'
import type { Instrument, Quote } from './broker.ts'
import type { Check } from './risk-facts.ts'
import type { TradeTerms } from './trade-terms.ts'

/** `executed`, `cancelled` and `rejected` are final. */
export type RunState = 'pending_approval' | 'approved' | 'executing' | 'executed' | 'cancelled' | 'rejected'

export type RunPolicy = {
  policyId: string
  name: string
  contentHash: string | null
  /** `pass`, `rejected`, or why a person has to approve. */
  verdict: string
  checks: Check[]
  /** The tenant's policies that the limits came from; absent in runs of earlier versions. */
  limitPolicyIds?: readonly string[]
  /** Present when the policy of the limits lets nobody approve what he asked for. */
  separateApprover?: true
  /** Present when more than one identity has to approve. */
  approvalsRequired?: number
  /** Present when the answer names its audit event and waits for it. */
  auditRequired?: true
}

/** One approval of a run: by a key, or by the recipient of a channel. */
export type TradeVote = { voter: string; at: string; selfApproved: boolean; reason?: string }

/** One governed trade: a row of `rh_runs`. */
export type TradeRun = {
  id: string
  tenantId: string
  keyId: string
  agentId: string | null
  spender: string | null
  team: string | null
  tags: Readonly<Record<string, string>>
  namedMandateId: string | null
  /** The mandate that it counts in. */
  mandateId: string | null
  policyResults: readonly RuleResult[]
  holds: readonly StoredHold[]
  broker: string
  mode: 'paper' | 'live'
  state: RunState
  reason: string | null
  clientOrderId: string | null
  terms: TradeTerms
  instrument: Instrument
  policy: RunPolicy
  approval: ApprovalPayload | null
  /** The encrypted request of a run that needs an approval, until its retention ends. */
  content: string | null
  votes: readonly TradeVote[]
  expiresAt: Date | null
  executeBy: Date
  approvedAt: Date | null
  approvedBy: string | null
  approvedByClaimed: string | null
  /** Whether the identity that asked has approved it. */
  selfApproved: boolean
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
  /** The key, the recipient of a channel, `clock` or `worker`; null in runs of earlier versions. */
  endedBy: string | null
}

export type ExecutionQuote = Pick<Quote, 'markE8' | 'source' | 'observedAt'>

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Ids of runs and receipts are UUIDs; the database would raise an error for anything else. */
export const isUuid = (id: string) => UUID.test(id)

export const isFinal = (state: RunState) => state === 'executed' || state === 'cancelled' || state === 'rejected'

/** The client order id sent to the broker is the run's id, so that two attempts are one order. */
export const brokerClientOrderId = (run: Pick<TradeRun, 'id'>) => run.id

/** In records, a trade that names no spender is its key's. */
export const spenderOf = ({ spender, keyId }: Pick<TradeRun, 'spender' | 'keyId'>) => spender ?? `key:${keyId}`

/** Rules and freezes about an agent are about the named agent and the spender. */
export const agentNamesOf = ({ agentId, spender }: Pick<TradeRun, 'agentId' | 'spender'>): string[] => [
  ...new Set([agentId, spender].filter((name) => name !== null)),
]
