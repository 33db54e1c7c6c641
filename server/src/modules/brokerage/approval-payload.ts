import { hashJson } from '../../platform/canonical.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import type { ApprovalRule } from '../governance/approvals/approval-content.ts'
import type { ApprovalWindow } from './approval-window.ts'
import { notionalMicro, numberFromE8, type RwaReading } from './broker.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation-price.ts'
import { type Check, findPosition, positionAfterE8, type RiskFacts, requiredMicro } from './risk-facts.ts'
import type { TradeTerms } from './trade-terms.ts'

/** What the spender of a trade has traded in the last 30 days. */
export type NormalTrade = {
  count_30d: number
  median_usdc: number | null
  max_usdc: number | null
  /** Of these, those in the same symbol. */
  same_30d: number
}

/** What an approver is shown besides the terms of the order. */
export type TradeApprovalView = { rule: ApprovalRule; normal: NormalTrade; next: string }

/** What an approver is shown. The fields beyond the common ones depend on the instrument type. */
export type ApprovalPayload = {
  run_id: string
  tenant_id: string
  instrument_type: string
  symbol: string
  side: string
  direction: string
  quantity: number
  notional_usdc: number
  expires_at: string
  execute_by: string
  policy_verdict: string
  checks: Check[]
  digest: string
} & Record<string, unknown>

export type ApprovalInput = {
  runId: string
  tenantId: string
  facts: RiskFacts
  checks: Check[]
  policyVerdict: string
  window: ApprovalWindow
  approvalsRequired: number
  view: TradeApprovalView
}

export function buildApprovalPayload(input: ApprovalInput): ApprovalPayload {
  const payload = { ...commonFields(input), ...instrumentFields(input.facts, input.window) }
  return { ...payload, digest: hashApprovalPayload(payload) }
}

/** sha256 over the RFC 8785 bytes of the payload without its own digest: proves what the approver was shown. */
export function hashApprovalPayload(payload: Record<string, unknown>): string {
  const { digest: _, ...signedFields } = payload
  return hashJson(signedFields)
}

function commonFields(input: ApprovalInput) {
  const { runId, tenantId, facts, checks, policyVerdict, window, approvalsRequired, view } = input
  const { terms, account, quote, policy } = facts
  const buyingPowerMicro = account.buyingPowerMicro
  return {
    run_id: runId,
    tenant_id: tenantId,
    instrument_type: terms.type as string,
    symbol: terms.symbol,
    side: terms.side as string,
    direction: terms.direction as string,
    quantity: numberFromE8(terms.quantityE8),
    requested_quantity: numberFromE8(terms.requestedQuantityE8),
    notional_usdc: usdcFromMicro(terms.notionalMicro),
    quote: {
      price: numberFromE8(terms.quotePriceE8),
      source: terms.quoteSource,
      observed_at: terms.quotedAt.toISOString(),
      max_drift_bps: terms.maxDriftBps,
    },
    est_fees: usdcFromMicro(terms.estimatedFeesMicro),
    est_slippage_bps: terms.estimatedSlippageBps,
    buying_power_before: usdcFromMicro(buyingPowerMicro),
    buying_power_after: usdcFromMicro(buyingPowerMicro - buyingPowerUsedMicro(facts)),
    position_before: numberFromE8(findPosition(account, terms.symbol)?.quantityE8 ?? 0n),
    position_after: terms.type === 'spend' ? 0 : numberFromE8(positionAfterE8(terms, account)),
    session: quote.session as string,
    // Of several policies in force the one whose threshold this is, or the default.
    policy_id: policy.source === 'enforced' ? policy.origins.approval.policyId : policy.policyId,
    policy_verdict: policyVerdict,
    checks,
    approvals_required: approvalsRequired,
    ...view,
    expires_at: window.expiresAt.toISOString(),
    execute_by: window.executeBy.toISOString(),
  }
}

/** A sale frees its proceeds when they settle: at once for T+0, later for T+1. */
function buyingPowerUsedMicro({ terms, quote, account, instrument }: RiskFacts): bigint {
  if (terms.type === 'perp' || terms.orderSide === 'buy') return requiredMicro(terms, quote, account)
  if (instrument.settlementLag === 'T+1') return 0n
  return terms.estimatedFeesMicro - notionalMicro(quote.bidE8, terms.quantityE8)
}

