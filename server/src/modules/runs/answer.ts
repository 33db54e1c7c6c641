import { stillInFlight } from '../../platform/idempotency.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import { paymentResponseHeaders } from '../payments/x402.ts'
import type { SignedReceipt } from '../receipts/sign-receipt.ts'
import type { Deps } from './execute-run.ts'
import { methodOf, pricingOf, receiptOf, type SettlementSummary, settlementSummary } from './receipt-draft.ts'
import type { PaidUnit, Run, RunResult, RunTerms, UnitResult } from './run.ts'
import type { RunRow, SettlementRow } from './runs.store.ts'
import { tellTopUp } from './tell-top-up.ts'

export type Answer = { status: number; body: string; headers: Record<string, string> }

export type Failure = {
  stage: 'route' | 'policy' | 'execute' | 'verify' | 'settle'
  reason: string
  message: string
  retryable: boolean
}

type Settled = Extract<SettleResult, { state: 'settled' }>

/** What transaction C writes when the money has moved: the answer as it will be given, now and ever after. */
export function completion(d: Deps, unit: PaidUnit, work: UnitResult, settled: Settled | 'wallet') {
  const at = d.clock.now().toISOString()
  const { transaction, block } = settled === 'wallet' ? { transaction: null, block: null } : settled
  const settlement = settlementSummary(unit, 'settled', transaction)
  const told =
    unit.kind === 'topup' ? tellTopUp(d, unit, work, settlement) : tellRun(d, unit, work as RunResult, settlement)
  const event = (type: string, data: unknown) => eventOf(d, unit, type, data, at)
  return {
    headers: resultHeaders(unit, {
      success: true,
      transaction: transaction ?? '',
      extensions: deliveredBy(d, unit, work.issued_at, transaction),
    }),
    item: {
      run_id: unit.id,
      at,
      settlement: { transaction, block, shared: d.payments.sharesTransactions },
      escrow: endOfEscrow(d, unit, 'released', at),
      pending_id: unit.pendingId,
      post_id: d.ids.next('ltx'),
      answer: { status: 200, body: JSON.stringify(told.body) },
      receipt: told.signed.row,
      memory: unit.kind === 'topup' ? null : rememberedOf(d, unit, work as RunResult),
      events: [
        event('settlement.settled', { run_id: unit.id, ...settlement }),
        event(told.event.type, told.event.data),
        event('receipt.issued', { receipt_id: work.receipt_id, run_id: unit.id, kind: unit.kind }),
        ...preauthClosed(unit, 'settled').map((data) => event('preauth.closed', data)),
      ],
      audit: auditOf(d, unit, `${unit.kind}.completed`, 'completed', at),
    },
  }
}

/** Its id stands in the answer and was given when the work was kept, so whoever completes the run writes the same. */
function rememberedOf(d: Deps, run: Run, work: RunResult) {
  if (!work.memory.written || !run.tenantId) return null
  const { id: runId, tenantId, sessionId, agentId, request } = run
  const { verified, grade } = work.verification
  const finished = { runId, tenantId, sessionId, agentId, task: request.task, output: work.output, verified, grade }
  return d.memory.ofRun({ memoryId: work.memory.written, ...finished }, d.clock.now())
}

function tellRun(d: Deps, run: Run, work: RunResult, settlement: SettlementSummary) {
  const signed = signCompletion(d, run, work, settlement)
  const { id: run_id, agentId: agent_id, priceMicro } = run
  return {
    signed,
    body: run.kind === 'run' ? runBody(run, work, settlement, signed) : loopBody(d, run, work, settlement, signed),
    event: {
      type: 'run.completed',
      data: { run_id, agent_id, amount: priceMicro.toString(), receipt_id: work.receipt_id },
    },
  }
}

/** What is written when a run ends without a charge. */
export function failure(d: Deps, unit: PaidUnit, why: Failure) {
  const at = d.clock.now().toISOString()
  const settlement = settlementSummary(unit, 'failed', null)
  const signed = d.receipts.sign({
    ...receiptOf(unit, d.ids.next('rcpt'), at),
    kind: 'failure',
    charged: false,
    output_hash: null,
    verification: null,
    settlement: { ...settlement, reason: why.reason },
  })
  const again = settlement.method === 'wallet' ? 'send the request again' : 'sign a new payment'
  const body = JSON.stringify({
    error: 'error',
    message: why.message,
    code: 'internal',
    run_id: unit.id,
    status: 'failed',
    stage: why.stage,
    charged: false,
    settlement,
    retryable: why.retryable,
    next_action: `Nothing was charged. To try again, ${again}.`,
    receipt: signed.receipt,
    request_id: unit.terms.request_id,
  })
  const event = (type: string, data: unknown) => eventOf(d, unit, type, data, at)
  const failed = { run_id: unit.id, stage: why.stage, reason: why.reason, charged: false }
  return {
    headers: resultHeaders(unit, { success: false, transaction: '', errorReason: why.reason }),
    item: {
      run_id: unit.id,
      at,
      reason: why.reason,
      escrow: endOfEscrow(d, unit, 'refunded', at),
      pending_id: unit.pendingId,
      void_id: d.ids.next('ltx'),
      answer: { status: 500, body },
      receipt: signed.row,
      events: [
        ...(unit.kind === 'topup' ? [] : [event('run.failed', failed)]),
        ...(why.stage === 'settle' ? [event('settlement.failed', { ...settlement, reason: why.reason })] : []),
        ...preauthClosed(unit, 'failed').map((data) => event('preauth.closed', data)),
      ],
      audit: auditOf(d, unit, `${unit.kind}.failed`, 'failed', at),
    },
  }
}

