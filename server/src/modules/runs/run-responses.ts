import { usdcFromMicro } from '../../platform/money.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import type { Evidence } from '../receipts/salt-hashes.ts'
import type { SignedReceipt } from '../receipts/sign-receipt.ts'
import {
  type AssertedBy,
  draftCounters,
  draftReceipt,
  pricingOf,
  receiptSettlement,
  type SettlementSummary,
  settlementSummary,
} from './draft-receipt.ts'
import { payerOf } from './draft-run.ts'
import type { Failure, PaidUnit, Run, RunResult, UnitResult, Verification } from './paid-unit.ts'
import { deliveryExtension, responseHeaders } from './response-headers.ts'
import type { RunDeps } from './run-deps.ts'
import { type BodyAroundReceipt, insertReceipt, packAnswer, textAroundReceipt } from './stored-answer.ts'
import { buildTopUpCompletion } from './top-up-response.ts'

type SettledResult = Extract<SettleResult, { state: 'settled' }>

/** What transaction C writes once the money has moved: the ledger posting, the receipt, the events and the response. */
export function buildCompletion(deps: RunDeps, unit: PaidUnit, result: UnitResult, payment: SettledResult | 'wallet') {
  const at = deps.clock.now().toISOString()
  const { transaction, block } = payment === 'wallet' ? { transaction: null, block: null } : payment
  const settlement = settlementSummary(unit, 'settled', transaction)
  const assertedBy = payment === 'wallet' ? 'ledger' : deps.payments.assertedBy
  const {
    body,
    signed,
    summary,
    figures,
    event: mainEvent,
  } = unit.kind === 'topup'
    ? buildTopUpCompletion(deps, unit, result, settlement, assertedBy)
    : buildRunCompletion(deps, unit, result as RunResult, settlement, assertedBy)
  const event = (type: string, data: Record<string, unknown>) => ({ id: deps.ids.next('evt'), type, data })
  const audit = toAudit(deps, unit, `${unit.kind}.completed`, 'completed', at)
  const answer = textAroundReceipt({ ...body, after: { ...body.after, ...namedAudit(unit, audit) } })
  const headers = responseHeaders(unit, {
    success: true,
    transaction: transaction ?? '',
    extensions: deliveryExtension(deps, unit, result, transaction),
  })
  return {
    response: { status: 200, body: insertReceipt(answer, signed.row.body), headers },
    item: {
      run_id: unit.id,
      at,
      transaction,
      block,
      shared: deps.payments.sharesTransactions,
      escrow: endEscrowItem(deps, unit, 'released', at),
      ledger_id: deps.ids.next('ltx'),
      answer: { status: 200, packed: packAnswer(answer.text), receipt_at: answer.receiptAt },
      result: summary,
      ...figures,
      receipt: signed.row,
      memory: unit.kind === 'topup' ? null : toMemory(deps, unit, result as RunResult),
      events: [
        event('settlement.settled', { run_id: unit.id, ...settlement }),
        event(mainEvent.type, mainEvent.data),
        event('receipt.issued', { receipt_id: result.receipt_id, run_id: unit.id, kind: unit.kind }),
        ...preauthClosedData(unit, 'settled').map((data) => event('preauth.closed', data)),
      ],
      audit,
    },
  }
}

/** The memory of a run. Its id was assigned with the result, so whichever process completes the run writes the same row. */
function toMemory(deps: RunDeps, run: Run, result: RunResult) {
  if (!result.memory.written || !run.tenantId) return null
  const { id: runId, tenantId, sessionId, agentId, request } = run
  const { verified, grade } = result.verification
  const memory = { runId, tenantId, sessionId, agentId, task: request.task, output: result.output, verified, grade }
  return deps.memory.createRunMemory({ memoryId: result.memory.written, ...memory }, deps.clock.now())
}

