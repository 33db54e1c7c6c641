import { type Grouping, groupings, lastDays, type Period, periodBefore, readPeriod } from './spend-comparison.ts'

const DEFAULT_TAG = 'project'

export type SpendQuestion = {
  grouping: Grouping
  tag: string
  now: Period
  /** Undefined when nothing is compared. */
  before: Period | undefined
}

/** What the address asks for; the last 30 days by spender, beside the 30 before them, when it asks for nothing. */
export function readQuestion(query: URLSearchParams, today: Date): SpendQuestion {
  const now = readPeriod(query, 'from', 'to') ?? lastDays(today)
  const compare = query.get('compare')
  const otherPeriod = compare === 'other' ? readPeriod(query, 'from2', 'to2') : undefined
  return {
    grouping: groupings.find((name) => name === query.get('group')) ?? 'spender',
    tag: query.get('tag')?.trim() || DEFAULT_TAG,
    now,
    before: compare === 'none' ? undefined : (otherPeriod ?? periodBefore(now)),
  }
}
