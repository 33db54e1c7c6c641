export const MINUTE = 60
const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

const tickIntervals = [
  ...[1, 5, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 7, 14, 28, 91, 365].map((days) => days * DAY),
]

/** Tick intervals of the time axis in seconds, none finer than the data. */
export const selectTickIntervals = (step: number): number[] => tickIntervals.filter((interval) => interval >= step)

/** The distance between data points in seconds; a day when there are fewer than two. */
export const secondsBetweenPoints = ([first, second]: string[]): number =>
  first && second ? (Date.parse(second) - Date.parse(first)) / 1000 : DAY
