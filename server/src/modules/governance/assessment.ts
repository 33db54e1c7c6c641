import type { Caller } from '../../platform/auth-context.ts'
import type { PaymentFacts } from './payment-facts.ts'
import type { RequestBudget } from './request-budget.ts'
import type { Mode, RuleResult } from './rule-result.ts'

/** What a run would do and cost, before anybody has judged it. */
export type Offer = {
  agentId: string
  basePriceMicro: bigint
  feeMicro: bigint
  priceMicro: bigint
  pricingVersion: string
  route: Record<string, unknown>
  /** The caller named the lane, so no other may be put in its place. */
  explicit: boolean
  /** The price was promised in a signed quote: it holds, and only pass or refusal is left. */
  quoted: boolean
  /** Other lanes that could do it, best first. */
  alternatives: readonly {
    agentId: string
    basePriceMicro: bigint
    feeMicro: bigint
    priceMicro: bigint
    score: number
  }[]
}

/** What is put on trial: who wants to spend what on which lane, with the request's own wishes. */
export type AssessmentRequest = {
  kind: 'run' | 'loop'
  caller: Caller
  action: string
  sessionId: string
  requestHash: string
  request: Record<string, unknown>
  budget?: RequestBudget
  policy?: { policy_ids?: string[]; mode?: Mode }
  preauthToken?: string
  approvalId?: string
  overrideToken?: string
}

/** A counter that the run must fit under, held in the same transaction that admits it. */
export type Hold = {
  scope: string
  period: string
  amountMicro: bigint
  measure?: 'money' | 'count'
  onSuccess: 'spend' | 'release'
} & (
  | { limitMicro: bigint; onRefusal: { status: number; reason: string; detail: Record<string, unknown> } }
  /** The limit is read from the counter's definition in that transaction; `eventId` names the event should a threshold be reached. */
  | { defined: true; enforce: boolean; eventId?: string }
)

export type AssessmentSummary = {
  decision: string
  budget_outcome: string
  policy_applied: RuleResult[]
  policy_hash: string | null
  mandate_id: string | null
  preauth_id: string | null
  override_id: string | null
  approval_id: string | null
  /** What a replay needs to know: who asked, when it was judged, and the merchant. */
  asked_by: string | null
  decided_at: string
  merchant: string
}

export type AllowedAssessment = {
  refused: false
  offer: Offer
  summary: AssessmentSummary
  holds: Hold[]
  /** Approval, override and pre-authorisation that this run uses up; read by SQL `consume_grants`. */
  grants: Record<string, unknown>
  /** The locks of those grants, and of the counters that a pre-authorisation holds for this run. */
  locks: string[]
  /** A run that waited for its approval, or was pre-authorised, keeps the id it was given then. */
  runId?: string
}

/** A counter as the judgement saw it, to be looked at again when the refusal is written. */
export type CounterCheck = { scope: string; period: string; amountMicro: bigint; room: boolean }

export type RefusedAssessment = {
  refused: true
  error: 'budget_exceeded' | 'policy_blocked'
  message: string
  outcome: 'rejected' | 'blocked' | 'review_required'
  results: RuleResult[]
  decided_by: RuleResult | null
  facts: PaymentFacts
  actionHash: string
  rulesVersion: bigint
  counterChecks: CounterCheck[]
  /** Only what a policy denies can be overridden; a budget is hard. */
  overridable: boolean
  review: { approvalsRequired: number; separateApprover: boolean } | null
  summary: AssessmentSummary
}

export type Assessment = AllowedAssessment | RefusedAssessment
