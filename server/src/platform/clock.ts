/** The one source of time. Tests pass a clock they can hold still and move. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }

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
