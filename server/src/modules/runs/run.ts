import type { AssessmentSummary } from '../governance/assessment.ts'
import type { Hex } from '../payments/facilitator.ts'

/** One paid unit, as it is written down in transaction A and carried to its end. */
type Unit = {
  id: string
  tenantId: string | null
  payer: string
  agentId: string
  sessionId: string
  loopId: string
  requestHash: string
  terms: RunTerms
  priceMicro: bigint
  settlementId: string
  /** The pending ledger transaction that completing posts and abandoning voids. */
  pendingId: string
  admission: string
  createdAt: Date
  deadlineAt: Date
  /** Names of the locks that every step of this run takes: its own, and those of the limits it holds. */
  locks: string[]
}

export type Run = Unit & { kind: 'run' | 'loop'; request: RunBody }

/** Money paid into a wallet: the same story with no work in it. */
export type TopUp = Unit & { kind: 'topup'; request: { wallet_id: string; amount: string } }

export type PaidUnit = Run | TopUp

/** What stood when the run was admitted; the answer and the receipt are told from it. */
export type RunTerms = {
  settlement_id: string
  pending_id: string
  /** Where the money goes, as it stood at admission. */
  asset: string
  pay_to: string
  /** The wallet that pays, or that a top-up is for; and the escrow that the price waits in. */
  wallet_id: string | null
  escrow_id: string | null
  request_id: string
  locks: string[]
  route: Record<string, unknown>
  pricing: { base_price_micro: string; fee_micro: string; pricing_version: string }
  ruling: AssessmentSummary
  input_hash: string
}

/** Saved in transaction B, before the chain is touched. */
export type RunResult = {
  output: string
  output_hash: string
  execution: {
    provider: string
    model: string
    mode: 'live' | 'offline'
    latency_ms: number
    usage: { input_tokens: number; output_tokens: number; cost_usd: number }
    fallbacks: readonly { provider: string; model: string; reason: string }[]
  }
  verification: Verification
  memory: { read: string[]; written: string | null }
  actions: unknown[]
  receipt_id: string
  issued_at: string
}

/** A top-up has nothing to show but its receipt to come. */
export type TopUpResult = Pick<RunResult, 'receipt_id' | 'issued_at'>

export type UnitResult = RunResult | TopUpResult

export type Verification = {
  verification_id: string
  verified: boolean
  score: number
  grade: string
  checks: { name: string; passed: boolean; reason: string; weight: number }[]
}

export type RunBody = {
  task: string
  session_id?: string
  agent_id?: string
  constraints?: {
    max_cost_usdc?: number
    priority?: 'cheapest' | 'balanced' | 'quality' | 'fastest'
    category?: string
  }
  budget?: {
    budget_id?: string
    max_price_usdc?: number
    soft_max_price_usdc?: number
    strict?: boolean
    currency?: string
  }
  policy?: { policy_ids?: string[]; mode?: 'enforce' | 'warn' | 'shadow' }
  options?: { include_memory?: boolean; write_memory?: boolean; verify?: boolean }
  proposed_actions?: Record<string, unknown>[]
  payment?: { wallet_id: string; escrow?: boolean }
  preauth_token?: string
  approval_id?: string
  override_token?: string
}

/** Where a run can stop. The crash test kills the process after each of these and looks at what is left. */
export const runSteps = ['route', 'assess', 'check', 'admit', 'execute', 'keep', 'settle', 'complete'] as const
export type RunStep = (typeof runSteps)[number]

export type Settled = { transaction: Hex | string; block: bigint | null }
