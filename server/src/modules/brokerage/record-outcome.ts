import type { CountedBy } from '@countersign/proof'
import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { AuditEvent, OutboxEvent } from '../../platform/outbox.ts'
import { countedBy } from '../governance/counters/counted-by.ts'
import { type CountersDraft, commitCounters } from '../receipts/receipts.ts'
import type { Fill } from './broker.ts'
import { findNewestReceiptHash, insertFills, insertReceipt, insertRun, markFinished } from './brokerage.store.ts'
import { settleHolds } from './trade-holds.ts'
import { createReceipt, type ReceiptStatus, type RhReceipt, type SignReceipt, sumFills } from './trade-receipt.ts'
import { brokerClientOrderId, spenderOf, type TradeRun, type TradeVote } from './trade-run-record.ts'

export type LedgerPosting = {
  tenantId: string
  code: string
  ref: string
  asset: string
  entries: { account: string; amountMicro: bigint }[]
  at: Date
}

/** The public log's entry for a private receipt: the receipt's hash, and nothing about the trade. */
export type ReceiptCommitment = {
  receiptId: string
  runId: string
  tenantId: string
  agentId: string | null
  issuedAt: Date
  hash: string
  counters: CountersDraft
}

export type OutcomeRecorderDeps = {
  ids: Ids
  sign: SignReceipt
  emit(tx: Tx, event: OutboxEvent): Promise<void>
  audit(tx: Tx, event: AuditEvent): Promise<void>
  postLedger(tx: Tx, posting: LedgerPosting): Promise<void>
  issueCommitment(tx: Tx, receipt: ReceiptCommitment): Promise<void>
  /** Writes the intent to tell the recipients of the tenant's channels. */
  queueApprovalMessages(tx: Tx, tenantId: string, runId: string, at: Date): Promise<void>
}

export type RunOutcome = {
  state: 'executed' | 'cancelled' | 'rejected'
  reason: string | null
  fills: readonly Fill[]
  brokerOrderId: string | null
}

export type OutcomeRecorder = ReturnType<typeof createOutcomeRecorder>

export const publicReceiptId = (receiptId: string) => `rcpt_${receiptId}`

/**
 * Writes each state change of a run: receipt, ledger, event and audit record, all in the transaction that changes the
 * state.
 */
