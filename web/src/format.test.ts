import { expect, test } from 'vitest'
import {
  formatCount,
  formatDuration,
  formatLocalTime,
  formatMilliseconds,
  formatPercent,
  formatRelativeTime,
  formatSigned,
  formatTime,
  formatUsdc,
  NO_VALUE,
} from './format.ts'

test('amounts show every micro-USDC and no more', () => {
  expect(formatUsdc(0.000001)).toBe('0.000001 USDC')
  expect(formatUsdc(1234567.5)).toBe('1,234,567.5 USDC')
  expect(formatUsdc(0.1 + 0.2)).toBe('0.3 USDC')
})

test('a missing figure is a dash, and zero is not missing', () => {
  expect([formatPercent(null), formatMilliseconds(null), formatDuration(null)]).toEqual([NO_VALUE, NO_VALUE, NO_VALUE])
  expect([formatPercent(0), formatMilliseconds(0), formatDuration(0)]).toEqual(['0.0 %', '0 ms', '0 s'])
})

test('shares are shown as percent, counts and milliseconds with separators', () => {
  expect(formatPercent(0.98765)).toBe('98.8 %')
  expect(formatCount(12345)).toBe('12,345')
  expect(formatMilliseconds(1234.6)).toBe('1,235 ms')
})

test('only positive figures get a plus sign', () => {
  expect([formatSigned(1.5), formatSigned(0), formatSigned(-1.5), formatSigned(2.6, 0)]).toEqual([
    '+1.50',
    '0.00',
    '-1.50',
    '+3',
  ])
})

test('the exact time is in UTC without fractions of a second', () => {
  expect(formatTime('2026-11-15T12:30:45.123Z')).toBe('2026-11-15 12:30:45 UTC')
  expect(formatTime('2026-11-15T12:30:45Z')).toBe('2026-11-15 12:30:45 UTC')
})

test('a duration changes its unit with its length', () => {
  expect([119, 120, 7199, 7200, 172_799, 172_800].map(formatDuration)).toEqual([
    '119 s',
    '2 min',
    '120 min',
    '2 h',
    '48 h',
    '2 days',
  ])
})

test('a time is shown where the reader is, and what is no time as it is', () => {
  expect(formatLocalTime('2026-11-15T23:30:45.123Z', 'Europe/Berlin')).toBe('16 Nov 2026, 00:30')
  expect(formatLocalTime('2026-11-15T23:30:45.123Z', 'America/New_York')).toBe('15 Nov 2026, 18:30')
  expect(formatLocalTime('<b>never</b>')).toBe('<b>never</b>')
})

test('a relative time is in the largest unit that fits, before and after now', () => {
  const at = '2026-11-15T12:00:00Z'
  const after = (seconds: number) => formatRelativeTime(at, Date.parse(at) + seconds * 1000)
  expect([59, 60, 3599, 3600, 86_399, 86_400, 5_184_000].map(after)).toEqual([
    'just now',
    '1 min. ago',
    '59 min. ago',
    '1 hr. ago',
    '23 hr. ago',
    '1 day ago',
    '2 mo. ago',
  ])
  expect([-5, -30, -60, -7200].map(after)).toEqual(['just now', 'in less than a minute', 'in 1 min.', 'in 2 hr.'])
  expect(formatRelativeTime('never', 0)).toBe('')
})
