import { stillInFlight } from '../../platform/idempotency.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import { NETWORK, paymentResponseHeaders } from '../payments/x402.ts'
import type { SignedReceipt } from '../receipts/sign-receipt.ts'
import type { Deps } from './execute-run.ts'
import type { Run, RunResult } from './run.ts'
import type { RunRow, SettlementRow } from './runs.store.ts'

export type Answer = { status: number; body: string; headers: Record<string, string> }

export type Failure = {
  stage: 'route' | 'policy' | 'execute' | 'verify' | 'settle'
  reason: string
  message: string
  retryable: boolean
}

type Settled = Extract<SettleResult, { state: 'settled' }>

/** What transaction C writes when the money has moved: the answer as it will be given, now and ever after. */
export function completion(d: Deps, run: Run, work: RunResult, settled: Settled) {
  const at = d.clock.now().toISOString()
  const settlement = settlementSummary(run, 'settled', settled.transaction)
  const signed = signCompletion(d, run, work, settlement)
  const body = JSON.stringify(
    run.kind === 'run' ? runBody(run, work, settlement, signed) : loopBody(d, run, work, settlement, signed),
  )
  const event = (type: string, data: unknown) => ({
    id: d.ids.next('evt'),
    tenant_id: run.tenantId,
    type,
    data,
    created_at: at,
  })
  const subject = {
    run_id: run.id,
    agent_id: run.agentId,
    amount: run.priceMicro.toString(),
    receipt_id: work.receipt_id,
  }
  return {
    headers: paymentResponseHeaders({
      success: true,
      transaction: settled.transaction,
      payer: run.payer,
      amountMicro: run.priceMicro,
    }),
    item: {
      run_id: run.id,
      at,
      settlement: { transaction: settled.transaction, block: settled.block, shared: d.payments.sharesTransactions },
      pending_id: run.pendingId,
      post_id: d.ids.next('ltx'),
      answer: { status: 200, body },
      receipt: signed.row,
      events: [
        event('settlement.settled', settlement),
        event('run.completed', subject),
        event('receipt.issued', { receipt_id: work.receipt_id, run_id: run.id, kind: run.kind }),
      ],
      audit: auditOf(d, run, `${run.kind}.completed`, 'completed', at),
    },
  }
}

/** What is written when a run ends without a charge. */
export function failure(d: Deps, run: Run, why: Failure) {
  const at = d.clock.now().toISOString()
  const settlement = settlementSummary(run, 'failed', null)
  const signed = d.receipts.sign({
    ...receiptOf(run, d.ids.next('rcpt'), at),
    kind: 'failure',
    charged: false,
    output_hash: null,
    verification: null,
    settlement: { ...settlement, reason: why.reason },
  })
  const body = JSON.stringify({
    error: 'error',
    message: why.message,
    code: 'internal',
    run_id: run.id,
    status: 'failed',
    stage: why.stage,
    charged: false,
    settlement,
    retryable: why.retryable,
    next_action: 'Nothing was charged. To try again, sign a new payment.',
    receipt: signed.receipt,
    request_id: run.terms.request_id,
  })
  const event = {
    id: d.ids.next('evt'),
    tenant_id: run.tenantId,
    type: 'run.failed',
    data: { run_id: run.id, stage: why.stage, reason: why.reason, charged: false },
    created_at: at,
  }
  return {
    headers: paymentResponseHeaders({
      success: false,
      transaction: '',
      payer: run.payer,
      amountMicro: run.priceMicro,
      errorReason: why.reason,
    }),
    item: {
      run_id: run.id,
      at,
      reason: why.reason,
      pending_id: run.pendingId,
      void_id: d.ids.next('ltx'),
      answer: { status: 500, body },
      receipt: signed.row,
      events: [event],
      audit: auditOf(d, run, `${run.kind}.failed`, 'failed', at),
    },
  }
}

/** The stored answer again, byte for byte; or, while there is none yet, the word to come back. */
export function replay(run: RunRow, settlement: SettlementRow): Answer {
  if (run.answer_body === null || run.answer_status === null) {
    if (settlement.state === 'unknown') return stillUnknown(run.id)
    throw stillInFlight()
  }
  return {
    status: run.answer_status,
    body: run.answer_body,
    headers: {
      ...paymentResponseHeaders({
        success: settlement.state === 'settled',
        transaction: settlement.transaction ?? '',
        payer: settlement.payer,
        amountMicro: settlement.amount_micro,
        ...(settlement.reason && { errorReason: settlement.reason }),
      }),
      'idempotent-replayed': 'true',
    },
  }
}

