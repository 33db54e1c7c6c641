import { readFileSync } from 'node:fs'
import { hashJson } from '../../platform/canonical.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { forbidden, invalid } from '../../platform/problem.ts'
import { INSTRUMENT_TYPES, type InstrumentType, minBigint } from './broker.ts'

/** Where a limit comes from: a policy of the tenant, its default for the instrument type, or the shipped default. */
export type LimitOrigin = {
  source: 'shipped' | 'tenant_default' | 'policy'
  /** The id of the policy, or `default-<instrument type>`. */
  policyId: string
  name: string
  constraint: string
}

/** The constraint that a check of the brokerage reads. */
const CHECK_CONSTRAINTS = {
  approval: 'require_approval_above_usdc',
  order_notional: 'max_notional_usdc',
  daily_notional: 'max_per_day_usdc',
  leverage_cap: 'max_leverage',
  liquidation_distance: 'min_liquidation_distance_bps',
  concentration: 'max_concentration',
  price_collar: 'collar_bps',
  quote_age: 'max_quote_age_seconds',
  basis_cap: 'max_basis_bps',
  float_cap: 'max_float_share',
} as const satisfies Record<string, keyof DefaultConstraints>

type LimitCheckId = keyof typeof CHECK_CONSTRAINTS
type LimitOrigins = Readonly<Record<LimitCheckId, LimitOrigin>>

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
  /** The origin of each limit, by the check that reads it. */
  origins: LimitOrigins
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
export function toTenantDefault(
  shipped: DefaultPolicy,
  type: InstrumentType,
  stored: { constraints: DefaultConstraints; contentHash: string },
): DefaultPolicy {
  const name = `Tenant's default ${type} policy`
  const { origins, ...policy } = toShippedPolicy(type, {
    ...(shipped.constraints as ShippedConstraints),
    // A threshold of the tenant replaces "always", as one of a policy does.
    ...(stored.constraints.require_approval_above_usdc !== undefined && { always_require_approval: false }),
    ...stored.constraints,
  })
  const isOwn = (constraint: string) =>
    constraint in stored.constraints ||
    (constraint === CHECK_CONSTRAINTS.approval && stored.constraints.always_require_approval !== undefined)
  return {
    ...policy,
    name,
    contentHash: stored.contentHash,
    source: 'tenant_default',
    origins: mapOrigins(origins, (origin) =>
      isOwn(origin.constraint) ? { ...origin, source: 'tenant_default', name } : origin,
    ),
  }
}

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
    strictestPolicy(policies, name)?.constraints[name] as number | undefined
  const approvalAboveMicro = toMicroOrNull(smallest('require_approval_above_usdc'))
  const [first] = policies
  return {
    ...defaultPolicy,
    policyId: first.id,
    name: policies.map(({ name }) => name).join(', '),
    contentHash: policies.length === 1 ? first.contentHash : hashJson(policies.map((policy) => policy.contentHash)),
    source,
    origins: mapOrigins(defaultPolicy.origins, (origin, check) => policyOrigin(policies, check) ?? origin),
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

/** The first of the policies with the smallest value of a limit; undefined when none has it. */
function strictestPolicy(policies: readonly TenantPolicy[], name: keyof PolicyConstraints): TenantPolicy | undefined {
  return policies.reduce<TenantPolicy | undefined>((strictest, policy) => {
    const value = policy.constraints[name]
    const lowest = strictest?.constraints[name]
    return value === undefined || (lowest !== undefined && lowest <= value) ? strictest : policy
  }, undefined)
}

/** The policy and constraint that a check's limit comes from; `max_per_run_usdc` limits the notional of a trade too. */
function policyOrigin(policies: readonly TenantPolicy[], check: LimitCheckId): LimitOrigin | undefined {
  const names = (
    check === 'order_notional' ? ['max_notional_usdc', 'max_per_run_usdc'] : [CHECK_CONSTRAINTS[check]]
  ) as (keyof PolicyConstraints)[]
  const [decisive] = names
    .flatMap((constraint) => {
      const policy = strictestPolicy(policies, constraint)
      return policy ? [{ policy, constraint, value: policy.constraints[constraint] as number }] : []
    })
    .sort((a, b) => a.value - b.value)
  return (
    decisive && {
      source: 'policy',
      policyId: decisive.policy.id,
      name: decisive.policy.name,
      constraint: decisive.constraint,
    }
  )
}

/** Undefined for a check that reads no limit of a policy. */
export const originOf = ({ origins }: Pick<TradePolicy, 'origins'>, checkId: string): LimitOrigin | undefined =>
  origins[checkId as LimitCheckId]

const mapOrigins = (
  origins: LimitOrigins,
  map: (origin: LimitOrigin, check: LimitCheckId) => LimitOrigin,
): LimitOrigins =>
  Object.fromEntries(
    Object.entries(origins).map(([check, origin]) => [check, map(origin, check as LimitCheckId)]),
  ) as LimitOrigins

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
  const policyId = `default-${type}`
  const name = `Default ${type} policy`
  const origins = Object.entries(CHECK_CONSTRAINTS).map(
    ([check, constraint]) => [check, { source: 'shipped', policyId, name, constraint }] as const,
  )
  return {
    policyId,
    name,
    contentHash: null,
    source: 'shipped',
    origins: Object.fromEntries(origins) as LimitOrigins,
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
