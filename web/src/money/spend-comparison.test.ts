import { expect, test } from 'vitest'
import { addDays, daysBetween, endOfDay, startOfDay, toDay } from './days.ts'
import {
  compareDays,
  compareGroups,
  daysOf,
  describePeriod,
  lastDays,
  periodBefore,
  readPeriod,
  runsHref,
  type SpendGroup,
  toRange,
} from './spend-comparison.ts'

const group = (names: Partial<SpendGroup>, amount: number, count = 1): SpendGroup => ({
  amount: String(amount),
  amount_usdc: amount / 1e6,
  count,
  reported: '0',
  reported_usdc: 0,
  notional: '0',
  notional_usdc: 0,
  trades: 0,
  ...names,
})

test('days go by the calendar', () => {
  expect(addDays('2026-03-01', -1)).toBe('2026-02-28')
  expect(daysBetween('2026-10-24', '2026-10-26')).toBe(2)
  expect(toDay(new Date(2026, 0, 5, 23))).toBe('2026-01-05')
  expect([startOfDay('2026-02-30x'), startOfDay(undefined), endOfDay('')]).toEqual([undefined, undefined, undefined])
  expect(endOfDay('2026-01-05')!.getTime() - startOfDay('2026-01-05')!.getTime()).toBe(86_399_999)
})

test('the period before has as many days and ends the day before', () => {
  const period = lastDays(new Date(2026, 10, 16, 12), 7)
  expect(period).toEqual({ from: '2026-11-10', to: '2026-11-16' })
  expect(periodBefore(period)).toEqual({ from: '2026-11-03', to: '2026-11-09' })
  expect(periodBefore({ from: '2026-11-16', to: '2026-11-16' })).toEqual({ from: '2026-11-15', to: '2026-11-15' })
  expect(daysOf(period)).toHaveLength(7)
  const { from, to } = toRange(period)
  expect(new Date(from)).toEqual(new Date(2026, 10, 10))
  expect(new Date(to)).toEqual(new Date(2026, 10, 17))
})

test('a period of the address is taken when both of its days are days, in this order', () => {
  const read = (text: string) => readPeriod(new URLSearchParams(text), 'from', 'to')
  expect(read('from=2026-11-01&to=2026-11-02')).toEqual({ from: '2026-11-01', to: '2026-11-02' })
  for (const text of ['', 'from=2026-11-01', 'from=2026-11-02&to=2026-11-01', 'from=x&to=2026-11-01'])
    expect(read(text)).toBeUndefined()
})

test('rows compare a name of both periods, and know the part that was paid for runs', () => {
  const rows = compareGroups(
    'spender',
    [
      group({ spender: 'ann', rail: 'wallet' }, 10_000, 1),
      group({ spender: 'ann', rail: 'external', reported: '5' }, 5),
      group({ spender: 'ann', rail: 'x402' }, 20_000, 2),
      group({ spender: 'trader', rail: 'paper' }, 0, 0),
    ],
    [group({ spender: 'ann', rail: 'wallet' }, 60_000), group({ spender: null, rail: 'wallet' }, 7)],
  )
  expect(rows).toEqual([
    { name: 'ann', nowMicro: 30_005n, beforeMicro: 60_000n, runsMicro: 30_000n, runs: 3, reportedMicro: 5n },
    { name: null, nowMicro: 0n, beforeMicro: 7n, runsMicro: 0n, runs: 0, reportedMicro: 0n },
  ])
})

test('days are compared by their place, and a day without spend is a row', () => {
  const rows = compareDays(
    { from: '2026-11-01', to: '2026-11-02' },
    [group({ day: '2026-11-02', rail: 'wallet' }, 10)],
    { from: '2026-10-30', to: '2026-10-31' },
    [group({ day: '2026-10-30', rail: 'external' }, 4)],
  )
  expect(rows.map(({ name, nowMicro, beforeMicro, runs }) => [name, nowMicro, beforeMicro, runs])).toEqual([
    ['2026-11-02', 10n, 0n, 1],
    ['2026-11-01', 0n, 4n, 0],
  ])
})

test('a row leads to its runs where the list can be narrowed to them', () => {
  const period = { from: '2026-11-01', to: '2026-11-30' }
  const row = { name: 'a', nowMicro: 1n, beforeMicro: 0n, runsMicro: 1n, runs: 1, reportedMicro: 0n }
  const range = 'from=2026-11-01&to=2026-11-30&spent=true'
  expect(runsHref(row, 'spender', '', period)).toBe(`#/account/runs?spender=a&${range}`)
  expect(runsHref(row, 'tag', 'project', period)).toBe(`#/account/runs?tag=project%3Aa&${range}`)
  expect(runsHref({ ...row, name: 'countersign' }, 'merchant', '', period)).toBe(`#/account/runs?${range}`)
  expect(runsHref({ ...row, name: '2026-11-05' }, 'day', '', period)).toBe(
    '#/account/runs?from=2026-11-05&to=2026-11-05&spent=true',
  )
  for (const other of [
    { ...row, runs: 0 },
    { ...row, name: null },
  ])
    expect(runsHref(other, 'team', '', period)).toBeUndefined()
  expect(runsHref({ ...row, name: 'shop' }, 'merchant', '', period)).toBeUndefined()
})

test('days of UTC, as the control tower counts them, stay days of UTC in the request, the period before and the runs behind a row', () => {
  const period = readPeriod(new URLSearchParams('from=2026-11-01&to=2026-11-02&zone=utc'), 'from', 'to')!
  expect(toRange(period)).toEqual({ from: '2026-11-01T00:00:00.000Z', to: '2026-11-03T00:00:00.000Z' })
  expect(toRange(periodBefore(period)).to).toBe('2026-11-01T00:00:00.000Z')
  expect(describePeriod(period)).toBe('2026-11-01 to 2026-11-02 UTC')
  const row = { name: 'ada', nowMicro: 1n, beforeMicro: 0n, runsMicro: 1n, runs: 1, reportedMicro: 0n }
  const link = new URLSearchParams(runsHref(row, 'spender', '', period)!.split('?')[1])
  expect(Object.fromEntries(link)).toEqual({
    spender: 'ada',
    since: '2026-11-01T00:00:00.000Z',
    until: '2026-11-02T23:59:59.999Z',
    spent: 'true',
  })
})
