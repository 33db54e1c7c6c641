import type { Db } from '../../platform/db.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import type { PayoutRow } from '../ledger/wallets.store.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import type { Receipts } from '../receipts/receipts.ts'
import { draftReceipt, receiptSettlement, settlementSummary } from './draft-receipt.ts'
import { type PaidUnit, stepOwner } from './paid-unit.ts'
import { toOpenSettlement, toPaidUnit } from './read-stored-run.ts'
import type { RunDeps } from './run-deps.ts'
import {
  claimFailedSettlements,
  findRun,
  findSettlementRecord,
  type SettlementRecord,
  scheduleChainCheck,
} from './runs.store.ts'

export type RefundDeps = Pick<RunDeps, 'clock' | 'ids' | 'log' | 'steps' | 'payments'> & {
  db: Db
  receipts: Pick<Receipts, 'sign' | 'lastHashOfRun'>
  /** Whether this service holds the key that sends refunds. If not, an operator pays and confirms the transaction. */
  automatic: boolean
}

const BATCH_SIZE = 50
/** How long after an authorisation expires the chain is checked for the last time. */
const LAST_CHECK_MS = 120_000
const CHECK_INTERVAL_MS = 10 * 60_000

/**
 * The response of a failed run says that nothing was charged. If its payment still arrives (the facilitator reported a
 * failure and settled, or the payer sent it directly), it is recorded and refunded, each step with a receipt.
 */
