import type { PaymentFacts } from '../assess/payment-facts.ts'
import type { Constraints } from './policy-constraints.ts'
import { type Rule, tagOf } from './policy-rules.ts'
import type { Finding } from './rule-result.ts'
import { type MissingField, missingAgent, missingPayee, missingPayTo, missingSession, missingTag } from './selector.ts'

/** The rules of a policy that compare a field which the payment leaves out. Without the field they would not bind it. */
export function findMissingFields(
  { constraints, rules }: { constraints: Constraints; rules: readonly Rule[] },
  facts: PaymentFacts,
): { rule: string; finding: Finding }[] {
  if (facts.kind === 'action') return []
  const constraintFields = (Object.keys(constraints) as (keyof Constraints)[]).map((name) => ({
    rule: name as string,
    missing: missingForConstraint(name, constraints, facts),
  }))
  const ruleFields = rules.map((rule, index) => ({ rule: `rules[${index}]`, missing: missingForRule(rule, facts) }))
  return [...constraintFields, ...ruleFields].flatMap(({ rule, missing }) =>
    missing ? [{ rule, finding: missingFieldFinding(missing) }] : [],
  )
}

function missingForConstraint(
  name: keyof Constraints,
  constraints: Constraints,
  facts: PaymentFacts,
): MissingField | undefined {
  if (name === 'allowed_agents' || name === 'denied_agents') return missingAgent(facts)
  // What an allow-list does not find is refused, so it needs no host.
  if (name === 'allowed_merchants') return missingPayTo(constraints[name]!, facts)
  if (name === 'denied_merchants') return missingPayee(constraints[name]!, facts)
  return undefined
}

function missingForRule({ field, value, effect }: Rule, facts: PaymentFacts): MissingField | undefined {
  const tag = tagOf(field)
  if (tag !== undefined) return missingTag(tag, facts)
  switch (field) {
    case 'agent_id':
      return missingAgent(facts)
    case 'spender':
    case 'team':
      return facts[field] === null ? { missing: field } : undefined
    case 'merchant':
      return (effect === 'allow' ? missingPayTo : missingPayee)([value].flat(), facts)
    case 'session_id':
      return missingSession(facts)
    default:
      return undefined
  }
}

/** What a rule says of a payment that leaves out the field by which the rule selects. */
export const missingFieldFinding = ({ missing }: MissingField): Finding => ({
  verdict: 'blocked',
  reason: `This rule selects by ${missing}, which the request leaves out.`,
  asked: null,
  field_required: missing,
  smallest_change: {
    text: missing === 'team' ? 'Use a key that is bound to a team.' : `Send ${missing}.`,
    path: missing,
  },
})
