import { expect, test } from 'vitest'
import { formatChange, formatDifference, formatMicro, sumMicro, toDecimal, toMicro } from './usdc-sum.ts'

test('sums are exact where those of fractions are not', () => {
  const amounts = [0.1, 0.2, 0.000001]
  expect(0.1 + 0.2).not.toBe(0.3)
  expect(sumMicro(amounts.map(toMicro))).toBe(300_001n)
  expect(sumMicro(['9007199254740993', '1'].map(toMicro))).toBe(9_007_199_254_740_994n)
  expect(sumMicro([])).toBe(0n)
})

test('an amount is shown with every digit that it has, and no other', () => {
  expect(formatMicro(1_234_500_000n)).toBe('1,234.5')
  expect(formatMicro(1n)).toBe('0.000001')
  expect(formatMicro(-10_000n)).toBe('−0.01')
  expect(formatMicro(0n)).toBe('0')
  expect(toDecimal(-1_234_500_000n)).toBe('-1234.5')
  expect([formatDifference(10_000n), formatDifference(-10_000n)]).toEqual(['+0.01 USDC', '−0.01 USDC'])
})

test('a change is in percent of what was before, if there was anything', () => {
  expect(formatChange(100n, 150n)).toBe('+50.0 %')
  expect(formatChange(300n, 100n)).toBe('−66.7 %')
  expect(formatChange(100n, 100n)).toBe('0.0 %')
  expect(formatChange(0n, 100n)).toBeUndefined()
})
