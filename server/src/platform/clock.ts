/** The one source of time. Tests pass a clock that they set themselves. */
export type Clock = { now(): Date }

export const systemClock: Clock = { now: () => new Date() }
