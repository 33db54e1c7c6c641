import type { Caller } from '../../../platform/auth-context.ts'
import type { Mode, RuleResult } from '../rules/rule-result.ts'
import type { PaymentFacts, Tags } from './payment-facts.ts'
import type { RequestBudget } from './request-budget.ts'

/** The lane and price of a run, before it is assessed. */
export type Offer = {
  agentId: string
  basePriceMicro: bigint
  feeMicro: bigint
  priceMicro: bigint
  pricingVersion: string
  route: Record<string, unknown>
  /** The caller named the lane, so it cannot be replaced by another. */
  explicit: boolean
  /** The price comes from a signed quote, so the run can only be allowed or refused, not downgraded. */
  quoted: boolean
  /** Other lanes that can run the task, the fittest first. */
  alternatives: readonly {
    agentId: string
    basePriceMicro: bigint
    feeMicro: bigint
    priceMicro: bigint
    score: number
    /** The record of the choice when this lane is used. */
    route: Record<string, unknown>
  }[]
}

/** The caller and its request, with the budget, policies and grants named in it. */
export type AssessmentRequest = {
  kind: 'run' | 'loop'
  caller: Caller
  action: string
  sessionId: string
  requestHash: string
  request: Record<string, unknown>
  budget?: RequestBudget
  policy?: { policy_ids?: string[]; mode?: Mode }
  spender?: string
  tags?: Tags
  mandateId?: string
  preauthToken?: string
  approvalId?: string
  overrideToken?: string
  /** What an approval keeps, so that the service can send the request again; absent where nothing is recorded. */
  resend?: { bodyHash: string; idempotencyKey?: string; quoteToken?: string }
}

/** A limit that the run must fit under; it is held in the transaction that admits the run. */
export type Hold = {
  scope: string
  period: string
  amountMicro: bigint
  measure?: 'money' | 'count'
  onSuccess: 'spend' | 'release'
} & (
  | {
      limitMicro: bigint
      onRefusal: { status: number; reason: string; detail: Record<string, unknown> }
      /** For a payer's promises in flight; see `hold_limits` in SQL. */
      inFlight?: { openLimitMicro: bigint; settledMicro: bigint }
    }
  /** The limit is read from the counter's definition in that transaction; `eventId` is the id of the event sent when a threshold is reached. */
  | { defined: true; enforce: boolean; eventId?: string; sliceEndsAt?: Date }
)

export type AssessmentSummary = {
  decision: string
  budget_outcome: string
  /** The listed results: `boundTrace`. */
  policy_applied: RuleResult[]
  policy_hash: string | null
  mandate_id: string | null
  preauth_id: string | null
  override_id: string | null
  approval_id: string | null
  /** Present when the identity that asked has given the approval or the override itself. */
  self_approved?: true
  /** Read by simulations: the requesting key, the time of the decision, and the merchant. */
  asked_by: string | null
  decided_at: string
  merchant: string
  /** What the request or its key names. */
  spender?: string
  team?: string
  tags?: Tags
  /** The answer waits for its audit event; absent when it does not. */
  audit_required?: true
}

export type AllowedAssessment = {
  refused: false
  offer: Offer
  summary: AssessmentSummary
  /** The policies that applied, also those whose results are not listed in the summary. */
  policyIds: string[]
  holds: Hold[]
  /** The approval, override and pre-authorisation that this run consumes; read by SQL `consume_grants`. */
  grants: Record<string, unknown>
  /** The locks of those grants, and of the counters held by the pre-authorisation. */
  locks: string[]
  /** A run that waited for an approval, or was pre-authorised, keeps the id it got then. */
  runId?: string
}

/** A counter as it was read, so that the refusal is recorded only if it still has (or lacks) room. */
export type CounterCheck = { scope: string; period: string; amountMicro: bigint; room: boolean }

export type RefusedAssessment = {
  refused: true
  error: 'budget_exceeded' | 'policy_blocked'
  message: string
  outcome: 'rejected' | 'blocked' | 'review_required'
  /** The listed results: `boundTrace`. */
  results: RuleResult[]
  policyIds: string[]
  decided_by: RuleResult | null
  facts: PaymentFacts
  actionHash: string
  rulesVersion: bigint
  counterChecks: CounterCheck[]
  /** Denials by a policy can be overridden; budgets cannot. */
  overridable: boolean
  review: { approvalsRequired: number; separateApprover: boolean } | null
  summary: AssessmentSummary
}

export type Assessment = AllowedAssessment | RefusedAssessment
