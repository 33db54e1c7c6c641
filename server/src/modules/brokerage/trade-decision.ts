import type { RuleResult } from '../governance/rules/rule-result.ts'
import type { Check } from './risk-facts.ts'
import type { TradePolicy } from './trade-policies.ts'

/** Checks of the market, the account or the request, which no policy can change. */
const CHECKS_WITHOUT_POLICY = new Set([
  'kill_switch',
  'duplicate_client_order_id',
  'halt',
  'session',
  'buying_power',
  'holding',
  'marketable',
  'earn_lock',
])

/** The checks that refused a trade or sent it to approval, as a decision lists them; what governance found is listed by itself. */
export const toCheckResults = (
  checks: readonly Check[],
  policy: Pick<TradePolicy, 'policyId' | 'name'>,
): RuleResult[] =>
  checks
    .filter(({ id, result }) => id !== 'governance' && result !== 'pass')
    .map(({ id, result, limit, actual, reason }) => {
      const verdict = result === 'fail' ? 'blocked' : 'review_required'
      return {
        ...(CHECKS_WITHOUT_POLICY.has(id)
          ? { policy_id: null }
          : { policy_id: policy.policyId, policy_name: policy.name }),
        rule: id,
        mode: 'enforce',
        verdict,
        outcome: verdict,
        reason: reason ?? id,
        asked: actual,
        limit,
      }
    })
