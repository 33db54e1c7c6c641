/** Calendar windows are in UTC, so every process agrees when one ends. */
export const budgetWindows = [
  'run',
  'day',
  'week',
  'month',
  'total',
  'rolling_24h',
  'rolling_7d',
  'rolling_30d',
] as const
export type BudgetWindow = (typeof budgetWindows)[number]

type CalendarWindow = 'minute' | 'day' | 'week' | 'two_weeks' | 'month' | 'quarter' | 'year'
export type Window = CalendarWindow | 'total' | RollingWindow

const MINUTE = 60_000
const HOUR = 3_600_000
const DAY = 86_400_000

/** A rolling window is counted in slices: a spend leaves it when the slice it was reserved in lies wholly outside. */
const rollingWindows = {
  rolling_24h: { length: DAY, slice: 5 * MINUTE },
  rolling_7d: { length: 7 * DAY, slice: HOUR },
  rolling_30d: { length: 30 * DAY, slice: 6 * HOUR },
} as const
export type RollingWindow = keyof typeof rollingWindows

export const isRolling = (window: Window): window is RollingWindow => Object.hasOwn(rollingWindows, window)

/** When an amount that is reserved now stops to count in a rolling window; undefined for other windows. */
export function sliceEnd(window: Window, at: Date): Date | undefined {
  if (!isRolling(window)) return undefined
  const { length, slice } = rollingWindows[window]
  return new Date((Math.floor(at.getTime() / slice) + 1) * slice + length)
}

// The Monday from which weeks and two-week windows are counted.
const FIRST_MONDAY = Date.UTC(1970, 0, 5)

/** The name of the window at a time. A hold belongs to the window it was taken in, even if it ends later. */
export const periodOf = (window: Window, at: Date): string =>
  window === 'total' || isRolling(window) ? window : `${window}:${startOf(window, at).toISOString().slice(0, 16)}`

/** When the window ends; null for `total` and rolling windows, which never end at once. */
export function endOf(window: Window, at: Date): Date | null {
  if (window === 'total' || isRolling(window)) return null
  const start = startOf(window, at)
  switch (window) {
    case 'minute':
      return new Date(start.getTime() + MINUTE)
    case 'day':
      return new Date(start.getTime() + DAY)
    case 'week':
      return new Date(start.getTime() + 7 * DAY)
    case 'two_weeks':
      return new Date(start.getTime() + 14 * DAY)
    case 'month':
      return addMonths(start, 1)
    case 'quarter':
      return addMonths(start, 3)
    case 'year':
      return addMonths(start, 12)
  }
}

function startOf(window: CalendarWindow, at: Date): Date {
  const time = at.getTime()
  const month = at.getUTCMonth()
  switch (window) {
    case 'minute':
      return new Date(Math.floor(time / MINUTE) * MINUTE)
    case 'day':
      return new Date(Math.floor(time / DAY) * DAY)
    case 'week':
      return startOfPeriod(FIRST_MONDAY, 7 * DAY, time)
    case 'two_weeks':
      return startOfPeriod(FIRST_MONDAY, 14 * DAY, time)
    case 'month':
      return new Date(Date.UTC(at.getUTCFullYear(), month, 1))
    case 'quarter':
      return new Date(Date.UTC(at.getUTCFullYear(), month - (month % 3), 1))
    case 'year':
      return new Date(Date.UTC(at.getUTCFullYear(), 0, 1))
  }
}

const startOfPeriod = (first: number, length: number, time: number) =>
  new Date(first + Math.floor((time - first) / length) * length)

const addMonths = (start: Date, months: number) =>
  new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + months, 1))