function instrumentFields(facts: RiskFacts, window: ApprovalWindow): Record<string, unknown> {
  switch (facts.terms.type) {
    case 'equity':
      return equityFields(facts)
    case 'perp':
      return perpFields(facts)
    case 'crypto':
      return cryptoFields(facts)
    case 'rwa':
      return rwaFields(facts, facts.reading)
    case 'earn':
      return earnFields(facts, window)
    case 'spend':
      return spendFields(facts)
  }
}

const equityFields = ({ terms, quote }: RiskFacts) => ({
  ticker: terms.symbol,
  order_type: terms.orderType,
  limit_price: limitPrice(terms),
  tif: terms.tif,
  next_open: quote.nextOpen?.toISOString() ?? null,
  halted: quote.halted,
})

function perpFields({ terms, quote, instrument }: RiskFacts) {
  const leverageE2 = terms.leverageE2 ?? 100n
  const maintenanceMarginBps = instrument.perp?.maintenanceMarginBps ?? 0
  const notional = notionalMicro(terms.quotePriceE8, terms.quantityE8)
  const liquidation = liquidationPriceE8({
    direction: terms.orderSide === 'buy' ? 'long' : 'short',
    entryPriceE8: terms.quotePriceE8,
    leverageE2,
    maintenanceMarginBps,
  })
  return {
    leverage: Number(leverageE2) / 100,
    margin_mode: 'isolated',
    margin: usdcFromMicro((notional * 100n) / leverageE2),
    maintenance_margin_rate: maintenanceMarginBps / 10_000,
    mark_price: numberFromE8(quote.markE8),
    notional: usdcFromMicro(notional),
    order_type: terms.orderType,
    limit_price: limitPrice(terms),
    liquidation_price: numberFromE8(liquidation),
    distance_to_liq_pct: distanceToLiquidationBps(quote.markE8, liquidation) / 10_000,
    funding_rate: (quote.fundingRatePpm ?? 0) / 1_000_000,
  }
}

const cryptoFields = ({ terms, instrument }: RiskFacts) => ({
  product_id: terms.symbol,
  fee_tier: instrument.feeTier,
  network: instrument.crypto?.network ?? null,
  order_type: terms.orderType,
  limit_price: limitPrice(terms),
})

const rwaFields = ({ terms, instrument }: RiskFacts, reading: RwaReading | null) => ({
  underlying_asset: instrument.rwa?.underlyingAsset ?? null,
  token_contract: instrument.rwa?.tokenContract ?? null,
  chain: instrument.rwa?.chain ?? null,
  multiplier: instrument.rwa?.multiplier ?? null,
  basis_bps: reading?.basisBps ?? null,
  near_reference_usd: reading?.nearReferenceUsd ?? null,
  creation: reading?.creation ?? null,
  settlement_lag: instrument.settlementLag,
  order_type: terms.orderType,
  limit_price: limitPrice(terms),
})

function earnFields({ terms, instrument }: RiskFacts, window: ApprovalWindow) {
  const lockDays = instrument.earn?.lockDays ?? 0
  return {
    principal: numberFromE8(terms.quantityE8),
    yield_rate: (instrument.earn?.yieldRateBps ?? 0) / 10_000,
    lock_period: `P${lockDays}D`,
    // The lock starts when the deposit executes, which is no later than this.
    unlock_at: new Date(window.executeBy.getTime() + lockDays * 86_400_000).toISOString(),
    early_exit_penalty: (instrument.earn?.earlyExitPenaltyBps ?? 0) / 10_000,
    protocol: instrument.earn?.protocol ?? null,
  }
}

function spendFields({ terms, instrument, policy, spentTodayMicro }: RiskFacts) {
  const remainingMicro = policy.maxPerDayMicro === null ? null : policy.maxPerDayMicro - spentTodayMicro
  return {
    merchant: terms.symbol,
    category: instrument.spend?.category ?? null,
    amount_usdc: usdcFromMicro(terms.notionalMicro),
    rail: instrument.spend?.rail ?? null,
    pre_auth_id: null,
    recurring: false,
    remaining_budget: remainingMicro === null ? null : usdcFromMicro(remainingMicro > 0n ? remainingMicro : 0n),
  }
}

const limitPrice = (terms: TradeTerms) => (terms.limitPriceE8 === null ? null : numberFromE8(terms.limitPriceE8))
