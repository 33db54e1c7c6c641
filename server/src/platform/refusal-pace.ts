import { setTimeout as sleep } from 'node:timers/promises'

const INTERVAL_MS = 10
/** So many refusals in a row are given at once. */
const BURST = 50
const MAX_HOLD_MS = 1_000
const MAX_SUBJECTS = 10_000

/**
 * Holds back the refusals of a caller that goes on after its limit: fifty are given at once, then a hundred a second, and
 * none is held for more than a second. A flood of refusals would otherwise take the CPU that others wait for.
 */
export function createRefusalPace(hold: (ms: number) => Promise<unknown> = sleep): (subject: string) => Promise<void> {
  /** When the next refusal of a subject is due. */
  const dueAt = new Map<string, number>()
  return async (subject) => {
    const now = performance.now()
    const due = Math.max(dueAt.get(subject) ?? 0, now)
    const holdMs = Math.min(due - now - BURST * INTERVAL_MS, MAX_HOLD_MS)
    dueAt.delete(subject)
    dueAt.set(subject, Math.min(due + INTERVAL_MS, now + BURST * INTERVAL_MS + MAX_HOLD_MS))
    if (dueAt.size > MAX_SUBJECTS) dueAt.delete(dueAt.keys().next().value!)
    if (holdMs >= 0) await hold(Math.max(1, holdMs))
  }
}