export function createOutcomeRecorder(deps: OutcomeRecorderDeps) {
  const storeReceipt = async (
    tx: Tx,
    run: TradeRun,
    outcome: { status: ReceiptStatus; reason: string | null; fills: readonly Fill[]; brokerOrderId: string | null },
    at: Date,
    counted: readonly CountedBy[] = [],
  ): Promise<RhReceipt> => {
    const id = deps.ids.uuid()
    const counters = { secret: deps.ids.salt(), counted }
    const { tenantId, agentId } = run
    const receipt = createReceipt(
      {
        id,
        salt: deps.ids.salt(),
        counters: commitCounters(counters).opening,
        runId: run.id,
        tenantId: run.tenantId,
        ...outcome,
        mode: run.mode,
        broker: run.broker,
        clientOrderId: run.clientOrderId ?? brokerClientOrderId(run),
        terms: run.terms,
        instrument: run.instrument,
        policy: run.policy,
        approval: {
          required: run.approval !== null,
          digest: run.approval?.digest ?? null,
          expiresAt: run.expiresAt,
          approvedBy: run.approvedBy,
          approvedByClaimed: run.approvedByClaimed,
          selfApproved: run.selfApproved,
          approvedAt: run.approvedAt,
        },
        party: {
          agentId,
          spender: spenderOf(run),
          team: run.team,
          tags: run.tags,
          keyId: run.keyId,
          mandateId: run.mandateId,
        },
        executeBy: run.executeBy,
        executionQuote: run.executionQuote,
        prevHash: await findNewestReceiptHash(tx, run.id),
        receiptUrl: `/api/receipts/${publicReceiptId(id)}`,
        createdAt: at,
      },
      deps.sign,
    )
    await insertReceipt(tx, receipt, run.broker, at)
    const { hash } = receipt.attestation
    await deps.issueCommitment(tx, {
      receiptId: publicReceiptId(id),
      runId: run.id,
      tenantId,
      agentId,
      issuedAt: at,
      hash,
      counters,
    })
    return receipt
  }

  const publishTransition = async (
    tx: Tx,
    run: TradeRun,
    transition: string,
    actor: string,
    at: Date,
    receipt: RhReceipt | null,
    auditData: Record<string, unknown> = {},
    auditId: string | undefined = undefined,
  ) => {
    const type = `rh_run.${transition}`
    const data = toEventData(run, receipt)
    await deps.emit(tx, { tenantId: run.tenantId, type, data, at })
    await deps.audit(tx, {
      ...(auditId && { id: auditId }),
      tenantId: run.tenantId,
      type,
      actor,
      subject: run.id,
      at,
      decision: run.policy.verdict,
      policyIds: [...new Set([run.policy.policyId, ...run.policyResults.flatMap(({ policy_id }) => policy_id ?? [])])],
      data: { ...data, ...auditData, ...(transition === 'approved' && run.selfApproved && { self_approved: true }) },
    })
  }

  return {
    /** A run that a person has to approve. Its response is stored with it. */
    async recordPending(tx: Tx, run: TradeRun, auditId: string): Promise<RhReceipt> {
      await insertRun(tx, run)
      const outcome = { status: 'pending_approval' as const, reason: null, fills: [], brokerOrderId: null }
      const receipt = await storeReceipt(tx, run, outcome, run.createdAt)
      await publishTransition(tx, run, 'pending', run.keyId, run.createdAt, receipt, {}, auditId)
      await deps.queueApprovalMessages(tx, run.tenantId, run.id, run.createdAt)
      return receipt
    },

    /** A run that policy refused. No order was created. */
    async recordRejected(tx: Tx, run: TradeRun, auditId: string): Promise<RhReceipt> {
      await insertRun(tx, run)
      const outcome = { status: 'rejected' as const, reason: run.reason, fills: [], brokerOrderId: null }
      const receipt = await storeReceipt(tx, run, outcome, run.createdAt)
      await publishTransition(tx, run, 'rejected', run.keyId, run.createdAt, receipt, {}, auditId)
      for (const { budget_id, limit, used, verdict } of run.policyResults) {
        if (budget_id === undefined || verdict === 'pass') continue
        const data = { ...toEventData(run, receipt), budget_id, limit_usdc: limit, used_usdc: used }
        await deps.emit(tx, { tenantId: run.tenantId, type: 'budget.exceeded', data, at: run.createdAt })
      }
      return receipt
    },

    /** One of several approvals that the run needs. */
    recordVote: (tx: Tx, run: TradeRun, vote: TradeVote, auditData?: Record<string, unknown>) =>
      deps.audit(tx, {
        tenantId: run.tenantId,
        type: 'rh_run.voted',
        actor: vote.voter,
        subject: run.id,
        at: new Date(vote.at),
        decision: 'voted',
        data: { ...toEventData(run, null), ...auditData, ...(vote.selfApproved && { self_approved: true }) },
      }),

    recordApproved: (tx: Tx, run: TradeRun, actor: string, at: Date, auditData?: Record<string, unknown>) =>
      publishTransition(tx, run, 'approved', actor, at, null, auditData),

    /** The end of an admitted run. The caller has locked its row and checked that it is not final. */
    async recordFinished(
      tx: Tx,
      run: TradeRun,
      outcome: RunOutcome,
      actor: string,
      at: Date,
      auditData?: Record<string, unknown>,
    ): Promise<TradeRun> {
      const finishedRun: TradeRun = { ...run, ...outcome, updatedAt: at, finishedAt: at, endedBy: actor }
      await insertFills(tx, run.id, outcome.fills)
      const { quantityE8, grossMicro } = sumFills(outcome.fills)
      const isExecuted = outcome.state === 'executed'
      await settleHolds(tx, run, isExecuted ? grossMicro : null)
      await postToLedger(tx, run, outcome.fills, at)
      const partial = isExecuted && quantityE8 < run.terms.quantityE8
      const status = partial ? 'partially_filled' : outcome.state
      const { reason, fills, brokerOrderId } = outcome
      const counted = isExecuted ? countedBy(run.holds, grossMicro) : []
      const receipt = await storeReceipt(tx, finishedRun, { status, reason, fills, brokerOrderId }, at, counted)
      const auditId = deps.ids.next('aud')
      const storedRun =
        run.answerStatus === null ? { ...finishedRun, ...toFinalResponse(finishedRun, receipt, auditId) } : finishedRun
      await markFinished(tx, storedRun, at)
      await publishTransition(tx, finishedRun, outcome.state, actor, at, receipt, auditData, auditId)
      return storedRun
    },
  }

  /** Posts the trade to the ledger. A perp moves contracts and fees only: its margin stays in the account at the broker. */
  async function postToLedger(tx: Tx, run: TradeRun, fills: readonly Fill[], at: Date) {
    const { quantityE8, grossMicro, feesMicro } = sumFills(fills)
    if (quantityE8 === 0n) return
    const { tenantId, terms } = run
    const assetAccount = (part: string) => `assets:brokerage:${run.broker}:${part}`
    const market = `equity:brokerage:${run.broker}:market`
    const sign = terms.orderSide === 'buy' ? 1n : -1n
    const movedMicro = terms.type === 'perp' ? 0n : sign * grossMicro
    const posting = { tenantId, code: `rh_${terms.type}`, ref: run.id, at }
    const money = [
      { account: assetAccount('cash'), amountMicro: -(movedMicro + feesMicro) },
      { account: terms.type === 'spend' ? `expenses:merchant:${terms.symbol}` : market, amountMicro: movedMicro },
      { account: `expenses:brokerage:${run.broker}:fees`, amountMicro: feesMicro },
    ].filter(({ amountMicro }) => amountMicro !== 0n)
    if (money.length > 0) await deps.postLedger(tx, { ...posting, asset: 'USD', entries: money })
    if (terms.type === 'spend') return
    // Quantities are in units of 1e-8 of their own asset; they never mix with dollars.
    const units = [
      { account: assetAccount('position'), amountMicro: sign * quantityE8 },
      { account: market, amountMicro: -sign * quantityE8 },
    ]
    await deps.postLedger(tx, { ...posting, asset: terms.symbol, entries: units })
  }
}