/** The run that spends a pre-authorisation also closes it, whatever comes of it. */
function preauthClosed(unit: PaidUnit, outcome: 'settled' | 'failed') {
  const preauth_id = unit.terms.ruling?.preauth_id
  if (!preauth_id) return []
  const charged = (outcome === 'settled' ? unit.priceMicro : 0n).toString()
  return [{ preauth_id, run_id: unit.id, agent_id: unit.agentId, outcome, charged }]
}

/** What SQL `end_escrow` takes. Released, the run's own posting pays from it; refunded, it goes back to the wallet. */
function endOfEscrow(d: Deps, unit: PaidUnit, state: 'released' | 'refunded', at: string) {
  const { escrow_id, wallet_id } = unit.terms
  if (!escrow_id || !wallet_id) return null
  const amount = unit.priceMicro.toString()
  const back = {
    id: d.ids.next('ltx'),
    tenant_id: unit.tenantId,
    code: 'escrow_refunded',
    ref: escrow_id,
    created_at: at,
    asset: 'USDC',
    entries: transfer(accounts.escrow(wallet_id), accounts.wallet(wallet_id), unit.priceMicro),
  }
  const data = { escrow_id, wallet_id, to_wallet_id: null, run_id: unit.id, amount, status: state }
  return {
    id: escrow_id,
    from: ['held'],
    state,
    reason: state === 'released' ? 'run_completed' : 'run_failed',
    at,
    ledger: state === 'released' ? [] : [back],
    events: [eventOf(d, unit, `escrow.${state}`, data, at)],
    audits: [
      {
        id: d.ids.next('aud'),
        tenant_id: unit.tenantId,
        type: `escrow.${state}`,
        occurred_at: at,
        actor: 'countersign',
        subject: escrow_id,
        decision: state,
        data: { run_id: unit.id, amount },
      },
    ],
  }
}

const eventOf = (d: Deps, unit: PaidUnit, type: string, data: unknown, at: string) => ({
  id: d.ids.next('evt'),
  tenant_id: unit.tenantId,
  type,
  data,
  created_at: at,
})

/** x402's own result headers are for x402's payers; a paid answer is for no cache either way. */
type Result = Omit<Parameters<typeof paymentResponseHeaders>[0], 'payer' | 'amountMicro'>

const resultHeaders = (unit: PaidUnit, result: Result) =>
  methodOf(unit) === 'wallet'
    ? { 'cache-control': 'no-store' }
    : paymentResponseHeaders({ ...result, payer: unit.payer, amountMicro: unit.priceMicro })

/** Signed at the moment the work was kept, so that a repeated answer carries the same bytes. */
function deliveredBy(
  d: Pick<Deps, 'offer' | 'publicUrl'>,
  unit: { kind: string; payer: string; terms: { wallet_id: string | null } },
  issuedAt: string,
  transaction: string | null,
) {
  if (transaction === null) return undefined
  const path = unit.kind === 'topup' ? `/api/wallets/${unit.terms.wallet_id}/topup` : `/api/${unit.kind}`
  return d.offer.delivered(`${d.publicUrl()}${path}`, { payer: unit.payer, issuedAt: new Date(issuedAt), transaction })
}

/** The stored answer again, byte for byte; or, while there is none yet, the word to come back. */
export function replay(d: Pick<Deps, 'offer' | 'publicUrl'>, run: RunRow, settlement: SettlementRow): Answer {
  if (run.answer_body === null || run.answer_status === null) {
    if (settlement.state === 'unknown') return stillUnknown(run.id, (run.terms as RunTerms).request_id)
    throw stillInFlight('payment or idempotency key')
  }
  return {
    status: run.answer_status,
    body: run.answer_body,
    headers: { ...replayedHeaders(d, run, settlement), 'idempotent-replayed': 'true' },
  }
}

function replayedHeaders(
  d: Pick<Deps, 'offer' | 'publicUrl'>,
  run: RunRow,
  settlement: SettlementRow,
): Record<string, string> {
  if (settlement.method === 'wallet') return { 'cache-control': 'no-store' }
  const { payer, transaction, amount_micro: amountMicro, reason } = settlement
  const success = run.state === 'completed'
  const told = { kind: run.kind, payer, terms: run.terms as RunTerms }
  const { issued_at } = (run.result ?? {}) as { issued_at?: string }
  return paymentResponseHeaders({
    ...(success && issued_at && { extensions: deliveredBy(d, told, issued_at, transaction) }),
    success,
    // A payment that arrived after its run had failed belongs to its refund, not to this answer.
    transaction: success ? (transaction ?? '') : '',
    payer,
    amountMicro,
    ...(reason && { errorReason: reason }),
  })
}

/** Never a 402: asked to pay again, a client would sign a second payment while the first may still arrive. */
export const stillUnknown = (runId: string, requestId: string): Answer => ({
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
    request_id: requestId,
  }),
})

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

const auditOf = (d: Deps, run: PaidUnit, type: string, decision: string, at: string) => ({
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
