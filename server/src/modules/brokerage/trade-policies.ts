import { readFileSync } from 'node:fs'
import { hashJson } from '../../platform/canonical.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { forbidden, invalid } from '../../platform/problem.ts'
import { INSTRUMENT_TYPES, type InstrumentType, minBigint } from './broker.ts'

/** The limits and approval thresholds of one trade, and the lists of the policy that they come from. */
export type TradePolicy = {
  policyId: string
  name: string
  contentHash: string | null
  /**
   * `shipped` comes from `data/brokerage/policies.json`, `tenant_default` is the tenant's own for the type, `enforced` the
   * tenant's policies that speak of trades, `named` the policy that the request names.
   */
  source: 'shipped' | 'tenant_default' | 'enforced' | 'named'
  alwaysRequireApproval: boolean
  requireApprovalAboveMicro: bigint | null
  /** How many keys have to approve, and whether the identity that asked never may. */
  approvalsRequired: number
  separateApprover: boolean
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
  approvals_required?: number
  separate_approver?: boolean
}

/** The constraints of a default policy: those of the shipped file and of PUT /api/rh/policies/{instrument_type}. */
export type DefaultConstraints = Pick<
  PolicyConstraints,
  'require_approval_above_usdc' | 'max_notional_usdc' | 'max_per_day_usdc' | 'max_leverage'
> & {
  always_require_approval?: boolean
  min_liquidation_distance_bps?: number
  max_concentration?: number
  collar_bps?: number
  max_drift_bps?: number
  max_quote_age_seconds?: number
  max_basis_bps?: number
  max_float_share?: number
}

export type TenantPolicy = {
  id: string
  name: string
  status: string
  mode: string
  contentHash: string | null
  constraints: PolicyConstraints
  /** What the policy is for, and whether this trade is that. */
  identityType: string
  isForTrade: boolean
  /** A key without the scope `control` may name it. */
  selectable: boolean
}

type ShippedConstraints = DefaultConstraints &
  Required<Pick<DefaultConstraints, 'collar_bps' | 'max_drift_bps' | 'max_quote_age_seconds'>>

/** A default policy with the constraints it was made from. */
export type DefaultPolicy = TradePolicy & { constraints: DefaultConstraints }

export type DefaultPolicies = Record<InstrumentType, DefaultPolicy>

const DEFAULT_POLICIES_FILE = new URL('../../../data/brokerage/policies.json', import.meta.url)

export function loadDefaultPolicies(url: URL = DEFAULT_POLICIES_FILE): DefaultPolicies {
  const file = JSON.parse(readFileSync(url, 'utf8')) as { policies: Record<InstrumentType, ShippedConstraints> }
  const entries = INSTRUMENT_TYPES.map((type) => [type, toShippedPolicy(type, file.policies[type])] as const)
  return Object.fromEntries(entries) as DefaultPolicies
}

/** The tenant's default for a type: its constraints over those of the shipped policy. */
export const toTenantDefault = (
  shipped: DefaultPolicy,
  type: InstrumentType,
  stored: { constraints: DefaultConstraints; contentHash: string },
): DefaultPolicy => ({
  ...toShippedPolicy(type, {
    ...(shipped.constraints as ShippedConstraints),
    // A threshold of the tenant replaces "always", as one of a policy does.
    ...(stored.constraints.require_approval_above_usdc !== undefined && { always_require_approval: false }),
    ...stored.constraints,
  }),
  name: `Tenant's default ${type} policy`,
  contentHash: stored.contentHash,
  source: 'tenant_default',
})

/** Constraints that only trades have: a policy with one of them speaks of trades. */
const TRADE_CONSTRAINTS = ['allowed_instruments', 'denied_instruments', 'max_leverage', 'max_notional_usdc'] as const

export const speaksOfTrades = ({ constraints }: Pick<TenantPolicy, 'constraints'>): boolean =>
  TRADE_CONSTRAINTS.some((name) => constraints[name] !== undefined)

/**
 * Policies of the tenant override the default where they have a constraint and keep the default elsewhere: a higher limit
 * must not silently switch off the approval threshold. Of several policies the smallest of each limit applies.
 */
