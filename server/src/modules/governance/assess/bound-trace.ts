import { type RuleResult, worstOutcome } from '../rules/rule-result.ts'

/** How many results a decision lists, and how large they may be together. */
export const MAX_TRACE_RESULTS = 100
const MAX_TRACE_BYTES = 128 * 1024
/** A result is at most about 10 kB, so that so few need not be measured. */
const MAX_UNMEASURED = 8

/**
 * The results that an answer or a row lists, in their order: first those that refused (also if a grant allowed it) or warned, then those that count,
 * then the others. The last one counts those that are not listed.
 */
export function boundTrace(results: readonly RuleResult[], maxResults = MAX_TRACE_RESULTS): RuleResult[] {
  if (results.length <= Math.min(maxResults, MAX_UNMEASURED)) return [...results]
  const byRank = [...results.entries()].sort(([a, first], [b, second]) => rank(first) - rank(second) || a - b)
  const listed = new Set<number>()
  const room = results.length > maxResults ? maxResults - 1 : maxResults
  let bytes = 0
  for (const [index, result] of byRank.slice(0, room)) {
    bytes += JSON.stringify(result).length
    if (bytes > MAX_TRACE_BYTES && listed.size > 0) break
    listed.add(index)
  }
  const omitted = results.filter((_, index) => !listed.has(index))
  return [...results.filter((_, index) => listed.has(index)), ...(omitted.length > 0 ? [countOf(omitted)] : [])]
}

const rank = ({ outcome, counter, granted_by }: RuleResult): number => {
  if (outcome === 'blocked' || outcome === 'review_required' || granted_by !== undefined) return 0
  return outcome === 'warning' ? 1 : counter !== undefined ? 2 : 3
}

/** One result that stands for those that are not listed. */
function countOf(omitted: readonly RuleResult[]): RuleResult {
  const outcome = worstOutcome(omitted)
  const passed = omitted.filter((result) => result.outcome === 'pass').length
  return {
    policy_id: null,
    rule: 'not_listed',
    mode: 'enforce',
    verdict: 'pass',
    outcome,
    reason: `${omitted.length} more rules were evaluated and are not listed; ${passed} of them pass.`,
    count: omitted.length,
  }
}
