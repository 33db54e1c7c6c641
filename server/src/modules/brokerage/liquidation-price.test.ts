import fc from 'fast-check'
import { expect, test } from 'vitest'
import { numberFromE8 } from './broker.ts'
import { distanceToLiquidationBps, liquidationPriceE8 } from './liquidation-price.ts'

test('the liquidation price matches the formula for ten times leverage, long and short', () => {
  const base = { entryPriceE8: 6_000_000_000_000n, leverageE2: 1000n, maintenanceMarginBps: 50 }
  expect(numberFromE8(liquidationPriceE8({ ...base, direction: 'long' }))).toBeCloseTo((60_000 * 0.9) / 0.995, 6)
  expect(numberFromE8(liquidationPriceE8({ ...base, direction: 'short' }))).toBeCloseTo((60_000 * 1.1) / 1.005, 6)
  expect(liquidationPriceE8({ ...base, leverageE2: 100n, direction: 'long' })).toBe(0n)
  expect(distanceToLiquidationBps(10_000n, 9_000n)).toBe(1000)
})

test('more leverage never moves the liquidation price away from the entry price', () => {
  const leverage = fc.bigInt({ min: 100n, max: 12_400n })
  fc.assert(
    fc.property(fc.constantFrom('long' as const, 'short' as const), leverage, (direction, leverageE2) => {
      const base = { direction, entryPriceE8: 6_000_000_000_000n, maintenanceMarginBps: 50 }
      const priceE8 = liquidationPriceE8({ ...base, leverageE2 })
      const higherLeveragePriceE8 = liquidationPriceE8({ ...base, leverageE2: leverageE2 + 100n })
      expect(direction === 'long' ? higherLeveragePriceE8 >= priceE8 : higherLeveragePriceE8 <= priceE8).toBe(true)
    }),
  )
})
