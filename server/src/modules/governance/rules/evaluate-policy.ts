import { hashJson } from '../../../platform/canonical.ts'
import type { PaymentFacts } from '../assess/payment-facts.ts'
import { type CounterDemand, type CounterState, evaluateDemand } from '../counters/limit-counters.ts'
import { periodOf } from '../counters/windows.ts'
import {
  type Constraints,
  evaluateConstraints,
  toMicro,
  type VelocityConstraint,
  velocityConstraints,
} from './policy-constraints.ts'
import { evaluateRuleList, type Rule } from './policy-rules.ts'
import { applyMode, type Finding, type Mode, type RuleResult } from './rule-result.ts'

export type IdentityType = 'tenant' | 'api_key' | 'agent'

/** The content of a policy. Its hash is part of receipts, so it includes everything that can change a verdict. */
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
  /** The key that the policy is for and its rotated successors: rotating a key does not remove its policy. */
  keyIds: ReadonlySet<string>
}

export const contentHash = (content: PolicyContent): string => {
  const { key_prefix: _, ...hashedContent } = content
  return hashJson(hashedContent)
}

/** Whether the policy applies to payments of this key and agent. */
export function appliesTo(policy: Policy, payment: { keyId: string | null; agentId: string }): boolean {
  if (policy.identity_type === 'tenant') return true
  if (policy.identity_type === 'agent') return policy.agent_id === payment.agentId
  return payment.keyId !== null && policy.keyIds.has(payment.keyId)
}

/** The counters of this policy that the payment has to fit under. */
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
      expectedLimitMicro: limitMicro,
      rule: name,
      path: `constraints.${name}`,
    }
  })
}

export const velocityScope = (policyId: string, name: VelocityConstraint) => `policy:${policyId}:${name}`

/** The counted constraints of a policy, with their limits. */
export const velocityOf = (constraints: Constraints): { name: VelocityConstraint; limitMicro: bigint }[] =>
  (Object.keys(velocityConstraints) as VelocityConstraint[]).flatMap((name) => {
    const value = constraints[name]
    if (value === undefined) return []
    return [{ name, limitMicro: velocityConstraints[name].measure === 'count' ? BigInt(value) : toMicro(value) }]
  })

/**
 * Evaluates every rule of a policy on one payment. `stateOf` returns the state of a counter, or 'held' when the
 * payment's pre-authorisation is already counted in it.
 */
export function evaluatePolicy(
  policy: Policy,
  facts: PaymentFacts,
  mode: Mode,
  stateOf: (demand: CounterDemand) => CounterState | 'held' | undefined,
): RuleResult[] {
  const toResult = (rule: string, finding: Finding, counter?: string): RuleResult => ({
    policy_id: policy.id,
    policy_name: policy.name,
    policy_version: policy.version,
    rule,
    mode,
    outcome: applyMode(finding.verdict, mode),
    ...finding,
    ...(counter !== undefined && { counter }),
  })
  const statelessFindings = [
    ...evaluateConstraints(policy.constraints, facts),
    ...evaluateRuleList(policy.rules, facts),
  ]
  const countedResults = policyDemands(policy, facts, mode).flatMap((demand) => {
    const state = stateOf(demand)
    return state === undefined ? [] : [toResult(demand.rule, evaluateDemand(demand, state, facts.at), demand.scope)]
  })
  return [...statelessFindings.map(({ rule, finding }) => toResult(rule, finding)), ...countedResults]
}
