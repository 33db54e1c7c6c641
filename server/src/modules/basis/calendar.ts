import specialSessions from '../../../data/basis/nyse-special-sessions.json' with { type: 'json' }

/**
 * The trading calendar of the New York Stock Exchange from 1990 on: rules by year, and a file of days that follow no rule.
 * A day is the text `YYYY-MM-DD` in New York, because the exchange announces its days that way.
 */
export type MarketState = 'open' | 'closed' | 'holiday'

export type Session = { date: string; open: Date; close: Date; early: boolean }

const DAY_MS = 86_400_000
const REGULAR_OPEN = '09:30'
const REGULAR_CLOSE = '16:00'
const EARLY_CLOSE = '13:00'
/** From this year on early closes follow the rules below; earlier ones are listed in the file. */
const EARLY_CLOSE_RULES_FROM = 2013
/** The longest closure since 1990 was a week, so two weeks without a session mean that the calendar is wrong. */
const SEARCH_DAYS = 14

const closures = new Set(specialSessions.closures.map((day) => day.date))
const earlyCloses = new Map(specialSessions.early_closes.map((day) => [day.date, day.close]))
const lateOpens = new Map(specialSessions.late_opens.map((day) => [day.date, day.open]))

/** Whether the exchange trades at this instant. A holiday lasts the whole New York day; the closing time itself is closed. */
export function marketState(at: Date): MarketState {
  const date = newYorkDate(at)
  if (isHoliday(date)) return 'holiday'
  const session = sessionOn(date)
  return session && at >= session.open && at < session.close ? 'open' : 'closed'
}

/** The session of a New York day, or undefined on weekends and holidays. */
export function sessionOn(date: string): Session | undefined {
  if (isWeekend(date) || isHoliday(date)) return undefined
  const closeTime = earlyCloses.get(date) ?? (closesEarlyByRule(date) ? EARLY_CLOSE : REGULAR_CLOSE)
  return {
    date,
    open: newYorkInstant(date, lateOpens.get(date) ?? REGULAR_OPEN),
    close: newYorkInstant(date, closeTime),
    early: closeTime !== REGULAR_CLOSE,
  }
}

/** The first opening after this instant; during a session, the opening of the next session. */
export function nextOpen(at: Date): Date {
  return findSession(newYorkDate(at), 1, (session) => session.open > at).open
}

/** The last session that has opened by this instant, running or over. */
export function lastSession(at: Date): Session {
  return findSession(newYorkDate(at), -1, (session) => session.open <= at)
}

/** The last session that has closed by this instant. */
export function lastClosedSession(at: Date): Session {
  return findSession(newYorkDate(at), -1, (session) => session.close <= at)
}

export function isHoliday(date: string): boolean {
  return !isWeekend(date) && (closures.has(date) || holidaysOf(Number(date.slice(0, 4))).has(date))
}

function findSession(from: string, step: 1 | -1, matches: (session: Session) => boolean): Session {
  for (let days = 0; days <= SEARCH_DAYS; days += 1) {
    const session = sessionOn(addDays(from, step * days))
    if (session && matches(session)) return session
  }
  throw new RangeError(`No session of the exchange within ${SEARCH_DAYS} days of ${from}.`)
}

const holidaysByYear = new Map<number, ReadonlySet<string>>()

function holidaysOf(year: number): ReadonlySet<string> {
  const cached = holidaysByYear.get(year)
  if (cached) return cached
  const days = [
    sundayToMonday(day(year, 1, 1)),
    nthWeekday(year, 2, MONDAY, 3),
    addDays(easterSunday(year), -2),
    lastMondayOfMay(year),
    nearestWeekday(day(year, 7, 4)),
    nthWeekday(year, 9, MONDAY, 1),
    thanksgiving(year),
    nearestWeekday(day(year, 12, 25)),
  ]
  if (year >= 1998) days.push(nthWeekday(year, 1, MONDAY, 3))
  if (year >= 2022) days.push(nearestWeekday(day(year, 6, 19)))
  const holidays = new Set(days)
  holidaysByYear.set(year, holidays)
  return holidays
}

function closesEarlyByRule(date: string): boolean {
  const year = Number(date.slice(0, 4))
  if (year < EARLY_CLOSE_RULES_FROM) return false
  if (date === addDays(thanksgiving(year), 1)) return true
  // Both days are sessions only when they fall on a weekday; a Friday Christmas Eve or 3 July is itself the holiday,
  // and before a Monday holiday they are a Sunday.
  return date === day(year, 12, 24) || date === day(year, 7, 3)
}

const SUNDAY = 0
const MONDAY = 1
const THURSDAY = 4
const SATURDAY = 6

const day = (year: number, month: number, dayOfMonth: number) =>
  `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(dayOfMonth).padStart(2, '0')}`

/** Days are counted in UTC, where each has 24 hours; daylight saving matters only when a day is converted to an instant. */
const weekday = (date: string) => new Date(`${date}T00:00:00Z`).getUTCDay()

const isWeekend = (date: string) => weekday(date) === SATURDAY || weekday(date) === SUNDAY

const addDays = (date: string, days: number) =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)

const sundayToMonday = (date: string) => (weekday(date) === SUNDAY ? addDays(date, 1) : date)

const nearestWeekday = (date: string) => (weekday(date) === SATURDAY ? addDays(date, -1) : sundayToMonday(date))

const thanksgiving = (year: number) => nthWeekday(year, 11, THURSDAY, 4)

function nthWeekday(year: number, month: number, targetWeekday: number, nth: number): string {
  const first = day(year, month, 1)
  return addDays(first, ((targetWeekday - weekday(first) + 7) % 7) + 7 * (nth - 1))
}

function lastMondayOfMay(year: number): string {
  const last = day(year, 5, 31)
  return addDays(last, -((weekday(last) - MONDAY + 7) % 7))
}

/** The Gregorian computus. */
function easterSunday(year: number): string {
  const golden = year % 19
  const century = Math.floor(year / 100)
  const yearOfCentury = year % 100
  const moonCorrection = Math.floor((8 * century + 13) / 25)
  const epact = (19 * golden + century - Math.floor(century / 4) - moonCorrection + 15) % 30
  const toSunday = (32 + 2 * (century % 4) + 2 * Math.floor(yearOfCentury / 4) - epact - (yearOfCentury % 4)) % 7
  const late = Math.floor((golden + 11 * epact + 22 * toSunday) / 451)
  const count = epact + toSunday - 7 * late + 114
  return day(year, Math.floor(count / 31), (count % 31) + 1)
}

const newYorkClock = new Intl.DateTimeFormat('en-CA', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})

function newYorkWallClock(at: Date): { date: string; asUtcMs: number } {
  const parts: Record<string, string> = {}
  for (const part of newYorkClock.formatToParts(at)) parts[part.type] = part.value
  const date = `${parts.year}-${parts.month}-${parts.day}`
  return { date, asUtcMs: Date.parse(`${date}T${parts.hour}:${parts.minute}:${parts.second}Z`) }
}

export const newYorkDate = (at: Date) => newYorkWallClock(at).date

/** The clocks change at 02:00 on a Sunday, so the offset at noon holds for every session time of the day. */
function newYorkInstant(date: string, time: string): Date {
  const noon = new Date(`${date}T12:00:00Z`)
  const offsetMs = newYorkWallClock(noon).asUtcMs - noon.getTime()
  return new Date(Date.parse(`${date}T${time}:00Z`) - offsetMs)
}
