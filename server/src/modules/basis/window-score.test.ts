import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { excessBps, scoreWindow, type WindowInputs, type WindowStatus } from './window-score.ts'

const wide: WindowInputs = {
  basisBps: 400,
  bandBps: 50,
  feesBps: 30,
  confBps: 5,
  confidence: 'high',
  distanceUsd: 100_000,
  nearReferenceUsd: 0,
  issuanceUsd: 0,
  creationOpen: false,
  openMinutes: 0,
  floatLocked: 0.5,
  momentum: 0.2,
}

const amount = fc.double({ min: 0, max: 1e9, noNaN: true })
const anyInputs: fc.Arbitrary<WindowInputs> = fc.record({
  basisBps: fc.double({ min: -10_000, max: 10_000, noNaN: true }),
  bandBps: fc.constantFrom(10, 50, 100),
  feesBps: fc.double({ min: 0, max: 100, noNaN: true }),
  confBps: fc.double({ min: 0, max: 500, noNaN: true }),
  confidence: fc.constantFrom('high', 'medium', 'low'),
  distanceUsd: amount,
  nearReferenceUsd: amount,
  issuanceUsd: amount,
  creationOpen: fc.boolean(),
  openMinutes: fc.double({ min: 0, max: 1e6, noNaN: true }),
  floatLocked: fc.double({ min: -1, max: 2, noNaN: true }),
  momentum: fc.double({ min: -1, max: 100, noNaN: true }),
})

const score = (inputs: WindowInputs) => scoreWindow(inputs, false).score

describe('the window score', () => {
  test('follows the formula', () => {
    const D = 1 - Math.exp(-350 / 75)
    const T = 0.5 * 0.5 + 0.5
    expect(score(wide)).toBeCloseTo(100 * D * (0.55 + 0.3 * T + 0.15 * 0.2), 2)
    const open = { ...wide, creationOpen: true, openMinutes: 30, confidence: 'medium' as const, issuanceUsd: 25_000 }
    const G = 0.35 + 0.65 * (1 - Math.exp(-1))
    expect(score(open)).toBeCloseTo(100 * 0.8 * D * 0.75 * G * (0.55 + 0.3 * T + 0.15 * 0.2), 2)
  })

  test('is zero at parity and anywhere inside the band', () => {
    fc.assert(
      fc.property(anyInputs, fc.double({ min: -1, max: 1, noNaN: true }), (inputs, share) => {
        expect(score({ ...inputs, basisBps: inputs.bandBps * share })).toBe(0)
        expect(score({ ...inputs, basisBps: 0 })).toBe(0)
      }),
    )
  })

  test('never falls as the basis grows in either direction', () => {
    fc.assert(
      fc.property(anyInputs, fc.double({ min: 0, max: 10_000, noNaN: true }), (inputs, increase) => {
        const basisBps = inputs.basisBps + Math.sign(inputs.basisBps || 1) * increase
        expect(score({ ...inputs, basisBps })).toBeGreaterThanOrEqual(score(inputs))
        expect(score({ ...inputs, basisBps: -inputs.basisBps })).toBe(score(inputs))
      }),
    )
  })

  test('never rises with issuance toward parity', () => {
    fc.assert(
      fc.property(anyInputs, amount, (inputs, increase) => {
        expect(score({ ...inputs, issuanceUsd: inputs.issuanceUsd + increase })).toBeLessThanOrEqual(score(inputs))
      }),
    )
  })

  test('is a number between 0 and 100', () => {
    fc.assert(
      fc.property(anyInputs, (inputs) => {
        const value = score(inputs)
        expect(Number.isFinite(value) && value >= 0 && value <= 100).toBe(true)
      }),
    )
  })

  test('an input that is not a finite number gives insufficient_data', () => {
    for (const distanceUsd of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(scoreWindow({ ...wide, distanceUsd }, false)).toEqual({ score: 0, status: 'insufficient_data' })
  })

  test('the gap starts beyond the band, or beyond fee and error if those are wider', () => {
    expect(excessBps({ basisBps: -60, bandBps: 50, feesBps: 30, confBps: 5 })).toBe(10)
    expect(excessBps({ basisBps: 100, bandBps: 50, feesBps: 30, confBps: 30 })).toBe(10)
  })
})

test.each<[Partial<WindowInputs>, boolean, WindowStatus]>([
  [{}, true, 'reference_suspended'],
  [{ basisBps: 55 }, false, 'aligned'],
  [{ issuanceUsd: 60_000 }, false, 'supply_responding'],
  [{}, false, 'window_wide'],
  [{ confidence: 'low' }, false, 'window_open'],
  [{ confidence: 'low', basisBps: 90 }, false, 'drifting'],
])('%j, suspended %s: %s', (overrides, suspended, status) => {
  expect(scoreWindow({ ...wide, ...overrides }, suspended).status).toBe(status)
})
