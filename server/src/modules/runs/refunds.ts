import type { Db } from '../../platform/db.ts'
import { accounts, transfer } from '../ledger/ledger.ts'
import type { PayoutRow } from '../ledger/wallets.store.ts'
import type { SettleResult } from '../payments/facilitator.ts'
import type { Receipts } from '../receipts/receipts.ts'
import type { Deps } from './execute-run.ts'
import { receiptOf, settlementSummary } from './receipt-draft.ts'
import { openSettlement, unitOf } from './reconcile.ts'
import type { PaidUnit } from './run.ts'
import { claimGivenUp, findRun, lookAgainAt, type SettlementRow } from './runs.store.ts'

export type RefundDeps = Pick<Deps, 'clock' | 'ids' | 'log' | 'steps' | 'payments'> & {
  db: Db
  receipts: Pick<Receipts, 'sign' | 'lastHashOfRun'>
  /** Whether we can pay back by ourselves; otherwise a person does, and says so. */
  automatic: boolean
}

const BATCH = 50
/** How long after the expiry of an authorisation the last look is taken. */
const LAST_LOOK_MS = 120_000
const LOOK_EVERY_MS = 10 * 60_000

/**
 * A run that failed told its payer that nothing was charged. Should the payment arrive all the same (a facilitator that
 * said no and did it, a payer who sent it himself), it is written down, owed, and paid back, each step with a receipt.
 */
export function createRefunds(d: RefundDeps) {
  const lastHash = (runId: string) => d.receipts.lastHashOfRun(d.db, runId)

  const lookAt = async (settlement: SettlementRow) => {
    const seen = await d.payments.checkGivenUpPayment(openSettlement(settlement))
    if (typeof seen === 'object') return owe(settlement, seen)
    if (seen === 'over') return lookAgainAt(d.db, settlement.id, null)
    // While it can still be used, now and then; and once more when that time is over.
    const last = Number(settlement.valid_before) * 1000 + LAST_LOOK_MS
    const now = d.clock.now().getTime()
    await lookAgainAt(
      d.db,
      settlement.id,
      new Date(now < last ? Math.min(last, now + LOOK_EVERY_MS) : now + LOOK_EVERY_MS),
    )
  }

  const owe = async (settlement: SettlementRow, seen: Extract<SettleResult, { state: 'settled' }>) => {
    const unit = unitOf(await findRun(d.db, settlement.run_id))
    const at = d.clock.now().toISOString()
    const payoutId = d.ids.next('pay')
    const amount = unit.priceMicro.toString()
    const told = {
      ...settlementSummary(unit, 'settled', seen.transaction),
      reason: 'arrived_after_failure',
      refund: { payout_id: payoutId, status: 'pending', to: settlement.payer, amount, transaction: null },
    }
    const receipt = await sign(unit, 'correction', true, told, at)
    const ledger = { tenant_id: unit.tenantId, created_at: at, asset: 'USDC', ref: unit.id }
    const item = {
      settlement_id: settlement.id,
      at,
      transaction: seen.transaction,
      block: seen.block,
      shared: true,
      ledger: {
        ...ledger,
        id: d.ids.next('ltx'),
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
        method: d.automatic ? 'chain' : 'manual',
        requested_by: 'countersign',
        at,
        next_attempt_at: d.automatic ? at : null,
        ledger: {
          ...ledger,
          id: d.ids.next('ltx'),
          code: 'refund',
          ref: payoutId,
          entries: transfer(accounts.refunds, accounts.chain, unit.priceMicro),
        },
      },
      receipt: receipt.row,
      events: [eventOf(unit, 'settlement.settled', told, at), issuedEvent(unit, receipt.row.id, 'correction', at)],
      audit: auditOf(unit, 'settlement.arrived_late', at, { payout_id: payoutId, transaction: seen.transaction }),
    }
    await d.steps.noteArrival(item, [`run:${unit.id}`])
  }

  /** The payer has his money back. */
  const finishRefund = async (payout: PayoutRow, transaction: string): Promise<void> => {
    const settlement = await d.db
      .selectFrom('settlements')
      .selectAll()
      .where('id', '=', payout.settlement_id!)
      .executeTakeFirstOrThrow()
    const unit = unitOf(await findRun(d.db, settlement.run_id))
    const at = d.clock.now().toISOString()
    const told = {
      ...settlementSummary(unit, 'refunded', settlement.transaction),
      refund: {
        payout_id: payout.id,
        status: 'paid',
        to: payout.to_address,
        amount: payout.amount_micro.toString(),
        transaction,
      },
    }
    const receipt = await sign(unit, 'refund', false, told, at)
    const item = {
      settlement_id: settlement.id,
      at,
      payout: { id: payout.id, state: 'paid', transaction, at, ledger_id: d.ids.next('ltx') },
      receipt: receipt.row,
      events: [eventOf(unit, 'settlement.refunded', told, at), issuedEvent(unit, receipt.row.id, 'refund', at)],
      audit: auditOf(unit, 'settlement.refunded', at, { payout_id: payout.id, transaction }),
    }
    await d.steps.finishRefund(item, [`run:${unit.id}`])
  }

  /** Chained to the receipt before it, so that who holds any of them finds out how it went on. */
  const sign = async (
    unit: PaidUnit,
    kind: 'correction' | 'refund',
    charged: boolean,
    settlement: Record<string, unknown>,
    at: string,
  ) =>
    d.receipts.sign({
      ...receiptOf(unit, d.ids.next('rcpt'), at),
      kind,
      charged,
      output_hash: null,
      verification: null,
      settlement,
      prev_hash: await lastHash(unit.id),
    })

  const eventOf = (unit: PaidUnit, type: string, data: unknown, at: string) => ({
    id: d.ids.next('evt'),
    tenant_id: unit.tenantId,
    type,
    data,
    created_at: at,
  })

  const issuedEvent = (unit: PaidUnit, receiptId: string, kind: string, at: string) =>
    eventOf(unit, 'receipt.issued', { receipt_id: receiptId, run_id: unit.id, kind }, at)

  const auditOf = (unit: PaidUnit, type: string, at: string, data: Record<string, unknown>) => ({
    id: d.ids.next('aud'),
    tenant_id: unit.tenantId,
    type,
    occurred_at: at,
    actor: 'countersign',
    subject: unit.settlementId,
    data: { run_id: unit.id, amount: unit.priceMicro.toString(), ...data },
  })

  return {
    finishRefund,

    /** Payments that were given up, looked at again. Without a chain there is nothing to look at. */
    async sweepGivenUp(): Promise<number> {
      if (!d.payments.canQueryChain) return 0
      const due = await claimGivenUp(d.db, d.clock.now(), BATCH)
      for (const settlement of due) {
        try {
          await lookAt(settlement)
        } catch (error) {
          d.log.warn({ err: error, settlement_id: settlement.id }, 'a given-up payment could not be looked at yet')
        }
      }
      return due.length
    },
  }
}

export type Refunds = ReturnType<typeof createRefunds>
