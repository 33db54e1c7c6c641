import { usdcFromMicro } from '../../platform/money.ts'
import { type AssertedBy, draftReceipt, receiptSettlement, type SettlementSummary } from './draft-receipt.ts'
import type { TopUp, UnitResult } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'

/** The response body, the signed receipt and the event of a completed top-up. */
export function buildTopUpCompletion(
  deps: RunDeps,
  topUp: TopUp,
  { receipt_id, issued_at, public_url }: UnitResult,
  settlement: SettlementSummary,
  assertedBy: AssertedBy,
) {
  const { wallet_id, amount } = topUp.request
  const signed = deps.receipts.sign({
    ...draftReceipt(topUp, receipt_id, issued_at),
    kind: 'topup',
    charged: true,
    output_hash: null,
    verification: null,
    settlement: receiptSettlement(settlement, assertedBy),
  })
  const credit = { wallet_id, amount, amount_usdc: usdcFromMicro(topUp.priceMicro) }
  return {
    signed,
    body: {
      before: { status: 'completed', run_id: topUp.id, ...credit, settlement, evidence: signed.evidence },
      after: { receipt_url: `/api/receipts/${receipt_id}` },
    },
    summary: { issued_at, public_url },
    figures: { cost_usd: null, latency_ms: null },
    event: { type: 'wallet.topped_up', data: { ...credit, run_id: topUp.id, receipt_id } },
  }
}
