import { usdcFromMicro } from '../../platform/money.ts'
import type { Deps } from './execute-run.ts'
import { receiptOf, type SettlementSummary } from './receipt-draft.ts'
import type { TopUp, UnitResult } from './run.ts'

/** What a top-up answers, proves and announces once the money has arrived. */
export function tellTopUp(d: Deps, unit: TopUp, { receipt_id, issued_at }: UnitResult, settlement: SettlementSummary) {
  const { wallet_id, amount } = unit.request
  const signed = d.receipts.sign({
    ...receiptOf(unit, receipt_id, issued_at),
    kind: 'topup',
    charged: true,
    output_hash: null,
    verification: null,
    settlement,
  })
  const credited = { wallet_id, amount, amount_usdc: usdcFromMicro(unit.priceMicro) }
  return {
    signed,
    body: {
      status: 'completed',
      run_id: unit.id,
      ...credited,
      settlement,
      receipt: signed.receipt,
      receipt_url: `/api/receipts/${receipt_id}`,
    },
    event: { type: 'wallet.topped_up', data: { ...credited, run_id: unit.id, receipt_id } },
  }
}
