import { usdcFromMicro } from '../../platform/money.ts'
import { NETWORK } from '../payments/x402.ts'
import type { PaidUnit } from './run.ts'

/** A top-up fills a wallet and is paid by x402; a run that names a wallet is paid from it. */
export const methodOf = (unit: PaidUnit) => (unit.kind !== 'topup' && unit.terms.wallet_id ? 'wallet' : 'x402')

export const settlementSummary = (run: PaidUnit, status: string, transaction: string | null) => ({
  settlement_id: run.settlementId,
  status,
  method: methodOf(run),
  transaction,
  network: NETWORK,
  asset: run.terms.asset,
  payer: run.payer,
  pay_to: run.terms.pay_to,
  amount: run.priceMicro.toString(),
})

export type SettlementSummary = ReturnType<typeof settlementSummary>

export const pricingOf = (run: PaidUnit) => ({
  base_price_usdc: usdcFromMicro(BigInt(run.terms.pricing.base_price_micro)),
  orchestration_fee_usdc: usdcFromMicro(BigInt(run.terms.pricing.fee_micro)),
  price_usdc: usdcFromMicro(run.priceMicro),
  pricing_version: run.terms.pricing.pricing_version,
})

/** Public: hashes and figures only. Why a lane was chosen may quote the task, so only how surely is told. */
export function receiptOf(run: PaidUnit, receiptId: string, issuedAt: string) {
  const issued = { receipt_id: receiptId, run_id: run.id, loop_id: run.loopId, issued_at: issuedAt, prev_hash: null }
  const paid = { pricing: { ...pricingOf(run), amount: run.priceMicro.toString() }, request_hash: run.requestHash }
  const whose = { tenant_id: run.tenantId, payer: run.payer }
  // A top-up has no lane, no judgement and no task.
  if (run.kind === 'topup')
    return { ...issued, ...paid, ...whose, agent_id: null, route: null, governance: null, input_hash: null }
  const { decision, policy_hash, mandate_id, preauth_id, override_id, approval_id } = run.terms.ruling
  const { confidence, routing_version } = run.terms.route
  return {
    ...issued,
    ...paid,
    ...whose,
    agent_id: run.agentId,
    route: { agent_id: run.agentId, confidence: confidence ?? null, routing_version: routing_version ?? null },
    governance: { decision, policy_hash, mandate_id, preauth_id, override_id, approval_id },
    input_hash: run.terms.input_hash,
  }
}
