import type { TradeGovernance } from '../governance/assess/assess-trade.ts'
import type { RuleResult, SmallestChange } from '../governance/rules/rule-result.ts'
import type { InstrumentType } from './broker.ts'
import type { Check, RiskFacts } from './risk-facts.ts'
import { type LimitOrigin, originOf, type TradePolicy } from './trade-policies.ts'

/** Checks of the lists of the policy that the request names. */
const LIST_CHECKS: ReadonlySet<string> = new Set(['agent', 'instrument_allowed', 'merchant_allowed'])

/** Limits that one number can be raised to; the others depend on the market. */
const RAISABLE_CHECKS: ReadonlySet<string> = new Set(['approval', 'order_notional', 'daily_notional', 'leverage_cap'])

/** The checks that refused a trade or sent it to approval, as a decision lists them; what governance found is listed by itself. */
export const toCheckResults = (
  checks: readonly Check[],
  policy: TradePolicy,
  instrumentType: InstrumentType,
): RuleResult[] =>
  checks
    .filter(({ id, result }) => id !== 'governance' && result !== 'pass')
    .map((check) => {
      const { id, result, limit, actual, reason } = check
      const verdict = result === 'fail' ? 'blocked' : 'review_required'
      const origin = originOf(policy, id)
      const change = origin && smallestChange(check, origin, instrumentType)
      return {
        ...describePolicy(policy, id, origin),
        rule: id,
        mode: 'enforce',
        verdict,
        outcome: verdict,
        reason: reason ?? id,
        asked: actual,
        limit,
        ...(change && { smallest_change: change }),
      }
    })

/** The fields of a refusal that say which rule decided and what would have to be different. */
export function refusalFields(
  { smallestChanges }: Pick<TradeGovernance, 'smallestChanges'>,
  { assessment, policy, terms }: RiskFacts,
  checks: readonly Check[],
) {
  const results = toCheckResults(checks, policy, terms.type)
  const smallest_change = smallestChanges([...results, ...assessment.results])
  if (assessment.outcome === 'refused') return { ...assessment.fields, smallest_change }
  const failed = results.filter(({ outcome }) => outcome === 'blocked')
  const deciding = failed.find(({ rule }) => originOf(policy, rule) !== undefined) ?? failed[0]
  if (deciding === undefined) return {}
  const rule = originOf(policy, deciding.rule)?.constraint ?? deciding.rule
  const decided_by = { policy_id: deciding.policy_id, budget_id: null, mandate_id: null, rule }
  return { decided_by, smallest_change }
}

function describePolicy(policy: TradePolicy, checkId: string, origin: LimitOrigin | undefined) {
  if (LIST_CHECKS.has(checkId) && policy.source === 'named')
    return { policy_id: policy.policyId, policy_name: policy.name }
  if (origin === undefined) return { policy_id: null }
  return { policy_id: origin.source === 'policy' ? origin.policyId : null, policy_name: origin.name }
}

function smallestChange(
  { id, limit, actual }: Check,
  { source, constraint }: LimitOrigin,
  instrumentType: InstrumentType,
): SmallestChange | undefined {
  if (!RAISABLE_CHECKS.has(id) || typeof limit !== 'number') return undefined
  if (source === 'policy') {
    const text = `Raise ${constraint} to ${actual}.`
    return { text, path: `constraints.${constraint}`, from: limit, to: actual }
  }
  const where = `your default for ${instrumentType} trades to ${actual} (PUT /api/rh/policies/${instrumentType})`
  return {
    text: `Set ${constraint} of ${where}.`,
    path: `rh_policies.${instrumentType}.constraints.${constraint}`,
    from: limit,
    to: actual,
  }
}
