const HOUR_MS = 3_600_000

export const startOfHour = (at: Date) => new Date(Math.floor(at.getTime() / HOUR_MS) * HOUR_MS)

/** The end of the hour in which a time is. Nothing is spent after now, and of a whole hour there are sums. */
export const endOfHour = (at: Date) => new Date(startOfHour(at).getTime() + HOUR_MS)
