export type Mode = 'enforce' | 'warn' | 'shadow'
/** What a rule says by itself. */
export type Verdict = 'pass' | 'blocked' | 'review_required'
/** What follows from it: a rule that only warns cannot stop anything, one in the shadow is not even heard. */
export type Outcome = Verdict | 'warning'

/** The least that would have to be different for the rule to let this pass. */
export type SmallestChange = { text: string; path?: string; from?: unknown; to?: unknown; retry_at?: string }

/** What one rule found: what was asked, what the limit was, and what would have changed its mind. */
export type Finding = {
  verdict: Verdict
  reason: string
  asked?: unknown
  limit?: unknown
  used?: unknown
  smallest_change?: SmallestChange
}

/** A finding with where it came from: a policy, a budget, a mandate, or the request itself. */
export type RuleResult = Finding & {
  policy_id: string | null
  policy_name?: string
  policy_version?: number
  budget_id?: string
  mandate_id?: string
  rule: string
  mode: Mode
  outcome: Outcome
  /** The counter that decided, where one did. */
  counter?: string
  /** The approval or override by which it passed after all. */
  granted_by?: string
}

export function applyMode(verdict: Verdict, mode: Mode): Outcome {
  if (verdict === 'pass' || mode === 'shadow') return 'pass'
  return mode === 'warn' ? 'warning' : verdict
}

const strictness: Record<Mode, number> = { shadow: 0, warn: 1, enforce: 2 }

/** A request may ask to be judged more strictly than the tenant's rules would, never less. */
export const stricterMode = (own: Mode, wished: Mode | undefined): Mode =>
  wished !== undefined && strictness[wished] > strictness[own] ? wished : own

/** Deny wins, then review, then a warning. */
export function worstOutcome(results: readonly Pick<RuleResult, 'outcome'>[]): Outcome {
  const order: Outcome[] = ['blocked', 'review_required', 'warning']
  return order.find((outcome) => results.some((result) => result.outcome === outcome)) ?? 'pass'
}

export const policyIds = (results: readonly RuleResult[]): string[] => [
  ...new Set(results.flatMap((result) => (result.policy_id === null ? [] : [result.policy_id]))),
]