/** The response to a run that needed no approval; a run that did has been answered with 202 before. */
function toFinalResponse(
  run: TradeRun,
  receipt: RhReceipt,
  auditId: string,
): { answerStatus: number; answerBody: string } {
  const audit = run.policy.auditRequired ? { audit: { event_id: auditId } } : {}
  const common = { run_id: run.id, status: run.state, instrument_type: run.terms.type }
  if (run.state === 'executed')
    return { answerStatus: 200, answerBody: JSON.stringify({ ...common, receipt, ...audit }) }
  const refusal = {
    error: 'policy_blocked',
    message: run.reason ?? 'The order was not executed.',
    ...common,
    checks: run.policy.checks,
    receipt_id: receipt.id,
    ...audit,
  }
  return { answerStatus: 422, answerBody: JSON.stringify(refusal) }
}

const toEventData = (run: TradeRun, receipt: RhReceipt | null) => ({
  run_id: run.id,
  agent_id: run.agentId,
  spender: spenderOf(run),
  team: run.team,
  tags: run.tags,
  key_id: run.keyId,
  mandate_id: run.mandateId,
  instrument_type: run.terms.type,
  symbol: run.terms.symbol,
  side: run.terms.side,
  notional_usdc: usdcFromMicro(run.terms.notionalMicro),
  status: run.state,
  reason: run.reason,
  policy_verdict: run.policy.verdict,
  expires_at: run.expiresAt?.toISOString() ?? null,
  execute_by: run.executeBy.toISOString(),
  receipt_id: receipt?.id ?? null,
})
