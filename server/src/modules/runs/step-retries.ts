import { setTimeout as sleep } from 'node:timers/promises'
import { type Step, StepRefused } from '../../platform/batch.ts'
import { isOutcomeUnknown, isUnavailable } from '../../platform/db.ts'

const RETRY_FOR_MS = 20_000
const PAUSE_MS = 250

/**
 * Repeats a step while the database restarts; otherwise the run would stay open until its deadline. A step can be
 * repeated even if its first commit succeeded and only the reply was lost. If that stays unknown to the end, the caller is
 * told so, whatever the last attempt failed with.
 */
export function withRetries<Item, Result>(
  step: Step<Item, Result>,
  { forMs = RETRY_FOR_MS, pauseMs = PAUSE_MS } = {},
): Step<Item, Result> {
  return async (item, locks, options) => {
    const deadline = performance.now() + forMs
    let unknownOutcome: unknown
    for (let repeated = options?.repeated ?? false; ; repeated = true) {
      try {
        return await step(item, locks, { ...options, repeated })
      } catch (error) {
        if (isOutcomeUnknown(error)) unknownOutcome ??= error
        if (error instanceof StepRefused) throw error
        if (!isUnavailable(error) || performance.now() > deadline) throw unknownOutcome ?? error
        await sleep(pauseMs)
      }
    }
  }
}
