import type { Tx } from '../../platform/db.ts'
import type { Ids } from '../../platform/ids.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { AuditEvent, OutboxEvent } from '../../platform/outbox.ts'
import type { Fill } from './broker.ts'
import { insertFills, insertReceipt, insertRun, markFinished, newestReceiptHash } from './brokerage.store.ts'
import { type ReceiptStatus, type RhReceipt, type SignReceipt, totals, writeReceipt } from './receipt.ts'
import { brokerClientOrderId, type TradeRun } from './trade-run.ts'

export type LedgerPosting = {
  tenantId: string
  code: string
  ref: string
  asset: string
  entries: { account: string; amountMicro: bigint }[]
  at: Date
}

/** The public commitment to a private receipt: its hash in the transparency log, and nothing that tells what was traded. */
export type LoggedReceipt = {
  receiptId: string
  runId: string
  tenantId: string
  agentId: string | null
  issuedAt: Date
  hash: string
}

export type OutcomeDeps = {
  ids: Ids
  sign: SignReceipt
  emit(tx: Tx, event: OutboxEvent): Promise<void>
  audit(tx: Tx, event: AuditEvent): Promise<void>
  postLedger(tx: Tx, posting: LedgerPosting): Promise<void>
  issueReceipt(tx: Tx, receipt: LoggedReceipt): Promise<void>
}

export type Outcome = {
  state: 'executed' | 'cancelled' | 'rejected'
  reason: string | null
  fills: readonly Fill[]
  brokerOrderId: string | null
}

export type Outcomes = ReturnType<typeof createOutcomes>

export const publicReceiptId = (receiptId: string) => `rcpt_${receiptId}`

/** What is written down whenever a run comes to rest, all in the transaction that brings it there. */
export function createOutcomes(deps: OutcomeDeps) {
  const issue = async (
    tx: Tx,
    run: TradeRun,
    outcome: { status: ReceiptStatus; reason: string | null; fills: readonly Fill[]; brokerOrderId: string | null },
    at: Date,
  ): Promise<RhReceipt> => {
    const id = deps.ids.uuid()
    const receipt = writeReceipt(
      {
        id,
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
          approvedAt: run.approvedAt,
        },
        executeBy: run.executeBy,
        executionQuote: run.executionQuote,
        prevHash: await newestReceiptHash(tx, run.id),
        receiptUrl: `/api/receipts/${publicReceiptId(id)}`,
        createdAt: at,
      },
      deps.sign,
    )
    await insertReceipt(tx, receipt, run.broker, at)
    const { tenantId, agentId } = run
    const { hash } = receipt.attestation
    await deps.issueReceipt(tx, {
      receiptId: publicReceiptId(id),
      runId: run.id,
      tenantId,
      agentId,
      issuedAt: at,
      hash,
    })
    return receipt
  }

  const tell = async (tx: Tx, run: TradeRun, what: string, actor: string, at: Date, receipt: RhReceipt | null) => {
    const type = `rh_run.${what}`
    const data = eventData(run, receipt)
    await deps.emit(tx, { tenantId: run.tenantId, type, data, at })
    await deps.audit(tx, {
      tenantId: run.tenantId,
      type,
      actor,
      subject: run.id,
      at,
      decision: run.policy.verdict,
      policyIds: [run.policy.policyId],
      data,
    })
  }

  return {
    /** A run that a person must look at first. The caller composes the answer before, so that it is kept with the run. */
    async pending(tx: Tx, run: TradeRun): Promise<RhReceipt> {
      await insertRun(tx, run)
      const none = { status: 'pending_approval' as const, reason: null, fills: [], brokerOrderId: null }
      const receipt = await issue(tx, run, none, run.createdAt)
      await tell(tx, run, 'pending', run.keyId, run.createdAt, receipt)
      return receipt
    },

    /** A run that policy refused: no order was ever written, let alone sent. */
    async refused(tx: Tx, run: TradeRun): Promise<RhReceipt> {
      await insertRun(tx, run)
      const none = { status: 'rejected' as const, reason: run.reason, fills: [], brokerOrderId: null }
      const receipt = await issue(tx, run, none, run.createdAt)
      await tell(tx, run, 'rejected', run.keyId, run.createdAt, receipt)
      return receipt
    },

    approved: (tx: Tx, run: TradeRun, actor: string, at: Date) => tell(tx, run, 'approved', actor, at, null),

    /** The end of a run that had been admitted. The caller holds its row and has seen that it is not final. */
    async finish(tx: Tx, run: TradeRun, outcome: Outcome, actor: string, at: Date): Promise<TradeRun> {
      const done: TradeRun = { ...run, ...outcome, updatedAt: at, finishedAt: at }
      await insertFills(tx, run.id, outcome.fills)
      await post(tx, run, outcome.fills, at)
      const { quantityE8 } = totals(outcome.fills)
      const partial = outcome.state === 'executed' && quantityE8 < run.terms.quantityE8
      const status = partial ? 'partially_filled' : outcome.state
      const { reason, fills, brokerOrderId } = outcome
      const receipt = await issue(tx, done, { status, reason, fills, brokerOrderId }, at)
      const answered = run.answerStatus === null ? { ...done, ...answerOf(done, receipt) } : done
      await markFinished(tx, answered, at)
      await tell(tx, done, outcome.state, actor, at, receipt)
      return answered
    },
  }

  /** Our own side of the trade. A perp moves contracts and fees; its margin stays between the tenant and the broker. */
  async function post(tx: Tx, run: TradeRun, fills: readonly Fill[], at: Date) {
    const { quantityE8, grossMicro, feesMicro } = totals(fills)
    if (quantityE8 === 0n) return
    const { tenantId, terms } = run
    const own = (part: string) => `assets:brokerage:${run.broker}:${part}`
    const market = `equity:brokerage:${run.broker}:market`
    const sign = terms.orderSide === 'buy' ? 1n : -1n
    const moved = terms.type === 'perp' ? 0n : sign * grossMicro
    const common = { tenantId, code: `rh_${terms.type}`, ref: run.id, at }
    const money = [
      { account: own('cash'), amountMicro: -(moved + feesMicro) },
      { account: terms.type === 'spend' ? `expenses:merchant:${terms.symbol}` : market, amountMicro: moved },
      { account: `expenses:brokerage:${run.broker}:fees`, amountMicro: feesMicro },
    ].filter(({ amountMicro }) => amountMicro !== 0n)
    if (money.length > 0) await deps.postLedger(tx, { ...common, asset: 'USD', entries: money })
    if (terms.type === 'spend') return
    // Quantities are in units of 1e-8 of their own asset; they never mix with dollars.
    const units = [
      { account: own('position'), amountMicro: sign * quantityE8 },
      { account: market, amountMicro: -sign * quantityE8 },
    ]
    await deps.postLedger(tx, { ...common, asset: terms.symbol, entries: units })
  }
}

/** What the caller of a run that needed nobody is told; one that waited for a person was answered long ago. */
function answerOf(run: TradeRun, receipt: RhReceipt): { answerStatus: number; answerBody: string } {
  const common = { run_id: run.id, status: run.state, instrument_type: run.terms.type }
  if (run.state === 'executed') return { answerStatus: 200, answerBody: JSON.stringify({ ...common, receipt }) }
  const refusal = {
    error: 'policy_blocked',
    message: run.reason ?? 'The order was not executed.',
    ...common,
    checks: run.policy.checks,
    receipt_id: receipt.id,
  }
  return { answerStatus: 422, answerBody: JSON.stringify(refusal) }
}

const eventData = (run: TradeRun, receipt: RhReceipt | null) => ({
  run_id: run.id,
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
