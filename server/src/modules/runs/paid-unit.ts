import type { AssessmentSummary } from '../governance/assess/assessment.ts'
import type { StoredHold } from '../governance/counters/counted-by.ts'
import type { RecalledMemory } from '../memory/run-memory.ts'
import type { OutputCheck } from '../verification/verification.ts'

/** The fields that a run and a top-up share, as transaction A writes them. */
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
  /** The pending ledger transaction: posted when the unit completes, voided when it is abandoned. */
  pendingId: string
  admission: string
  createdAt: Date
  deadlineAt: Date
  /** The locks that every step of this run takes: its own, and those of the limits it holds. */
  locks: string[]
  /** What the run holds in counters, as its admission counted it; none before it is admitted. */
  holds: readonly StoredHold[]
}

export type Run = Unit & { kind: 'run' | 'loop'; request: RunBody }

/** A tenant's run in a session that its caller named reads and writes memory unless it says otherwise; a loop does neither. */
export function memoryUse({ kind, tenantId, request }: Pick<Run, 'kind' | 'tenantId' | 'request'>) {
  const { options, session_id } = request
  const isDefault = kind === 'run' && session_id !== undefined
  return {
    reads: tenantId !== null && (options?.include_memory ?? isDefault),
    writes: tenantId !== null && (options?.write_memory ?? isDefault),
  }
}

/** Money paid into a wallet: a paid unit without work. */
export type TopUp = Unit & { kind: 'topup'; request: { wallet_id: string; amount: string } }

export type PaidUnit = Run | TopUp

/** The tenant or payer in whose turn the steps of a unit are committed. */
export const stepOwner = ({ tenantId, payer }: Pick<PaidUnit, 'tenantId' | 'payer'>) => ({
  owner: tenantId ?? `payer:${payer}`,
})

/** The terms at admission, stored with the run. The response and the receipt are built from them. */
export type RunTerms = {
  settlement_id: string
  pending_id: string
  /** The token and the address that the payment goes to. */
  asset: string
  pay_to: string
  /** The wallet that pays or is topped up, and the escrow that holds the price. */
  wallet_id: string | null
  escrow_id: string | null
  request_id: string
  /** Of the x402 extension `payment-identifier`, for the answer's header. */
  payment_identifier?: string
  /** The locks of the grants that the run used. */
  locks: string[]
  route: Record<string, unknown>
  pricing: { base_price_micro: string; fee_micro: string; pricing_version: string }
  /** The summary of the governance assessment; stored rows use this key. */
  ruling: AssessmentSummary
  input_hash: string
  /** Opens the hashes of the unit's receipts. Absent in units admitted before receipts were salted. */
  salt?: string
  /** The salts of its receipt's counters are derived from this. Absent in units admitted before receipts named counters. */
  counter_salt?: string
  /** Of a run whose caller does not wait for it; `takeovers` counts the processes that died over it. */
  async?: { takeovers: number }
}

/** The work of a run. Transaction B stores it before the payment is settled. */
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
    /** The caller cancelled it after text of it was shown. */
    cancelled?: true
    /** The model that looked at the output; its tokens are part of `usage`. */
    judge?: {
      provider: string
      model: string
      usage: { input_tokens: number; output_tokens: number; cost_usd: number }
    }
  }
  verification: Verification
  memory: { read: string[]; written: string | null }
  /** Why each memory was read; absent when none was. */
  memory_reasons?: Omit<RecalledMemory, 'content'>[]
  actions: unknown[]
  receipt_id: string
  issued_at: string
  /** Of the process that did the work; the header of an x402 payment's answer names it. */
  public_url?: string
}

/** A top-up has no work; only the id and the time of its receipt are kept. */
export type TopUpResult = Pick<RunResult, 'receipt_id' | 'issued_at' | 'public_url'>

export type UnitResult = RunResult | TopUpResult

/** `verified`, `score` and `grade` are null when the caller has switched the checks off. */
export type Verification = {
  verification_id: string
  verified: boolean | null
  score: number | null
  grade: string | null
  checks: readonly OutputCheck[]
  /** The output failed and the caller takes it all the same. */
  accepted_unverified?: true
}

/** The response to a paid request. Once a run has ended, its status and body are stored and never change. */
export type RunResponse = { status: number; body: string; headers: Record<string, string> }

/** Why a run ended without a charge. */
export type Failure = {
  stage: 'route' | 'policy' | 'execute' | 'verify' | 'settle'
  reason: string
  message: string
  retryable: boolean
  /** Of work that was done and failed its checks. */
  verification?: Verification
}

/** The body of a run or a loop, with its aliases resolved. */
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
  options?: { include_memory?: boolean; write_memory?: boolean; verify?: boolean; accept_unverified?: boolean }
  proposed_actions?: Record<string, unknown>[]
  payment?: { wallet_id: string; escrow?: boolean }
  spender?: string
  tags?: Record<string, string>
  mandate_id?: string
  preauth_token?: string
  approval_id?: string
  override_token?: string
}

/** The steps of a run in order. The crash test kills the process after each of them. */
export const runSteps = ['route', 'assess', 'check', 'admit', 'execute', 'keep', 'settle', 'complete'] as const
export type RunStep = (typeof runSteps)[number]
