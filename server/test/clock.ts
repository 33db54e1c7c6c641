import type { Clock } from '../src/platform/clock.ts'

/** A clock that changes only when a test sets or advances it. */
export type TestClock = Clock & { set(at: Date | string): void; advance(milliseconds: number): void }

export function createTestClock(start: Date | string = '2026-11-16T15:00:00.000Z'): TestClock {
  let at = new Date(start).getTime()
  return {
    now: () => new Date(at),
    set: (next) => {
      at = new Date(next).getTime()
    },
    advance: (milliseconds) => {
      at += milliseconds
    },
  }
}
