import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  averagePriceE8,
  divideRounded,
  divideUp,
  e8FromNumber,
  formatDecimal,
  minBigint,
  notionalMicro,
  numberFromE8,
  parseDecimal,
} from './broker.ts'

describe('amounts', () => {
  test('decimal text is parsed and formatted without loss', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n }),
        fc.integer({ min: 0, max: 12 }),
        (value, scale) => {
          expect(parseDecimal(formatDecimal(value, scale), scale)).toBe(value)
        },
      ),
    )
  })

  test('numbers with more than eight decimals are refused rather than rounded', () => {
    expect(e8FromNumber(0.1)).toBe(10_000_000n)
    expect(e8FromNumber(1e-8)).toBe(1n)
    expect(e8FromNumber(1e-9)).toBeUndefined()
    expect(e8FromNumber(0.1 + 0.2)).toBeUndefined()
    expect(e8FromNumber(Number.POSITIVE_INFINITY)).toBeUndefined()
    expect(e8FromNumber(1e308)).toBeUndefined()
    for (const text of ['', '1.', '.5', '0x10', '1,5', ' 1', '1e9999', '--1'])
      expect(parseDecimal(text, 8)).toBeUndefined()
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n }), (value) => {
        expect(e8FromNumber(numberFromE8(value))).toBe(value)
      }),
    )
  })

  test('rounding is symmetric, and an average price times its quantity is the amount paid', () => {
    expect([divideRounded(5n, 2n), divideRounded(-5n, 2n), divideRounded(4n, 3n)]).toEqual([3n, -3n, 1n])
    expect([divideUp(4n, 3n), divideUp(3n, 3n), divideUp(-4n, 3n)]).toEqual([2n, 1n, -1n])
    expect(minBigint(3n, 1n, 2n)).toBe(1n)
    const amounts = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 13n }), fc.bigInt({ min: 10n ** 4n, max: 10n ** 12n }))
    fc.assert(
      fc.property(amounts, ([micro, quantity]) => {
        const difference = notionalMicro(averagePriceE8(micro, quantity), quantity) - micro
        // A price with eight decimals is no more precise than this for a large quantity.
        expect(difference < 0n ? -difference : difference).toBeLessThanOrEqual(quantity / 20_000_000_000n + 1n)
      }),
    )
    expect(averagePriceE8(-200_000_000n, -100_000_000n)).toBe(20_000_000_000n)
  })
})
