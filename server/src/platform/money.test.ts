import fc from 'fast-check'
import { expect, test } from 'vitest'
import { microFromUsdc, roundingHint, usdcFromMicro } from './money.ts'

test('every amount up to a billion USDC survives a JSON round trip', () => {
  fc.assert(
    fc.property(fc.bigInt(0n, 1_000_000_000_000_000n), (micro) => {
      expect(microFromUsdc(JSON.parse(JSON.stringify(usdcFromMicro(micro))))).toBe(micro)
    }),
    { numRuns: 2_000 },
  )
})

test('an invalid or too precise amount is refused, never rounded', () => {
  for (const amount of [Number.NaN, Number.POSITIVE_INFINITY, -0.01, 0.0000001, 1.0000005, 1_000_000_001])
    expect(microFromUsdc(amount)).toBeUndefined()
  expect(microFromUsdc(0.1 + 0.2)).toBeUndefined()
  expect(microFromUsdc(0.3)).toBe(300_000n)
  expect(microFromUsdc(0)).toBe(0n)
})

test('negative amounts keep their sign, and nothing has none', () => {
  expect(usdcFromMicro(0n)).toBe(0)
  expect(usdcFromMicro(-1n)).toBe(-0.000001)
  expect(usdcFromMicro(-1_500_000n)).toBe(-1.5)
})

test('a sum of floats is answered with the amount it was meant to be, and nothing else with a guess', () => {
  expect(roundingHint(0.1 + 0.2)).toBe(' Send 0.3, or "300000" as the amount in atomic units.')
  for (const amount of [0.0000001, -0.3000001, Number.NaN, 1_000_000_001]) expect(roundingHint(amount)).toBe('')
})
