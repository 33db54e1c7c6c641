import type { CountersOpening } from '@countersign/proof'
import { canonicalJson, sha256 } from '../../platform/canonical.ts'
import { usdcFromMicro } from '../../platform/money.ts'
import { divideRounded, type Fill, type Instrument, notionalMicro, numberFromE8, type Quote } from './broker.ts'
import { liquidationPriceE8 } from './liquidation-price.ts'
import type { Check } from './risk-facts.ts'
import type { TradeTerms } from './trade-terms.ts'

/** A receipt is issued when a run becomes pending and when it becomes final; the later one names the earlier by `prev_hash`. */
export type ReceiptStatus = 'pending_approval' | 'executed' | 'partially_filled' | 'cancelled' | 'rejected'

export type ReceiptInput = {
  id: string
  runId: string
  tenantId: string
  status: ReceiptStatus
  reason: string | null
  mode: 'paper' | 'live'
  broker: string
  clientOrderId: string
  brokerOrderId: string | null
  terms: TradeTerms
  instrument: Instrument
  fills: readonly Fill[]
  policy: {
    policyId: string
    name: string
    contentHash: string | null
    verdict: string
    checks: readonly Check[]
    limitPolicyIds?: readonly string[]
  }
  approval: {
    required: boolean
    digest: string | null
    expiresAt: Date | null
    approvedBy: string | null
    approvedByClaimed: string | null
    selfApproved: boolean
    approvedAt: Date | null
  }
  /** Who traded, by which key and under which mandate. */
  party: {
    agentId: string | null
    spender: string
    team: string | null
    tags: Readonly<Record<string, string>>
    keyId: string
    mandateId: string | null
  }
  executeBy: Date
  executionQuote: Pick<Quote, 'markE8' | 'source' | 'observedAt'> | null
  prevHash: string | null
  /** Makes the hash in the public log unguessable. */
  salt: string
  /** Opens the public entry's commitment to the budgets and mandates that counted the trade. */
  counters: CountersOpening
  /** The address of this receipt's entry in the public log. */
  receiptUrl: string
  createdAt: Date
}

export type RhReceipt = {
  id: string
  run_id: string
  tenant_id: string
  instrument_type: string
  status: ReceiptStatus
  attestation: { hash: string; prev_hash: string | null; alg: string; key_id: string; value: string }
  instrument_metadata: Record<string, unknown>
  created_at: string
} & Record<string, unknown>

export type SignReceipt = (bytes: string) => { alg: string; keyId: string; value: string }

/**
 * The signature covers the RFC 8785 bytes of the receipt without `attestation`, together with `prev_hash`: anyone who
 * holds the receipt can verify it, and its predecessor cannot be replaced.
 */
export function createReceipt(input: ReceiptInput, sign: SignReceipt): RhReceipt {
  const body = buildReceiptBody(input)
  const signedBytes = canonicalJson({ ...body, prev_hash: input.prevHash })
  const signature = sign(signedBytes)
  return {
    ...body,
    attestation: {
      hash: sha256(signedBytes),
      prev_hash: input.prevHash,
      alg: signature.alg,
      key_id: signature.keyId,
      value: signature.value,
    },
  }
}

/** The bytes that `attestation.value` signs and `attestation.hash` is the hash of. */
export function attestedBytes(receipt: RhReceipt): string {
  const { attestation, ...body } = receipt
  return canonicalJson({ ...body, prev_hash: attestation.prev_hash })
}

export function sumFills(fills: readonly Fill[]) {
  const quantityE8 = fills.reduce((sum, fill) => sum + fill.quantityE8, 0n)
  const grossMicro = fills.reduce((sum, fill) => sum + notionalMicro(fill.priceE8, fill.quantityE8), 0n)
  const feesMicro = fills.reduce((sum, fill) => sum + fill.feeMicro, 0n)
  // From the prices: the amount of a tiny fill is rounded to a micro-dollar and would give another price.
  const weightedPrice = fills.reduce((sum, fill) => sum + fill.priceE8 * fill.quantityE8, 0n)
  return {
    quantityE8,
    grossMicro,
    feesMicro,
    averageE8: quantityE8 === 0n ? 0n : divideRounded(weightedPrice, quantityE8),
  }
}

