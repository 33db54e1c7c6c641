import { routeHref } from '../route.ts'
import { readAt, setAt, toPath } from '../schema/json-path.ts'
import { isObject } from '../schema/json-schema.ts'
import type { PolicyDraft } from './policy-draft.ts'
import { describeRule } from './rule-fields.ts'

export type SmallestChange = {
  text: string
  path?: string
  from?: unknown
  to?: unknown
  add?: string
  remove?: string
  retry_at?: string
}

/** The result of one rule of a refusal, as `policy_results` has it. */
export type RefusingResult = {
  policy_id: string | null
  policy_name?: string
  policy_version?: number
  budget_id?: string
  mandate_id?: string
  mandate_name?: string
  rule: string
  outcome: string
  reason: string
  asked?: unknown
  smallest_change?: SmallestChange
}

/** The results that refused, in the order of the decision. Their position names them in an address. */
export const refusingResults = (results: readonly unknown[]): RefusingResult[] =>
  (results as RefusingResult[]).filter(({ outcome }) => outcome === 'blocked' || outcome === 'review_required')

export type DraftChange = {
  draft: PolicyDraft
  /** What is changed, in words. */
  words: string
}

/** The draft with exactly the smallest change made, or why that cannot be done here. */
export function applySmallestChange(
  draft: PolicyDraft,
  { smallest_change: change }: Pick<RefusingResult, 'smallest_change'>,
): DraftChange | { reason: string } {
  if (!change?.path) return { reason: change?.text ?? 'No change of the policy would have allowed it.' }
  const path = toPath(change.path)
  const isInPolicy = (path[0] === 'constraints' || path[0] === 'rules') && path.length > 1
  if (!isInPolicy) return { reason: change.text }
  const name = change.path.replace(/^constraints\./, '')
  const current = readAt(draft, path)
  if (change.add !== undefined) {
    if (!Array.isArray(current)) return { reason: `${name} is no list any more.` }
    if (current.includes(change.add)) return { reason: `${name} has '${change.add}' already.` }
    return { draft: setAt(draft, path, [...current, change.add]), words: `'${change.add}' is added to ${name}.` }
  }
  if (change.remove !== undefined) {
    if (!Array.isArray(current) || !current.includes(change.remove))
      return { reason: `${name} does not have '${change.remove}' any more.` }
    const rest = current.filter((entry) => entry !== change.remove)
    return { draft: setAt(draft, path, rest), words: `'${change.remove}' is removed from ${name}.` }
  }
  if (change.to !== undefined) {
    if (current === undefined) return { reason: `The policy has no ${name} any more.` }
    if (typeof current === 'number' && typeof change.to === 'number' && typeof change.from === 'number') {
      const isRaise = change.to > change.from
      if (isRaise ? current >= change.to : current <= change.to) return { reason: `${name} is ${current} already.` }
    }
    const from = JSON.stringify(current)
    return { draft: setAt(draft, path, change.to), words: `${name} goes from ${from} to ${JSON.stringify(change.to)}.` }
  }
  // A deny or review rule that held: the only change of the policy is to take the rule away.
  if (path.length === 2 && path[0] === 'rules' && isObject(current))
    return { draft: setAt(draft, path, undefined), words: `The rule “${describeRule(current)}” is removed.` }
  return { reason: change.text }
}

/** Where the change of a result can be made, with the form filled in; undefined when it is no change of a rule. */
export function changeHref(decisionId: string, position: number, result: RefusingResult): string | undefined {
  const change = result.smallest_change
  if (!change) return undefined
  const query = { decision: decisionId, rule: String(position) }
  if (result.policy_id !== null && change.path === 'mandate_id') return routeHref(['account', 'mandates', 'new'], query)
  if (result.policy_id !== null && /^(constraints|rules)\b./.test(change.path ?? ''))
    return routeHref(['account', 'policies', result.policy_id, 'edit'], query)
  if (result.budget_id !== undefined && change.to !== undefined)
    return routeHref(['account', 'budgets', result.budget_id], { limit: String(change.to), decision: decisionId })
  if (result.mandate_id !== undefined && result.rule !== 'mandate')
    return routeHref(['account', 'mandates', 'new'], { ...query, like: result.mandate_id })
  return undefined
}
