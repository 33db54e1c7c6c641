/** The one source of time. Tests pass a clock that stands still until they move it. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }
