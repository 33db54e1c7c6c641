/** Leaves a server alone for a while after it has failed several times in a row; then one call finds out how it is. */
import type { Clock } from '../../platform/clock.ts'

export type Breaker = { allows(): boolean; succeeded(): void; failed(): void }

const FAILURES_TO_OPEN = 3
const OPEN_MS = 10_000

export function createBreaker(clock: Clock): Breaker {
  let failures = 0
  let closedUntil = 0
  return {
    allows() {
      const now = clock.now().getTime()
      if (failures < FAILURES_TO_OPEN) return true
      if (now < closedUntil) return false
      // This caller is the probe; the others wait until it has come back.
      closedUntil = now + OPEN_MS
      return true
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
      closedUntil = clock.now().getTime() + OPEN_MS
    },
  }
}
