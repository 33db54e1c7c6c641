import { readFileSync } from 'node:fs'
import { microFromUsdc } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import { INSTRUMENT_TYPES, type InstrumentType, minBigint } from './broker.ts'

/** The rules for one trade: the default policy of its instrument type, with the tenant's policy applied over it. */
export type TradePolicy = {
  policyId: string
  name: string
  contentHash: string | null
  /** `default` comes from `data/brokerage/policies.json`, `tenant` is one of the tenant's policies. */
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

/** The constraints of a tenant's policy that apply to trades. Its other constraints are not read here. */
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
  /** The only agent or key that may use it; absent when the whole tenant may. */
  agentId?: string | null
  keyId?: string | null
}

type DefaultPolicyEntry = PolicyConstraints & {
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

const DEFAULT_POLICIES_FILE = new URL('../../../data/brokerage/policies.json', import.meta.url)

export function loadDefaultPolicies(url: URL = DEFAULT_POLICIES_FILE): DefaultPolicies {
  const file = JSON.parse(readFileSync(url, 'utf8')) as { policies: Record<InstrumentType, DefaultPolicyEntry> }
  const entries = INSTRUMENT_TYPES.map((type) => [type, toDefaultPolicy(type, file.policies[type])] as const)
  return Object.fromEntries(entries) as DefaultPolicies
}

/**
 * A tenant's policy overrides the default where it has a constraint and keeps the default elsewhere: a higher limit must
 * not silently switch off the approval threshold.
 */
export function applyTenantPolicy(
  defaultPolicy: TradePolicy,
  policy: TenantPolicy,
  requester: { agentId: string | null; keyId: string },
): TradePolicy {
  // It may allow more than the default does, so only the agent or key it was written for may use it.
  if (policy.agentId && policy.agentId !== requester.agentId)
    throw invalid(`Policy '${policy.name}' is for another agent.`, { field: 'policy_id' })
  if (policy.keyId && policy.keyId !== requester.keyId)
    throw invalid(`Policy '${policy.name}' is for another key.`, { field: 'policy_id' })
  if (policy.status !== 'active') throw invalid(`Policy '${policy.name}' is ${policy.status}.`, { field: 'policy_id' })
  if (policy.mode !== 'enforce') {
    throw invalid(`Policy '${policy.name}' is in mode '${policy.mode}' and cannot govern a trade.`, {
      field: 'policy_id',
    })
  }
  const { constraints } = policy
  const approvalAboveMicro = toMicroOrNull(constraints.require_approval_above_usdc)
  return {
    ...defaultPolicy,
    policyId: policy.id,
    name: policy.name,
    contentHash: policy.contentHash,
    source: 'tenant',
    alwaysRequireApproval: approvalAboveMicro === null ? defaultPolicy.alwaysRequireApproval : false,
    requireApprovalAboveMicro: approvalAboveMicro ?? defaultPolicy.requireApprovalAboveMicro,
    maxNotionalMicro:
      smallerOf(toMicroOrNull(constraints.max_notional_usdc), toMicroOrNull(constraints.max_per_run_usdc)) ??
      defaultPolicy.maxNotionalMicro,
    maxPerDayMicro: toMicroOrNull(constraints.max_per_day_usdc) ?? defaultPolicy.maxPerDayMicro,
    maxLeverage: constraints.max_leverage ?? defaultPolicy.maxLeverage,
    allowedInstruments: constraints.allowed_instruments ?? defaultPolicy.allowedInstruments,
    deniedInstruments: constraints.denied_instruments ?? defaultPolicy.deniedInstruments,
    allowedMerchants: constraints.allowed_merchants ?? defaultPolicy.allowedMerchants,
    deniedMerchants: constraints.denied_merchants ?? defaultPolicy.deniedMerchants,
    allowedAgents: constraints.allowed_agents ?? defaultPolicy.allowedAgents,
    deniedAgents: constraints.denied_agents ?? defaultPolicy.deniedAgents,
  }
}

function toDefaultPolicy(type: InstrumentType, entry: DefaultPolicyEntry): TradePolicy {
  return {
    policyId: `default-${type}`,
    name: `Default ${type} policy`,
    contentHash: null,
    source: 'default',
    alwaysRequireApproval: entry.always_require_approval ?? false,
    requireApprovalAboveMicro: toMicroOrNull(entry.require_approval_above_usdc),
    maxNotionalMicro: toMicroOrNull(entry.max_notional_usdc),
    maxPerDayMicro: toMicroOrNull(entry.max_per_day_usdc),
    maxLeverage: entry.max_leverage ?? null,
    minLiquidationDistanceBps: entry.min_liquidation_distance_bps ?? null,
    maxConcentration: entry.max_concentration ?? null,
    collarBps: entry.collar_bps,
    maxDriftBps: entry.max_drift_bps,
    maxQuoteAgeSeconds: entry.max_quote_age_seconds,
    maxBasisBps: entry.max_basis_bps ?? null,
    maxFloatShare: entry.max_float_share ?? null,
    allowedInstruments: null,
    deniedInstruments: [],
    allowedMerchants: null,
    deniedMerchants: [],
    allowedAgents: null,
    deniedAgents: [],
  }
}

const toMicroOrNull = (usdc: number | undefined) => (usdc === undefined ? null : (microFromUsdc(usdc) ?? null))

const smallerOf = (a: bigint | null, b: bigint | null) => (a === null || b === null ? (a ?? b) : minBigint(a, b))