export function applyPolicies(
  defaultPolicy: TradePolicy,
  policies: readonly [TenantPolicy, ...TenantPolicy[]],
  source: 'enforced' | 'named',
): TradePolicy {
  const smallest = (name: keyof PolicyConstraints) =>
    policies.reduce<number | undefined>((lowest, { constraints }) => {
      const value = constraints[name] as number | undefined
      return value === undefined || (lowest !== undefined && lowest <= value) ? lowest : value
    }, undefined)
  const approvalAboveMicro = toMicroOrNull(smallest('require_approval_above_usdc'))
  const [first] = policies
  return {
    ...defaultPolicy,
    policyId: first.id,
    name: policies.map(({ name }) => name).join(', '),
    contentHash: policies.length === 1 ? first.contentHash : hashJson(policies.map((policy) => policy.contentHash)),
    source,
    alwaysRequireApproval: approvalAboveMicro === null ? defaultPolicy.alwaysRequireApproval : false,
    requireApprovalAboveMicro: approvalAboveMicro ?? defaultPolicy.requireApprovalAboveMicro,
    approvalsRequired: Math.max(1, ...policies.map(({ constraints }) => constraints.approvals_required ?? 1)),
    separateApprover: policies.some(({ constraints }) => constraints.separate_approver === true),
    maxNotionalMicro:
      smallerOf(toMicroOrNull(smallest('max_notional_usdc')), toMicroOrNull(smallest('max_per_run_usdc'))) ??
      defaultPolicy.maxNotionalMicro,
    maxPerDayMicro: toMicroOrNull(smallest('max_per_day_usdc')) ?? defaultPolicy.maxPerDayMicro,
    maxLeverage: smallest('max_leverage') ?? defaultPolicy.maxLeverage,
    // The lists of every policy in force bind the trade in governance; those of the named one are shown as checks too.
    ...(source === 'named' && {
      allowedInstruments: first.constraints.allowed_instruments ?? null,
      deniedInstruments: first.constraints.denied_instruments ?? [],
      allowedMerchants: first.constraints.allowed_merchants ?? null,
      deniedMerchants: first.constraints.denied_merchants ?? [],
      allowedAgents: first.constraints.allowed_agents ?? null,
      deniedAgents: first.constraints.denied_agents ?? [],
    }),
  }
}

/** Refuses a policy that this request cannot name: it may allow more than the default, so it is for those it was written for. */
export function requireNameable(policy: TenantPolicy, mayControl: boolean): void {
  if (!mayControl && !policy.selectable)
    throw forbidden(`Policy '${policy.name}' is not selectable: naming it needs a key with the scope 'control'.`)
  if (!policy.isForTrade) {
    const identity = policy.identityType === 'api_key' ? 'key' : policy.identityType
    throw invalid(`Policy '${policy.name}' is for another ${identity}.`, { field: 'policy_id' })
  }
  if (policy.status !== 'active') throw invalid(`Policy '${policy.name}' is ${policy.status}.`, { field: 'policy_id' })
  if (policy.mode !== 'enforce') {
    throw invalid(`Policy '${policy.name}' is in mode '${policy.mode}' and cannot govern a trade.`, {
      field: 'policy_id',
    })
  }
}

function toShippedPolicy(type: InstrumentType, constraints: ShippedConstraints): DefaultPolicy {
  return {
    policyId: `default-${type}`,
    name: `Default ${type} policy`,
    contentHash: null,
    source: 'shipped',
    constraints,
    alwaysRequireApproval: constraints.always_require_approval ?? false,
    requireApprovalAboveMicro: toMicroOrNull(constraints.require_approval_above_usdc),
    approvalsRequired: 1,
    separateApprover: false,
    maxNotionalMicro: toMicroOrNull(constraints.max_notional_usdc),
    maxPerDayMicro: toMicroOrNull(constraints.max_per_day_usdc),
    maxLeverage: constraints.max_leverage ?? null,
    minLiquidationDistanceBps: constraints.min_liquidation_distance_bps ?? null,
    maxConcentration: constraints.max_concentration ?? null,
    collarBps: constraints.collar_bps,
    maxDriftBps: constraints.max_drift_bps,
    maxQuoteAgeSeconds: constraints.max_quote_age_seconds,
    maxBasisBps: constraints.max_basis_bps ?? null,
    maxFloatShare: constraints.max_float_share ?? null,
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
