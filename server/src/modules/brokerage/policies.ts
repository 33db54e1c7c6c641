import { readFileSync } from 'node:fs'
import { microFromUsdc } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { INSTRUMENT_TYPES, type InstrumentType, least } from './broker.ts'

/** Everything that governs one trade, after a tenant's own policy has spoken over the default. */
export type TradePolicy = {
  policyId: string
  name: string
  contentHash: string | null
  /** The defaults shipped with the service, or a policy of the tenant's. */
  source: 'default' | 'tenant'
  alwaysRequireApproval: boolean
  requireApprovalAboveMicro: bigint | null
  maxNotionalMicro: bigint | null
  maxPerDayMicro: bigint | null
  maxLeverage: number | null
  minLiquidationDistanceBps: number | null
  maxConcentration: number | null
  collarBps: number
  maxDriftBps: number
  maxQuoteAgeSeconds: number
  maxBasisBps: number | null
  maxFloatShare: number | null
  allowedInstruments: readonly string[] | null
  deniedInstruments: readonly string[]
  allowedMerchants: readonly string[] | null
  deniedMerchants: readonly string[]
  allowedAgents: readonly string[] | null
  deniedAgents: readonly string[]
}

/** The constraints of a tenant's policy that say something about trades; others of that policy govern other things. */
export type PolicyConstraints = {
  require_approval_above_usdc?: number
  max_notional_usdc?: number
  max_per_run_usdc?: number
  max_per_day_usdc?: number
  max_leverage?: number
  allowed_instruments?: readonly string[]
  denied_instruments?: readonly string[]
  allowed_merchants?: readonly string[]
  denied_merchants?: readonly string[]
  allowed_agents?: readonly string[]
  denied_agents?: readonly string[]
}

export type TenantPolicy = {
  id: string
  name: string
  status: string
  mode: string
  contentHash: string | null
  constraints: PolicyConstraints
  /** The one agent or the one key it is for; absent when it is for the whole tenant. */
  agentId?: string | null
  keyId?: string | null
}

type ShippedPolicy = PolicyConstraints & {
  always_require_approval?: boolean
  min_liquidation_distance_bps?: number
  max_concentration?: number
  collar_bps: number
  max_drift_bps: number
  max_quote_age_seconds: number
  max_basis_bps?: number
  max_float_share?: number
}

export type DefaultPolicies = Record<InstrumentType, TradePolicy>

const SHIPPED = new URL('../../../data/brokerage/policies.json', import.meta.url)

export function loadDefaultPolicies(file: URL = SHIPPED): DefaultPolicies {
  const shipped = JSON.parse(readFileSync(file, 'utf8')) as { policies: Record<InstrumentType, ShippedPolicy> }
  const entries = INSTRUMENT_TYPES.map((type) => [type, fromShipped(type, shipped.policies[type])] as const)
  return Object.fromEntries(entries) as DefaultPolicies
}

/**
 * A tenant's policy overrides the default where it speaks and leaves the rest as it was: naming a higher limit must not
 * silently switch off the approval threshold beside it.
 */
export function overridePolicy(
  base: TradePolicy,
  policy: TenantPolicy,
  asking: { agentId: string | null; keyId: string },
): TradePolicy {
  // It may say more than the default allows, so only those it was written for may call on it.
  if (policy.agentId && policy.agentId !== asking.agentId)
    throw invalid(`Policy '${policy.name}' is for another agent.`, { field: 'policy_id' })
  if (policy.keyId && policy.keyId !== asking.keyId)
    throw invalid(`Policy '${policy.name}' is for another key.`, { field: 'policy_id' })
  if (policy.status !== 'active') throw invalid(`Policy '${policy.name}' is ${policy.status}.`, { field: 'policy_id' })
  if (policy.mode !== 'enforce') {
    throw invalid(`Policy '${policy.name}' is in mode '${policy.mode}' and cannot govern a trade.`, {
      field: 'policy_id',
    })
  }
  const said = policy.constraints
  const approval = micro(said.require_approval_above_usdc)
  return {
    ...base,
    policyId: policy.id,
    name: policy.name,
    contentHash: policy.contentHash,
    source: 'tenant',
    alwaysRequireApproval: approval === null ? base.alwaysRequireApproval : false,
    requireApprovalAboveMicro: approval ?? base.requireApprovalAboveMicro,
    maxNotionalMicro: smallest(micro(said.max_notional_usdc), micro(said.max_per_run_usdc)) ?? base.maxNotionalMicro,
    maxPerDayMicro: micro(said.max_per_day_usdc) ?? base.maxPerDayMicro,
    maxLeverage: said.max_leverage ?? base.maxLeverage,
    allowedInstruments: said.allowed_instruments ?? base.allowedInstruments,
    deniedInstruments: said.denied_instruments ?? base.deniedInstruments,
    allowedMerchants: said.allowed_merchants ?? base.allowedMerchants,
    deniedMerchants: said.denied_merchants ?? base.deniedMerchants,
    allowedAgents: said.allowed_agents ?? base.allowedAgents,
    deniedAgents: said.denied_agents ?? base.deniedAgents,
  }
}

function fromShipped(type: InstrumentType, shipped: ShippedPolicy): TradePolicy {
  return {
    policyId: `default-${type}`,
    name: `Default ${type} policy`,
    contentHash: null,
    source: 'default',
    alwaysRequireApproval: shipped.always_require_approval ?? false,
    requireApprovalAboveMicro: micro(shipped.require_approval_above_usdc),
    maxNotionalMicro: micro(shipped.max_notional_usdc),
    maxPerDayMicro: micro(shipped.max_per_day_usdc),
    maxLeverage: shipped.max_leverage ?? null,
    minLiquidationDistanceBps: shipped.min_liquidation_distance_bps ?? null,
    maxConcentration: shipped.max_concentration ?? null,
    collarBps: shipped.collar_bps,
    maxDriftBps: shipped.max_drift_bps,
    maxQuoteAgeSeconds: shipped.max_quote_age_seconds,
    maxBasisBps: shipped.max_basis_bps ?? null,
    maxFloatShare: shipped.max_float_share ?? null,
    allowedInstruments: null,
    deniedInstruments: [],
    allowedMerchants: null,
    deniedMerchants: [],
    allowedAgents: null,
    deniedAgents: [],
  }
}

const micro = (usdc: number | undefined) => (usdc === undefined ? null : (microFromUsdc(usdc) ?? null))

const smallest = (a: bigint | null, b: bigint | null) => (a === null || b === null ? (a ?? b) : least(a, b))
