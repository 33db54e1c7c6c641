import type { Clock } from '../../platform/clock.ts'

/**
 * A circuit breaker for one provider. After several failures in a row it opens, so that callers go to the fallback at
 * once instead of waiting for a provider that is down; after a pause one call may try again, and its outcome decides.
 */
export type Breaker = {
  /** May a call go out now? When the pause is over this lets exactly one through until its outcome is told. */
  admits(): boolean
  succeeded(): void
  failed(): void
  /** A call that was let through and ended without telling anything about the provider. */
  undecided(): void
}

export function createBreaker(deps: { clock: Clock; failures: number; coolDownMs: number }): Breaker {
  let failures = 0
  let openUntil = 0
  let probing = false
  const isOpen = () => failures >= deps.failures

  return {
    admits() {
      if (!isOpen()) return true
      if (probing || deps.clock.now().getTime() < openUntil) return false
      probing = true
      return true
    },
    succeeded() {
      failures = 0
      probing = false
    },
    failed() {
      failures = Math.min(failures + 1, deps.failures)
      probing = false
      if (isOpen()) openUntil = deps.clock.now().getTime() + deps.coolDownMs
    },
    undecided() {
      probing = false
    },
  }
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000

/** How long to wait before attempt `attempt` (from 1): what the provider asked for, else doubling from a quarter second. */
export function pauseBefore(attempt: number, retryAfterMs: number | undefined): number {
  return Math.min(LONGEST_PAUSE_MS, retryAfterMs ?? FIRST_PAUSE_MS * 2 ** (attempt - 1))
}

/** Waits, unless the run ends first; says whether the wait was completed. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false)
  return new Promise((resolve) => {
    const done = (completed: boolean) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve(completed)
    }
    const stop = () => done(false)
    const timer = setTimeout(() => done(true), milliseconds)
    signal.addEventListener('abort', stop, { once: true })
  })
}
