import { hashJson } from '../../platform/canonical.ts'
import { type CounterDemand, type CounterState, evaluateDemand } from './limit-counters.ts'
import type { PaymentFacts } from './payment-facts.ts'
import {
  type Constraints,
  evaluateConstraints,
  microOf,
  type VelocityConstraint,
  velocityConstraints,
} from './policy-constraints.ts'
import { evaluateRuleList, type Rule } from './policy-rules.ts'
import { applyMode, type Finding, type Mode, type RuleResult } from './rule-result.ts'
import { periodOf } from './windows.ts'

export type IdentityType = 'tenant' | 'api_key' | 'agent'

/** What a policy says. Its hash stands in receipts, so everything that can change a verdict is part of it. */
export type PolicyContent = {
  name: string
  mode: Mode
  identity_type: IdentityType
  agent_id: string | null
  key_id: string | null
  key_prefix: string | null
  audit_trail_required: boolean
  constraints: Constraints
  rules: Rule[]
}

export type Policy = PolicyContent & {
  id: string
  version: number
  content_hash: string
  /** The key it is for and those that took that key's place: rotating a key does not shake off its policy. */
  keyIds: ReadonlySet<string>
}

export const contentHash = (content: PolicyContent): string => {
  const { key_prefix: _, ...rest } = content
  return hashJson(rest)
}

/** Whether the policy speaks about what this key wants to do with this agent. */
export function appliesTo(policy: Policy, asked: { keyId: string | null; agentId: string }): boolean {
  if (policy.identity_type === 'tenant') return true
  if (policy.identity_type === 'agent') return policy.agent_id === asked.agentId
  return asked.keyId !== null && policy.keyIds.has(asked.keyId)
}

/** The counters of this policy that a payment has to fit under. */
export function policyDemands(policy: Policy, facts: PaymentFacts, mode: Mode): CounterDemand[] {
  return velocityOf(policy.constraints).map(({ name, limitMicro }) => {
    const { window, measure } = velocityConstraints[name]
    return {
      scope: velocityScope(policy.id, name),
      window,
      period: periodOf(window, facts.at),
      amountMicro: measure === 'count' ? 1n : facts.amountMicro,
      measure,
      enforce: mode === 'enforce',
      foreseenLimitMicro: limitMicro,
      rule: name,
      path: `constraints.${name}`,
    }
  })
}

export const velocityScope = (policyId: string, name: VelocityConstraint) => `policy:${policyId}:${name}`

/** The constraints of a policy that are counted, with what may be reached. */
export const velocityOf = (constraints: Constraints): { name: VelocityConstraint; limitMicro: bigint }[] =>
  (Object.keys(velocityConstraints) as VelocityConstraint[]).flatMap((name) => {
    const value = constraints[name]
    if (value === undefined) return []
    return [{ name, limitMicro: velocityConstraints[name].measure === 'count' ? BigInt(value) : microOf(value) }]
  })

/**
 * Every rule of a policy on one payment, each with its reason. `stateOf` tells where a counter stands; a counter that
 * the payment's pre-authorisation already counts in is not asked again.
 */
export function evaluatePolicy(
  policy: Policy,
  facts: PaymentFacts,
  mode: Mode,
  stateOf: (demand: CounterDemand) => CounterState | 'held' | undefined,
): RuleResult[] {
  const told = (rule: string, finding: Finding, counter?: string): RuleResult => ({
    policy_id: policy.id,
    policy_name: policy.name,
    policy_version: policy.version,
    rule,
    mode,
    outcome: applyMode(finding.verdict, mode),
    ...finding,
    ...(counter !== undefined && { counter }),
  })
  const stateless = [...evaluateConstraints(policy.constraints, facts), ...evaluateRuleList(policy.rules, facts)]
  const counted = policyDemands(policy, facts, mode).flatMap((demand) => {
    const state = stateOf(demand)
    return state === undefined ? [] : [told(demand.rule, evaluateDemand(demand, state, facts.at), demand.scope)]
  })
  return [...stateless.map(({ rule, finding }) => told(rule, finding)), ...counted]
}