function buildRunCompletion(
  deps: RunDeps,
  run: Run,
  result: RunResult,
  settlement: SettlementSummary,
  assertedBy: AssertedBy,
) {
  const signed = signCompletion(deps, run, result, receiptSettlement(settlement, assertedBy))
  const { id: run_id, agentId: agent_id, priceMicro } = run
  const { issued_at, public_url, verification, execution } = result
  const { latency_ms, usage } = execution
  return {
    signed,
    body:
      run.kind === 'run'
        ? runBody(run, result, settlement, signed.evidence)
        : loopBody(deps, run, result, settlement, signed.evidence),
    summary: {
      output_hash: signed.evidence.output_hash,
      issued_at,
      ...(public_url && { public_url }),
      verification: { grade: verification.grade },
      ...(execution.cancelled && { cancelled: true }),
    },
    figures: { cost_usd: usage.cost_usd, latency_ms },
    event: {
      type: 'run.completed',
      data: { run_id, agent_id, amount: priceMicro.toString(), receipt_id: result.receipt_id },
    },
  }
}

/** What is written when a run ends without a charge: the voided money, the failure receipt, the events and the response. */
export function buildFailure(deps: RunDeps, unit: PaidUnit, failure: Failure) {
  const at = deps.clock.now().toISOString()
  const settlement = settlementSummary(unit, 'failed', null)
  // A payment that was never sent is void in our ledger; of one that was sent, those who settle it say that it failed.
  const assertedBy = settlement.method === 'x402' && failure.stage === 'settle' ? deps.payments.assertedBy : 'ledger'
  const signed = deps.receipts.sign({
    ...draftReceipt(unit, deps.ids.next('rcpt'), at),
    ...draftCounters(unit, false),
    kind: 'failure',
    charged: false,
    output_hash: null,
    verification: failure.verification ? receiptVerification(failure.verification) : null,
    settlement: { ...receiptSettlement(settlement, assertedBy), reason: failure.reason },
  })
  const audit = toAudit(deps, unit, `${unit.kind}.failed`, 'failed', at)
  const retryHint = settlement.method === 'wallet' ? 'send the request again' : 'sign a new payment'
  const answer = textAroundReceipt({
    before: {
      error: 'error',
      message: failure.message,
      code: 'internal',
      run_id: unit.id,
      status: 'failed',
      stage: failure.stage,
      reason: failure.reason,
      charged: false,
      settlement,
      ...(failure.verification && { checks: failure.verification.checks }),
      evidence: signed.evidence,
      retryable: failure.retryable,
      next_action: `Nothing was charged. To try again, ${retryHint}${failure.verification ? '; options.accept_unverified takes an output that fails' : ''}.`,
    },
    after: { request_id: unit.terms.request_id, ...namedAudit(unit, audit) },
  })
  const headers = responseHeaders(unit, { success: false, transaction: '', errorReason: failure.reason })
  const event = (type: string, data: Record<string, unknown>) => ({ id: deps.ids.next('evt'), type, data })
  const failureData = { run_id: unit.id, stage: failure.stage, reason: failure.reason, charged: false }
  return {
    response: { status: 500, body: insertReceipt(answer, signed.row.body), headers },
    item: {
      run_id: unit.id,
      at,
      reason: failure.reason,
      escrow: endEscrowItem(deps, unit, 'refunded', at),
      // A voided transaction keeps the id under which it was pending.
      ledger_id: unit.pendingId,
      answer: { status: 500, packed: packAnswer(answer.text), receipt_at: answer.receiptAt },
      result: { reason: failure.reason },
      cost_usd: null,
      latency_ms: null,
      receipt: signed.row,
      events: [
        ...(unit.kind === 'topup' ? [] : [event('run.failed', failureData)]),
        ...(failure.stage === 'settle' ? [event('settlement.failed', { ...settlement, reason: failure.reason })] : []),
        ...preauthClosedData(unit, 'failed').map((data) => event('preauth.closed', data)),
      ],
      audit,
    },
  }
}

/** A run that uses a pre-authorisation also closes it, whether it completes or fails. */
function preauthClosedData(unit: PaidUnit, outcome: 'settled' | 'failed') {
  const preauth_id = unit.terms.ruling?.preauth_id
  if (!preauth_id) return []
  const charged = (outcome === 'settled' ? unit.priceMicro : 0n).toString()
  return [{ preauth_id, run_id: unit.id, agent_id: unit.agentId, outcome, charged }]
}

