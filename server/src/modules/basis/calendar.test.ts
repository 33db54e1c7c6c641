import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { lastClosedSession, lastSession, marketState, nextOpen, sessionOn } from './calendar.ts'

const HOLIDAY_TABLE = new URL('../../../test/basis/testdata/nyse-full-day-holidays-since-1928.csv', import.meta.url)
const DAY_MS = 86_400_000

/** The table writes month/day/year without leading zeros. */
const tableHolidays = new Set(
  readFileSync(HOLIDAY_TABLE, 'utf8')
    .split(/\r?\n/)
    .filter((line) => /^\d+\/\d+\/\d{4}$/.test(line))
    .map((line) => {
      const [month, day, year] = line.split('/') as [string, string, string]
      return `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`
    })
    .filter((date) => date >= '1990'),
)

test('every day from 1990 to the end of the holiday table agrees with the table', () => {
  expect(tableHolidays.size).toBeGreaterThan(280)
  const differences: string[] = []
  for (let ms = Date.parse('1990-01-01'); ms <= Date.parse('2021-07-05'); ms += DAY_MS) {
    const date = new Date(ms).toISOString().slice(0, 10)
    // 16:30 UTC is 11:30 or 12:30 in New York: inside every session, also those with a late opening or an early close.
    const state = marketState(new Date(`${date}T16:30:00Z`))
    const weekend = [0, 6].includes(new Date(ms).getUTCDay())
    const expected = weekend ? 'closed' : tableHolidays.has(date) ? 'holiday' : 'open'
    if (state !== expected) differences.push(`${date}: ${state}, the table says ${expected}`)
    if (!weekend && !tableHolidays.has(date) && !sessionOn(date)) differences.push(`${date}: no session`)
  }
  expect(differences).toEqual([])
})

test.each([
  ['2026-11-16T14:29:59Z', 'closed', 'a second before the opening bell'],
  ['2026-11-16T14:30:00Z', 'open', 'the opening bell, winter'],
  ['2026-11-16T20:59:59Z', 'open', 'the last second, winter'],
  ['2026-11-16T21:00:00Z', 'closed', 'the closing bell, winter'],
  ['2026-07-15T13:30:00Z', 'open', 'the opening bell, summer'],
  ['2026-07-15T20:00:00Z', 'closed', 'the closing bell, summer'],
  ['2026-03-06T14:29:59Z', 'closed', 'the Friday before the clocks go forward'],
  ['2026-03-09T13:30:00Z', 'open', 'the Monday after the clocks went forward'],
  ['2026-10-30T13:30:00Z', 'open', 'the Friday before the clocks go back'],
  ['2026-11-02T13:30:00Z', 'closed', 'the Monday after the clocks went back'],
  ['1990-04-02T13:30:00Z', 'open', 'before 2007 summer time began in April'],
  ['2006-10-30T13:30:00Z', 'closed', 'before 2007 summer time ended in October'],
  ['2026-11-15T17:30:00Z', 'closed', 'a Sunday'],
  ['2026-11-26T17:30:00Z', 'holiday', 'Thanksgiving'],
  ['2026-11-27T04:59:59Z', 'holiday', 'Thanksgiving, late evening in New York'],
  ['2026-11-27T05:00:00Z', 'closed', 'after midnight in New York'],
  ['2026-11-27T17:59:59Z', 'open', 'the day after Thanksgiving'],
  ['2026-11-27T18:00:00Z', 'closed', 'the day after Thanksgiving, early close at 13:00'],
  ['2026-07-03T15:00:00Z', 'holiday', '4 July on a Saturday is observed on Friday'],
  ['2026-07-02T19:59:59Z', 'open', 'the Thursday before it is a full session'],
  ['2027-06-18T15:00:00Z', 'holiday', 'Juneteenth on a Saturday is observed on Friday'],
  ['2021-06-18T15:00:00Z', 'open', 'Juneteenth was not observed in 2021'],
  ['2022-06-20T15:00:00Z', 'holiday', 'Juneteenth on a Sunday is observed on Monday'],
  ['2021-12-31T20:59:59Z', 'open', 'New Year on a Saturday is not observed on Friday'],
  ['2022-01-03T15:00:00Z', 'open', 'nor on the Monday after'],
  ['1997-01-20T15:00:00Z', 'open', 'Martin Luther King Day was not observed before 1998'],
  ['1998-01-19T15:00:00Z', 'holiday', 'Martin Luther King Day is observed since 1998'],
  ['2025-01-09T15:00:00Z', 'holiday', 'day of mourning for President Carter'],
  ['2025-04-18T15:00:00Z', 'holiday', 'Good Friday'],
  ['2024-03-29T15:00:00Z', 'holiday', 'Good Friday in March'],
])('%s is %s: %s', (at, state) => {
  expect(marketState(new Date(at))).toBe(state)
})

