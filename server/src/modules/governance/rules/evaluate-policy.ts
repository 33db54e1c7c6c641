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
import { findMissingFields, missingFieldFinding } from './required-fields.ts'
import { applyMode, type Finding, type Mode, type RuleResult } from './rule-result.ts'
import { type Selector, selects } from './selector.ts'

export const identityTypes = ['tenant', 'api_key', 'agent', 'spender', 'team', 'tag', 'merchant'] as const
export type IdentityType = (typeof identityTypes)[number]

/** The content of a policy. Its hash is part of receipts, so it includes everything that can change a verdict. */
export type PolicyContent = {
  name: string
  mode: Mode
  identity_type: IdentityType
  agent_id: string | null
  key_id: string | null
  key_prefix: string | null
  /** The spender, team, tag (`name=value`) or merchant that the policy is for. */
  identity_id?: string
  audit_trail_required: boolean
  /** Absent unless true, so that the hashes of older policies stay the same. */
  selectable?: true
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

/** Which payments the policy is for. */
export function policySelector({ identity_type, agent_id, identity_id, keyIds }: Policy): Selector {
  switch (identity_type) {
    case 'tenant':
      return { type: 'tenant' }
    case 'api_key':
      return { type: 'key', keyIds }
    case 'agent':
      return { type: 'agent', id: agent_id! }
    default:
      return { type: identity_type, id: identity_id! }
  }
}

/** Whether the policy applies to the payment. */
export const appliesTo = (policy: Policy, facts: PaymentFacts): boolean =>
  selects(policySelector(policy), facts) === true

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
  const missing = new Map(findMissingFields(policy, facts).map((field) => [field.rule, field]))
  const findings = [...evaluateConstraints(policy.constraints, facts), ...evaluateRuleList(policy.rules, facts)]
  const evaluatedRules = new Set(findings.map(({ rule }) => rule))
  const statelessFindings = [
    ...findings.map((finding) => missing.get(finding.rule) ?? finding),
    ...[...missing.values()].filter(({ rule }) => !evaluatedRules.has(rule)),
  ]
  const countedResults = policyDemands(policy, facts, mode).flatMap((demand) => {
    const state = stateOf(demand)
    return state === undefined
      ? []
      : [policyResult(policy, mode, demand.rule, evaluateDemand(demand, state, facts.at), demand.scope)]
  })
  return [...statelessFindings.map(({ rule, finding }) => policyResult(policy, mode, rule, finding)), ...countedResults]
}

/** The result when the payment leaves out the field that would tell whether the policy is for it. */
export const unselectedResult = (policy: Policy, mode: Mode, missing: string): RuleResult =>
  policyResult(policy, mode, 'identity', missingFieldFinding({ missing }))

const policyResult = (policy: Policy, mode: Mode, rule: string, finding: Finding, counter?: string): RuleResult => ({
  policy_id: policy.id,
  policy_name: policy.name,
  policy_version: policy.version,
  rule,
  mode,
  outcome: applyMode(finding.verdict, mode),
  ...finding,
  ...(counter !== undefined && { counter }),
})