export function createRefunds(deps: RefundDeps) {
  const lastHash = (runId: string) => deps.receipts.lastHashOfRun(deps.db, runId)

  const checkChain = async (settlement: SettlementRecord) => {
    const arrival = await deps.payments.checkFailedPayment(toOpenSettlement(settlement))
    if (typeof arrival === 'object') return recordLatePayment(settlement, arrival)
    if (arrival === 'over') return scheduleChainCheck(deps.db, settlement.id, null)
    // Checked at intervals while the authorisation can still be used, and once more after it has expired.
    const lastCheckAt = Number(settlement.valid_before) * 1000 + LAST_CHECK_MS
    const now = deps.clock.now().getTime()
    await scheduleChainCheck(
      deps.db,
      settlement.id,
      new Date(now < lastCheckAt ? Math.min(lastCheckAt, now + CHECK_INTERVAL_MS) : now + CHECK_INTERVAL_MS),
    )
  }

  const recordLatePayment = async (
    settlement: SettlementRecord,
    arrival: Extract<SettleResult, { state: 'settled' }>,
  ) => {
    const unit = toPaidUnit(await findRun(deps.db, settlement.run_id))
    const at = deps.clock.now().toISOString()
    const payoutId = deps.ids.next('pay')
    const amount = unit.priceMicro.toString()
    const summary = {
      ...receiptSettlement(settlementSummary(unit, 'settled', arrival.transaction), 'chain'),
      reason: 'arrived_after_failure',
      refund: { payout_id: payoutId, status: 'pending', to: settlement.payer, amount, transaction: null },
    }
    const receipt = await sign(unit, 'correction', true, summary, at)
    const ledger = { tenant_id: unit.tenantId, created_at: at, asset: 'USDC', ref: unit.id }
    const item = {
      settlement_id: settlement.id,
      at,
      transaction: arrival.transaction,
      block: arrival.block,
      shared: true,
      ledger: {
        ...ledger,
        id: deps.ids.next('ltx'),
        code: 'late_payment',
        entries: transfer(accounts.chain, accounts.refunds, unit.priceMicro),
      },
      payout: {
        id: payoutId,
        kind: 'refund',
        tenant_id: unit.tenantId,
        settlement_id: settlement.id,
        to_address: settlement.payer,
        amount_micro: unit.priceMicro,
        method: deps.automatic ? 'chain' : 'manual',
        requested_by: 'countersign',
        at,
        next_attempt_at: deps.automatic ? at : null,
        ledger: { id: deps.ids.next('ltx'), entries: transfer(accounts.refunds, accounts.chain, unit.priceMicro) },
      },
      receipt: receipt.row,
      events: [
        toEvent(unit, 'settlement.settled', summary, at),
        receiptIssuedEvent(unit, receipt.row.id, 'correction', at),
      ],
      audit: toAudit(unit, 'settlement.arrived_late', at, { payout_id: payoutId, transaction: arrival.transaction }),
    }
    await deps.steps.noteArrival(item, [`run:${unit.id}`], stepOwner(unit))
  }

  /** Records that a refund has been paid. */
  const finishRefund = async (payout: PayoutRow, transaction: string): Promise<void> => {
    const settlement = await findSettlementRecord(deps.db, payout.settlement_id!)
    const unit = toPaidUnit(await findRun(deps.db, settlement.run_id))
    const at = deps.clock.now().toISOString()
    const summary = {
      ...receiptSettlement(settlementSummary(unit, 'refunded', settlement.transaction), 'chain'),
      refund: {
        payout_id: payout.id,
        status: 'paid',
        to: payout.to_address,
        amount: payout.amount_micro.toString(),
        transaction,
      },
    }
    const receipt = await sign(unit, 'refund', false, summary, at)
    const item = {
      settlement_id: settlement.id,
      at,
      payout: { id: payout.id, state: 'paid', transaction, at, ledger_id: deps.ids.next('ltx') },
      receipt: receipt.row,
      events: [
        toEvent(unit, 'settlement.refunded', summary, at),
        receiptIssuedEvent(unit, receipt.row.id, 'refund', at),
      ],
      audit: toAudit(unit, 'settlement.refunded', at, { payout_id: payout.id, transaction }),
    }
    await deps.steps.finishRefund(item, [`run:${unit.id}`], stepOwner(unit))
  }

  /** Chained to the receipt before it, so that a holder of any receipt can find the later ones. */
  const sign = async (
    unit: PaidUnit,
    kind: 'correction' | 'refund',
    charged: boolean,
    settlement: Record<string, unknown>,
    at: string,
  ) =>
    deps.receipts.sign({
      ...draftReceipt(unit, deps.ids.next('rcpt'), at),
      kind,
      charged,
      output_hash: null,
      verification: null,
      settlement,
      prev_hash: await lastHash(unit.id),
    })

  const toEvent = (unit: PaidUnit, type: string, data: Record<string, unknown>, at: string) => ({
    id: deps.ids.next('evt'),
    tenant_id: unit.tenantId,
    type,
    data,
    created_at: at,
  })

  const receiptIssuedEvent = (unit: PaidUnit, receiptId: string, kind: string, at: string) =>
    toEvent(unit, 'receipt.issued', { receipt_id: receiptId, run_id: unit.id, kind }, at)

  const toAudit = (unit: PaidUnit, type: string, at: string, data: Record<string, unknown>) => ({
    id: deps.ids.next('aud'),
    tenant_id: unit.tenantId,
    type,
    occurred_at: at,
    actor: 'countersign',
    subject: unit.settlementId,
    data: { run_id: unit.id, amount: unit.priceMicro.toString(), ...data },
  })

  return {
    finishRefund,

    /** Checks the chain again for the payments of failed runs. Without a chain there is nothing to check. */
    async sweepFailedPayments(): Promise<number> {
      if (!deps.payments.canQueryChain) return 0
      const settlements = await claimFailedSettlements(deps.db, deps.clock.now(), BATCH_SIZE)
      for (const settlement of settlements) {
        try {
          await checkChain(settlement)
        } catch (error) {
          deps.log.warn(
            { err: error, settlement_id: settlement.id },
            'the payment of a failed run could not be checked yet',
          )
        }
      }
      return settlements.length
    },
  }
}

export type Refunds = ReturnType<typeof createRefunds>
