export type Mode = 'enforce' | 'warn' | 'shadow'
/** The result of a rule, before its mode is applied. */
export type Verdict = 'pass' | 'blocked' | 'review_required'
/** The result after the mode is applied: `warn` turns a refusal into a warning, `shadow` into a pass. */
export type Outcome = Verdict | 'warning'

/** The smallest change with which the rule would pass. A list is changed by one entry: `add` or `remove`. */
export type SmallestChange = {
  text: string
  path?: string
  from?: unknown
  to?: unknown
  add?: string
  remove?: string
  retry_at?: string
}

/** The verdict of one rule, with the requested value, the limit, and the change that would pass. */
export type Finding = {
  verdict: Verdict
  reason: string
  asked?: unknown
  /** Of a list only the number of its entries. */
  limit?: unknown
  /** The entry of a list that the payment matched. */
  matched?: string
  used?: unknown
  /** The field that the request has to send, because the rule selects by it. */
  field_required?: string
  smallest_change?: SmallestChange
}

/** A finding with its source: a policy, a budget, a mandate, or the request itself. */
export type RuleResult = Finding & {
  policy_id: string | null
  policy_name?: string
  policy_version?: number
  budget_id?: string
  mandate_id?: string
  mandate_name?: string
  rule: string
  mode: Mode
  outcome: Outcome
  /** The scope of the counter, for counted rules. */
  counter?: string
  /** The approval or override that allowed it to pass. */
  granted_by?: string
  /** How many results this one stands for, when not all of them are listed. */
  count?: number
}

export function applyMode(verdict: Verdict, mode: Mode): Outcome {
  if (verdict === 'pass' || mode === 'shadow') return 'pass'
  return mode === 'warn' ? 'warning' : verdict
}

const strictness: Record<Mode, number> = { shadow: 0, warn: 1, enforce: 2 }

/** A request can make a policy's mode stricter, never weaker. */
export const stricterMode = (policyMode: Mode, requestedMode: Mode | undefined): Mode =>
  requestedMode !== undefined && strictness[requestedMode] > strictness[policyMode] ? requestedMode : policyMode

/** Deny wins over review, review over a warning. */
export function worstOutcome(results: readonly Pick<RuleResult, 'outcome'>[]): Outcome {
  const order: Outcome[] = ['blocked', 'review_required', 'warning']
  return order.find((outcome) => results.some((result) => result.outcome === outcome)) ?? 'pass'
}

export const policyIds = (results: readonly RuleResult[]): string[] => [
  ...new Set(results.flatMap((result) => (result.policy_id === null ? [] : [result.policy_id]))),
]