/** The input of the SQL function `end_escrow`. A released escrow is paid by the run's own posting; a refund goes back to the wallet. */
function endEscrowItem(deps: RunDeps, unit: PaidUnit, state: 'released' | 'refunded', at: string) {
  const { escrow_id, wallet_id } = unit.terms
  if (!escrow_id || !wallet_id) return null
  const amount = unit.priceMicro.toString()
  const refundEntry = {
    id: deps.ids.next('ltx'),
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
    ledger: state === 'released' ? [] : [refundEntry],
    events: [toEvent(deps, unit, `escrow.${state}`, data, at)],
    audits: [
      {
        id: deps.ids.next('aud'),
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

const toEvent = (deps: RunDeps, unit: PaidUnit, type: string, data: Record<string, unknown>, at: string) => ({
  id: deps.ids.next('evt'),
  tenant_id: unit.tenantId,
  type,
  data,
  created_at: at,
})

function signCompletion(
  deps: RunDeps,
  run: Run,
  result: RunResult,
  settlement: ReturnType<typeof receiptSettlement>,
): SignedReceipt {
  const { provider, model, mode, fallbacks } = result.execution
  return deps.receipts.sign({
    ...draftReceipt(run, result.receipt_id, result.issued_at),
    ...draftCounters(run, true),
    kind: run.kind,
    charged: true,
    output_hash: result.output_hash,
    verification: { ...receiptVerification(result.verification), provider, model, mode, fallbacks },
    settlement,
  })
}

/** The checks are left out of a receipt, which is public: their details are about the output. */
const receiptVerification = ({ verification_id, verified, score, grade, accepted_unverified }: Verification) => ({
  verification_id,
  verified,
  score,
  grade,
  ...(accepted_unverified && { accepted_unverified }),
})

const receiptUrl = (result: RunResult) => `/api/receipts/${result.receipt_id}`

const runBody = (
  run: Run,
  result: RunResult,
  settlement: SettlementSummary,
  evidence: Evidence,
): BodyAroundReceipt => ({
  before: {
    status: 'completed',
    run_id: run.id,
    loop_id: run.loopId,
    session_id: run.sessionId,
    agent_id: run.agentId,
    output: result.output,
    price_usdc: usdcFromMicro(run.priceMicro),
    amount: run.priceMicro.toString(),
    route: run.terms.route,
    pricing: pricingOf(run),
    decision: run.terms.ruling.decision,
    budget_outcome: run.terms.ruling.budget_outcome,
    mandate_id: run.terms.ruling.mandate_id ?? null,
    policy_applied: run.terms.ruling.policy_applied,
    evidence,
    verification: result.verification,
    settlement,
    memory: result.memory,
    ...(result.memory_reasons && { memory_reasons: result.memory_reasons }),
  },
  after: { receipt_url: receiptUrl(result), execution: result.execution },
})

const loopBody = (
  deps: RunDeps,
  run: Run,
  result: RunResult,
  settlement: SettlementSummary,
  evidence: Evidence,
): BodyAroundReceipt => ({
  before: {
    status: 'success',
    paid: true,
    run_id: run.id,
    loop_id: run.loopId,
    session_id: run.sessionId,
    agent_id: run.agentId,
    output: result.output,
    actions: result.actions,
    cost_estimate: { estimated_cost_usd: deps.findLane(run.agentId)?.estimatedCostUsd ?? 0, currency: 'USD' },
    price_usdc: usdcFromMicro(run.priceMicro),
    amount: run.priceMicro.toString(),
    mandate_id: run.terms.ruling.mandate_id ?? null,
    evidence,
    verification: result.verification,
  },
  after: { receipt_url: receiptUrl(result), settlement },
})

/** The event of the answer, as it is stored: last, and without its place in the chain. */
const namedAudit = (unit: PaidUnit, { id }: { id: string }) =>
  unit.kind !== 'topup' && unit.tenantId && unit.terms.ruling.audit_required ? { audit: { event_id: id } } : {}

const toAudit = (deps: RunDeps, run: PaidUnit, type: string, decision: string, at: string) => ({
  id: deps.ids.next('aud'),
  type,
  occurred_at: at,
  actor: 'countersign',
  subject: run.id,
  decision,
  policy_ids: [],
  input_hash: run.requestHash,
  data: { agent_id: run.agentId, amount: run.priceMicro.toString(), ...(run.kind !== 'topup' && payerOf(run)) },
})
