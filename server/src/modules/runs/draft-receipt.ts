import { usdcFromMicro } from '../../platform/money.ts'
import { countedBy } from '../governance/counters/counted-by.ts'
import { NETWORK } from '../payments/x402.ts'
import type { PaidUnit } from './paid-unit.ts'

/** A top-up fills a wallet and is paid by x402; a run that names a wallet is paid from it. */
export const paymentMethodOf = (unit: PaidUnit) => (unit.kind !== 'topup' && unit.terms.wallet_id ? 'wallet' : 'x402')

export const settlementSummary = (unit: PaidUnit, status: string, transaction: string | null) => ({
  settlement_id: unit.settlementId,
  status,
  method: paymentMethodOf(unit),
  transaction,
  network: NETWORK,
  asset: unit.terms.asset,
  payer: unit.payer,
  pay_to: unit.terms.pay_to,
  amount: unit.priceMicro.toString(),
})

/** Who says that the money moved: the chain as we read it, a facilitator alone, or our own ledger. */
export type AssertedBy = 'chain' | 'facilitator' | 'ledger'

/** The settlement in a public receipt: the id of a wallet is for its tenant alone. */
export const receiptSettlement = (settlement: SettlementSummary, assertedBy: AssertedBy) => ({
  ...settlement,
  payer: settlement.method === 'wallet' ? 'wallet' : settlement.payer,
  asserted_by: assertedBy,
})

export type SettlementSummary = ReturnType<typeof settlementSummary>

export const pricingOf = (unit: PaidUnit) => ({
  base_price_usdc: usdcFromMicro(BigInt(unit.terms.pricing.base_price_micro)),
  orchestration_fee_usdc: usdcFromMicro(BigInt(unit.terms.pricing.fee_micro)),
  price_usdc: usdcFromMicro(unit.priceMicro),
  pricing_version: unit.terms.pricing.pricing_version,
})

/** A receipt is public, so it contains only hashes and figures. The reason of a route may quote the task and is left out. */
export function draftReceipt(unit: PaidUnit, receiptId: string, issuedAt: string) {
  const identity = {
    receipt_id: receiptId,
    run_id: unit.id,
    loop_id: unit.loopId,
    issued_at: issuedAt,
    prev_hash: null,
  }
  const price = { pricing: { ...pricingOf(unit), amount: unit.priceMicro.toString() }, request_hash: unit.requestHash }
  // Receipts are found by the address that paid, never by a wallet.
  const payer = paymentMethodOf(unit) === 'wallet' ? null : unit.payer
  const parties = { tenant_id: unit.tenantId, payer, salt: unit.terms.salt ?? null }
  // A top-up has no lane, no assessment and no task.
  if (unit.kind === 'topup')
    return { ...identity, ...price, ...parties, agent_id: null, route: null, governance: null, input_hash: null }
  const { decision, policy_hash, mandate_id, preauth_id, override_id, approval_id } = unit.terms.ruling
  const { self_approved, spender, team, tags } = unit.terms.ruling
  const payerNames = { ...(spender && { spender }), ...(team && { team }), ...(tags && { tags }) }
  const { confidence, routing_version } = unit.terms.route
  return {
    ...identity,
    ...price,
    ...parties,
    agent_id: unit.agentId,
    route: { agent_id: unit.agentId, confidence: confidence ?? null, routing_version: routing_version ?? null },
    governance: {
      decision,
      policy_hash,
      mandate_id,
      preauth_id,
      override_id,
      approval_id,
      ...(self_approved && { self_approved }),
      ...payerNames,
    },
    input_hash: unit.terms.input_hash,
  }
}

/** The commitment to the budgets and mandates that count a run, or to none when it was not charged. */
export function draftCounters({ kind, terms, holds, priceMicro }: PaidUnit, charged: boolean) {
  if (kind === 'topup' || terms.counter_salt === undefined) return {}
  return { counters: { secret: terms.counter_salt, counted: charged ? countedBy(holds, priceMicro) : [] } }
}
