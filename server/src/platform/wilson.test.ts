import { expect, test } from 'vitest'
import { wilsonInterval } from './wilson.ts'

test('without trials the interval is 0..1', () => {
  expect(wilsonInterval(0, 0)).toEqual({ low: 0, high: 1 })
})

test('the bounds are those of the published formula', () => {
  const { low, high } = wilsonInterval(0.5, 10)
  expect(low).toBeCloseTo(0.2366, 4)
  expect(high).toBeCloseTo(0.7634, 4)
})

test('with only successes or only failures the interval keeps a width and stays within 0..1', () => {
  const perfect = wilsonInterval(1, 12)
  expect(perfect.low).toBeCloseTo(0.7575, 4)
  expect(perfect.high).toBeCloseTo(1, 10)
  const failingInterval = wilsonInterval(0, 12)
  expect(failingInterval.low).toBe(0)
  expect(failingInterval.high).toBeCloseTo(0.2425, 4)
})

test('more trials narrow the interval', () => {
  const width = (total: number) => wilsonInterval(0.9, total).high - wilsonInterval(0.9, total).low
  expect(width(100)).toBeLessThan(width(10))
  expect(width(1_000)).toBeLessThan(width(100))
})
