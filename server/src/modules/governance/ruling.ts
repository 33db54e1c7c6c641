import type { Caller } from '../../platform/auth-context.ts'

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
  alternatives: readonly { agentId: string; basePriceMicro: bigint; feeMicro: bigint; priceMicro: bigint; score: number }[]
}

/** What is put on trial: who wants to spend what on which lane, with the request's own wishes. */
export type Proposal = {
  kind: 'run' | 'loop'
  caller: Caller
  action: string
  sessionId: string
  requestHash: string
  request: Record<string, unknown>
  budget?: { budget_id?: string; max_price_usdc?: number; soft_max_price_usdc?: number; strict?: boolean; currency?: string }
  policy?: { policy_ids?: string[]; mode?: 'enforce' | 'warn' | 'shadow' }
  preauthToken?: string
  approvalId?: string
  overrideToken?: string
}

/** A counter that the run must fit under, held in the same transaction that admits it. */
export type Hold = {
  scope: string
  period: string
  limitMicro: bigint
  softLimitMicro?: bigint
  amountMicro: bigint
  onSuccess: 'spend' | 'release'
  onRefusal: { status: number; reason: string; detail: Record<string, unknown> }
}

export type RulingSummary = {
  decision: string
  budget_outcome: string
  policy_applied: unknown[]
  policy_hash: string | null
  mandate_id: string | null
  preauth_id: string | null
  override_id: string | null
  approval_id: string | null
}

export type Ruling =
  | {
      refused: false
      offer: Offer
      summary: RulingSummary
      holds: Hold[]
      /** Approval, override and pre-authorisation that this run uses up; read by SQL `consume_grants`. */
      grants: Record<string, unknown>
      /** A run that waited for its approval keeps the id of its pending row. */
      runId?: string
    }
  | {
      refused: true
      error: 'budget_exceeded' | 'policy_blocked'
      message: string
      outcome: 'rejected' | 'blocked' | 'review_required'
      /** Additive top-level fields of the 429: `decision_id`, `approval_id`, `policy_results`, … */
      extra: Record<string, unknown>
    }
