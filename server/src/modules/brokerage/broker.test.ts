import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  averagePriceE8,
  divideRounded,
  divideUp,
  e8FromNumber,
  formatDecimal,
  least,
  notionalMicro,
  numberFromE8,
  parseDecimal,
} from './broker.ts'
import { fromJson, toJson } from './json.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation.ts'
import { approvalEnds, approvalWindows } from './windows.ts'

describe('amounts', () => {
  test('decimal text goes in and out unchanged', () => {
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

  test('numbers are taken at their shortest text, and finer ones are refused rather than rounded', () => {
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

  test('rounding is symmetric, and an average price gives its money back', () => {
    expect([divideRounded(5n, 2n), divideRounded(-5n, 2n), divideRounded(4n, 3n)]).toEqual([3n, -3n, 1n])
    expect([divideUp(4n, 3n), divideUp(3n, 3n), divideUp(-4n, 3n)]).toEqual([2n, 1n, -1n])
    expect(least(3n, 1n, 2n)).toBe(1n)
    const amounts = fc.tuple(fc.bigInt({ min: 1n, max: 10n ** 13n }), fc.bigInt({ min: 10n ** 4n, max: 10n ** 12n }))
    fc.assert(
      fc.property(amounts, ([micro, quantity]) => {
        const difference = notionalMicro(averagePriceE8(micro, quantity), quantity) - micro
        // A price of eight decimals cannot say more about a large quantity than this.
        expect(difference < 0n ? -difference : difference).toBeLessThanOrEqual(quantity / 20_000_000_000n + 1n)
      }),
    )
    expect(averagePriceE8(-200_000_000n, -100_000_000n)).toBe(20_000_000_000n)
  })

  test('what is stored is read back with its types', () => {
    const value = {
      priceE8: 5n,
      leverageE2: null,
      feeMicro: -1n,
      quotedAt: new Date('2026-11-16T16:00:00Z'),
      list: [{ lotE8: 1n }],
      name: '2026',
      approvedBy: 'key_1',
    }
    expect(fromJson(JSON.parse(toJson(value)))).toEqual(value)
  })
})

describe('liquidation', () => {
  test('the textbook: ten times long and short, half a per cent of maintenance', () => {
    const base = { entryPriceE8: 6_000_000_000_000n, leverageE2: 1000n, maintenanceMarginBps: 50 }
    expect(numberFromE8(liquidationPriceE8({ ...base, direction: 'long' }))).toBeCloseTo((60_000 * 0.9) / 0.995, 6)
    expect(numberFromE8(liquidationPriceE8({ ...base, direction: 'short' }))).toBeCloseTo((60_000 * 1.1) / 1.005, 6)
    expect(liquidationPriceE8({ ...base, leverageE2: 100n, direction: 'long' })).toBe(0n)
    expect(distanceToLiquidationBps(10_000n, 9_000n)).toBe(1000)
  })

  test('more leverage is never safer', () => {
    const leverage = fc.bigInt({ min: 100n, max: 12_400n })
    fc.assert(
      fc.property(fc.constantFrom('long' as const, 'short' as const), leverage, (direction, leverageE2) => {
        const base = { direction, entryPriceE8: 6_000_000_000_000n, maintenanceMarginBps: 50 }
        const here = liquidationPriceE8({ ...base, leverageE2 })
        const more = liquidationPriceE8({ ...base, leverageE2: leverageE2 + 100n })
        expect(direction === 'long' ? more >= here : more <= here).toBe(true)
      }),
    )
  })
})

describe('windows', () => {
  const now = new Date('2026-11-16T16:00:00Z')
  const open = { session: 'open', nextOpen: null, now } as const

  test('by instrument, short for leverage, and as the operator says when they say so', () => {
    const minutes = (input: Pick<Parameters<typeof approvalWindows>[0], 'type' | 'leverageE2' | 'overrideSeconds'>) =>
      (approvalWindows({ ...open, ...input }).expiresAt.getTime() - now.getTime()) / 60_000
    expect(minutes({ type: 'equity', leverageE2: null })).toBe(1440)
    expect(minutes({ type: 'perp', leverageE2: 100n })).toBe(5)
    expect(minutes({ type: 'rwa', leverageE2: 200n })).toBe(5)
    expect(minutes({ type: 'equity', leverageE2: null, overrideSeconds: 60 })).toBe(1)
  })

  test('a closed session limits the execution to a quarter of an hour after the open', () => {
    const nextOpen = new Date('2026-11-16T14:30:00Z')
    const windows = approvalWindows({
      type: 'equity',
      leverageE2: null,
      session: 'holiday',
      nextOpen,
      now: new Date('2026-11-16T10:00:00Z'),
    })
    expect(windows.executeBy.toISOString()).toBe('2026-11-16T14:45:00.000Z')
    expect(windows.expiresAt.toISOString()).toBe('2026-11-17T10:00:00.000Z')
    expect(approvalEnds(windows)).toEqual(windows.executeBy)
  })
})