/** Never a 402: asked to pay again, a client would sign a second payment while the first may still arrive. */
export const stillUnknown = (runId: string): Answer => ({
  status: 503,
  headers: { 'retry-after': '2', 'cache-control': 'no-store' },
  body: JSON.stringify({
    error: 'error',
    message:
      'The work is done, but it is not known yet whether the payment arrived. Do not sign another: send the same payment again.',
    code: 'unavailable',
    run_id: runId,
    status: 'settling',
    stage: 'settle',
    charged: null,
    settlement: null,
    retryable: true,
    next_action: 'Send the same request with the same payment again.',
  }),
})

const settlementSummary = (run: Run, status: string, transaction: string | null) => ({
  settlement_id: run.settlementId,
  status,
  transaction,
  network: NETWORK,
  payer: run.payer,
  amount: run.priceMicro.toString(),
})

type SettlementSummary = ReturnType<typeof settlementSummary>

const pricingOf = (run: Run) => ({
  base_price_usdc: usdcFromMicro(BigInt(run.terms.pricing.base_price_micro)),
  orchestration_fee_usdc: usdcFromMicro(BigInt(run.terms.pricing.fee_micro)),
  price_usdc: usdcFromMicro(run.priceMicro),
  pricing_version: run.terms.pricing.pricing_version,
})

/** Public: hashes and figures only. Why a lane was chosen may quote the task, so only how surely is told. */
function receiptOf(run: Run, receiptId: string, issuedAt: string) {
  const { decision, policy_hash, mandate_id, preauth_id, override_id, approval_id } = run.terms.ruling
  const { confidence, routing_version } = run.terms.route
  return {
    receipt_id: receiptId,
    run_id: run.id,
    loop_id: run.loopId,
    issued_at: issuedAt,
    agent_id: run.agentId,
    route: { agent_id: run.agentId, confidence: confidence ?? null, routing_version: routing_version ?? null },
    pricing: { ...pricingOf(run), amount: run.priceMicro.toString() },
    governance: { decision, policy_hash, mandate_id, preauth_id, override_id, approval_id },
    request_hash: run.requestHash,
    input_hash: run.terms.input_hash,
    prev_hash: null,
    tenant_id: run.tenantId,
    payer: run.payer,
  }
}

function signCompletion(d: Deps, run: Run, work: RunResult, settlement: SettlementSummary): SignedReceipt {
  const { verified, score, grade, verification_id } = work.verification
  const { provider, model, mode, fallbacks } = work.execution
  return d.receipts.sign({
    ...receiptOf(run, work.receipt_id, work.issued_at),
    kind: run.kind,
    charged: true,
    output_hash: work.output_hash,
    verification: { verification_id, verified, score, grade, provider, model, mode, fallbacks },
    settlement,
  })
}

const receiptUrl = (work: RunResult) => `/api/receipts/${work.receipt_id}`

const runBody = (run: Run, work: RunResult, settlement: SettlementSummary, signed: SignedReceipt) => ({
  status: 'completed',
  run_id: run.id,
  loop_id: run.loopId,
  session_id: run.sessionId,
  agent_id: run.agentId,
  output: work.output,
  price_usdc: usdcFromMicro(run.priceMicro),
  amount: run.priceMicro.toString(),
  route: run.terms.route,
  pricing: pricingOf(run),
  decision: run.terms.ruling.decision,
  budget_outcome: run.terms.ruling.budget_outcome,
  policy_applied: run.terms.ruling.policy_applied,
  evidence: { input_hash: run.terms.input_hash, output_hash: work.output_hash },
  verification: work.verification,
  settlement,
  memory: work.memory,
  receipt: signed.receipt,
  receipt_url: receiptUrl(work),
  execution: work.execution,
})

const loopBody = (d: Deps, run: Run, work: RunResult, settlement: SettlementSummary, signed: SignedReceipt) => ({
  status: 'success',
  paid: true,
  run_id: run.id,
  loop_id: run.loopId,
  session_id: run.sessionId,
  agent_id: run.agentId,
  output: work.output,
  actions: work.actions,
  cost_estimate: { estimated_cost_usd: d.find(run.agentId)?.estimatedCostUsd ?? 0, currency: 'USD' },
  price_usdc: usdcFromMicro(run.priceMicro),
  amount: run.priceMicro.toString(),
  verification: work.verification,
  receipt: signed.receipt,
  receipt_url: receiptUrl(work),
  settlement,
})

const auditOf = (d: Deps, run: Run, type: string, decision: string, at: string) => ({
  id: d.ids.next('aud'),
  tenant_id: run.tenantId,
  type,
  occurred_at: at,
  actor: 'countersign',
  subject: run.id,
  decision,
  policy_ids: [],
  input_hash: run.requestHash,
  data: { agent_id: run.agentId, amount: run.priceMicro.toString() },
})