function buildReceiptBody(input: ReceiptInput) {
  const { terms } = input
  const { quantityE8, grossMicro, feesMicro, averageE8 } = sumFills(input.fills)
  const filled = quantityE8 > 0n
  // Only the fees of a perp are paid: the contract costs nothing, and its margin stays in the account.
  const paidMicro = terms.type === 'perp' ? 0n : grossMicro
  const netMicro = (terms.orderSide === 'buy' ? -paidMicro : paidMicro) - feesMicro
  return {
    id: input.id,
    salt: input.salt,
    counters: input.counters,
    run_id: input.runId,
    tenant_id: input.tenantId,
    instrument_type: terms.type as string,
    symbol: terms.symbol,
    side: terms.side as string,
    direction: terms.direction as string,
    quantity: numberFromE8(terms.quantityE8),
    requested_quantity: numberFromE8(terms.requestedQuantityE8),
    filled_quantity: numberFromE8(quantityE8),
    notional_usdc: usdcFromMicro(terms.notionalMicro),
    status: input.status,
    reason: input.reason,
    mode: input.mode,
    broker: input.broker,
    client_order_id: input.clientOrderId,
    broker_order_id: input.brokerOrderId,
    fills: input.fills.map((fill) => ({
      fill_id: fill.fillId,
      quantity: numberFromE8(fill.quantityE8),
      price: numberFromE8(fill.priceE8),
      fee: usdcFromMicro(fill.feeMicro),
      at: fill.at.toISOString(),
    })),
    avg_price: filled ? numberFromE8(averageE8) : null,
    gross: usdcFromMicro(grossMicro),
    fees: usdcFromMicro(feesMicro),
    net: usdcFromMicro(filled ? netMicro : 0n),
    reference: {
      quote_price: numberFromE8(terms.quotePriceE8),
      quote_source: terms.quoteSource,
      quoted_at: terms.quotedAt.toISOString(),
      max_drift_bps: terms.maxDriftBps,
      execution_price: input.executionQuote ? numberFromE8(input.executionQuote.markE8) : null,
      execution_observed_at: input.executionQuote?.observedAt.toISOString() ?? null,
      // Runs stored before this field existed have none.
      basis_bps: terms.basisBps ?? null,
    },
    slippage_bps: filled ? computeSlippageBps(terms, averageE8) : null,
    policy: {
      policy_id: input.policy.policyId,
      ...((input.policy.limitPolicyIds?.length ?? 0) > 1 && { policy_ids: [...input.policy.limitPolicyIds!] }),
      name: input.policy.name,
      content_hash: input.policy.contentHash,
      verdict: input.policy.verdict,
      checks: input.policy.checks.map((check) => ({ ...check })),
    },
    approval: {
      required: input.approval.required,
      digest: input.approval.digest,
      expires_at: input.approval.expiresAt?.toISOString() ?? null,
      approved_by: input.approval.approvedBy,
      approved_by_claimed: input.approval.approvedByClaimed,
      approved_at: input.approval.approvedAt?.toISOString() ?? null,
      ...(input.approval.selfApproved && { self_approved: true }),
    },
    agent_id: input.party.agentId,
    spender: input.party.spender,
    team: input.party.team,
    tags: { ...input.party.tags },
    key_id: input.party.keyId,
    mandate_id: input.party.mandateId,
    execute_by: input.executeBy.toISOString(),
    receipt_url: input.receiptUrl,
    created_at: input.createdAt.toISOString(),
    instrument_metadata: buildInstrumentMetadata(input, filled ? averageE8 : terms.quotePriceE8),
  }
}

/** Positive is worse than the quoted price, for either side. */
function computeSlippageBps(terms: TradeTerms, averageE8: bigint): number {
  const priceDifference = terms.orderSide === 'buy' ? averageE8 - terms.quotePriceE8 : terms.quotePriceE8 - averageE8
  return Number((priceDifference * 1_000_000n) / terms.quotePriceE8) / 100
}

function buildInstrumentMetadata(input: ReceiptInput, priceE8: bigint): Record<string, unknown> {
  const { terms, instrument } = input
  const quantityE8 = input.fills.length > 0 ? sumFills(input.fills).quantityE8 : terms.quantityE8
  const order = {
    order_type: terms.orderType,
    limit_price: terms.limitPriceE8 === null ? null : numberFromE8(terms.limitPriceE8),
  }
  switch (terms.type) {
    case 'equity':
      return { ticker: terms.symbol, ...order }
    case 'perp':
      return buildPerpMetadata(terms, instrument, priceE8, quantityE8)
    case 'crypto':
      return {
        base_asset: instrument.crypto?.baseAsset ?? null,
        quote_asset: instrument.crypto?.quoteAsset ?? null,
        product_id: terms.symbol,
        ...order,
        network: instrument.crypto?.network ?? null,
      }
    case 'rwa':
      return {
        underlying_asset: instrument.rwa?.underlyingAsset ?? null,
        token_contract: instrument.rwa?.tokenContract ?? null,
        settlement_lag: instrument.settlementLag,
        chain: instrument.rwa?.chain ?? null,
        ...order,
      }
    case 'earn':
      return {
        yield_rate: (instrument.earn?.yieldRateBps ?? 0) / 10_000,
        lock_period: `P${instrument.earn?.lockDays ?? 0}D`,
        principal: numberFromE8(quantityE8),
        protocol: instrument.earn?.protocol ?? null,
      }
    case 'spend':
      return {
        merchant: terms.symbol,
        merchant_id: instrument.spend?.merchantId ?? null,
        category: instrument.spend?.category ?? null,
        amount_usdc: numberFromE8(quantityE8),
        rail: instrument.spend?.rail ?? null,
        authorization_id: input.brokerOrderId,
        pre_auth_id: null,
        recurring: false,
      }
  }
}

function buildPerpMetadata(terms: TradeTerms, instrument: Instrument, priceE8: bigint, quantityE8: bigint) {
  const leverageE2 = terms.leverageE2 ?? 100n
  const liquidation = liquidationPriceE8({
    direction: terms.orderSide === 'buy' ? 'long' : 'short',
    entryPriceE8: priceE8,
    leverageE2,
    maintenanceMarginBps: instrument.perp?.maintenanceMarginBps ?? 0,
  })
  return {
    leverage: Number(leverageE2) / 100,
    notional: usdcFromMicro(notionalMicro(priceE8, quantityE8)),
    liquidation_price: numberFromE8(liquidation),
    direction: terms.direction,
    order_type: terms.orderType,
    limit_price: terms.limitPriceE8 === null ? null : numberFromE8(terms.limitPriceE8),
    margin_mode: 'isolated',
  }
}