describe('early closes', () => {
  const earlyCloseDates = (year: number) => {
    const dates: string[] = []
    for (let ms = Date.UTC(year, 0, 1); ms < Date.UTC(year + 1, 0, 1); ms += DAY_MS) {
      const session = sessionOn(new Date(ms).toISOString().slice(0, 10))
      if (session?.early) dates.push(session.date)
    }
    return dates
  }

  test.each([
    [1990, ['1990-12-24']],
    [1991, ['1991-12-24']],
    [1992, ['1992-11-27', '1992-12-24']],
    [1993, ['1993-11-26']],
    [1994, ['1994-02-11', '1994-11-25']],
    [1995, ['1995-07-03', '1995-11-24']],
    [1996, ['1996-01-08', '1996-07-05', '1996-11-29', '1996-12-24']],
    [1997, ['1997-07-03', '1997-10-27', '1997-11-28', '1997-12-24', '1997-12-26']],
    [1998, ['1998-11-27', '1998-12-24']],
    [1999, ['1999-11-26', '1999-12-31']],
    [2002, ['2002-07-05', '2002-11-29', '2002-12-24']],
    [2003, ['2003-07-03', '2003-11-28', '2003-12-24', '2003-12-26']],
    [2010, ['2010-11-26']],
    [2013, ['2013-07-03', '2013-11-29', '2013-12-24']],
    [2015, ['2015-11-27', '2015-12-24']],
    [2016, ['2016-11-25']],
    [2017, ['2017-07-03', '2017-11-24']],
    [2020, ['2020-11-27', '2020-12-24']],
    [2021, ['2021-11-26']],
    [2022, ['2022-11-25']],
    [2023, ['2023-07-03', '2023-11-24']],
    [2024, ['2024-07-03', '2024-11-29', '2024-12-24']],
    [2025, ['2025-07-03', '2025-11-28', '2025-12-24']],
    [2026, ['2026-11-27', '2026-12-24']],
    [2027, ['2027-11-26']],
    [2028, ['2028-07-03', '2028-11-24']],
    [2029, ['2029-07-03', '2029-11-23', '2029-12-24']],
    [2030, ['2030-07-03', '2030-11-29', '2030-12-24']],
  ])('in %i', (year, expected) => {
    expect(earlyCloseDates(year)).toEqual(expected)
  })

  test('the early close was at 14:00 before 1993 and is at 13:00 since', () => {
    expect(sessionOn('1992-11-27')?.close.toISOString()).toBe('1992-11-27T19:00:00.000Z')
    expect(sessionOn('1993-11-26')?.close.toISOString()).toBe('1993-11-26T18:00:00.000Z')
  })

  test('a snowstorm moved both the opening and the close', () => {
    const session = sessionOn('1996-01-08')
    expect(session?.open.toISOString()).toBe('1996-01-08T16:00:00.000Z')
    expect(session?.close.toISOString()).toBe('1996-01-08T19:00:00.000Z')
  })
})

describe('the session before and after an instant', () => {
  test.each([
    ['2026-11-16T14:29:59Z', '2026-11-16T14:30:00.000Z', 'before the opening bell: the same day'],
    ['2026-11-16T14:30:00Z', '2026-11-17T14:30:00.000Z', 'at the opening bell: the next day'],
    ['2026-11-25T22:00:00Z', '2026-11-27T14:30:00.000Z', 'over Thanksgiving'],
    ['2001-09-10T21:00:00Z', '2001-09-17T13:33:00.000Z', 'over the longest closure'],
    ['2026-03-06T22:00:00Z', '2026-03-09T13:30:00.000Z', 'over the change of the clocks'],
  ])('the next opening after %s is %s: %s', (at, open) => {
    expect(nextOpen(new Date(at)).toISOString()).toBe(open)
  })

  test('on a Sunday the last session and the last closed session are Friday’s', () => {
    const sunday = new Date('2026-11-15T12:00:00Z')
    expect(lastSession(sunday).date).toBe('2026-11-13')
    expect(lastClosedSession(sunday).close.toISOString()).toBe('2026-11-13T21:00:00.000Z')
  })

  test('during a session the last session is the current one, the last closed session the previous one', () => {
    const noon = new Date('2026-11-16T17:00:00Z')
    expect(lastSession(noon).date).toBe('2026-11-16')
    expect(lastClosedSession(noon).date).toBe('2026-11-13')
  })
})

test('an invalid date throws instead of counting as closed', () => {
  expect(() => marketState(new Date(Number.NaN))).toThrow(RangeError)
})
