import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadCoverage } from './coverage.ts'
import { buildPreviewReading } from './preview.ts'

const coverage = loadCoverage()
const monday = new Date('2026-11-16T15:00:07Z')

describe('preview readings', () => {
  test('are the same for the same minute, and others in the next', () => {
    const toJson = (at: Date) =>
      JSON.stringify(coverage.wrappers.map((wrapper) => buildPreviewReading(wrapper, 50, at)))
    expect(toJson(monday)).toBe(toJson(new Date(monday.getTime() + 52_000)))
    expect(toJson(monday)).not.toBe(toJson(new Date(monday.getTime() + 53_000)))
  })

  test('are marked as preview in both fields and have low confidence', () => {
    for (const wrapper of coverage.wrappers) {
      const { quote } = buildPreviewReading(wrapper, 50, monday)
      expect(quote).toMatchObject({
        source: 'preview',
        preview: true,
        as_of: '2026-11-16T15:00:00.000Z',
        underlying_state: 'open',
      })
      expect(quote.effective_float.confidence).toBe('low')
    }
  })

  test('keep the reference unchanged while the exchange is closed', () => {
    const [wrapper] = coverage.wrappers
    const quoteAt = (text: string) => buildPreviewReading(wrapper!, 50, new Date(text)).quote
    expect(quoteAt('2026-11-14T12:00:00Z').reference_price).toBe(quoteAt('2026-11-15T20:00:00Z').reference_price)
    expect(quoteAt('2026-11-15T20:00:00Z').underlying_state).toBe('closed')
    expect(quoteAt('2026-11-26T15:00:00Z').underlying_state).toBe('holiday')
  })

  test('carry the reasons why live sources cannot be used, and are not scored then', () => {
    const reading = buildPreviewReading(coverage.wrappers[0]!, 50, monday, ['pyth is not used: frozen.'])
    expect(reading.quote.observations).toContain('pyth is not used: frozen.')
    expect(reading.window).toEqual({ score: 0, status: 'insufficient_data' })
  })

  test('have finite numbers and a consistent basis at any time', () => {
    const times = fc.integer({ min: Date.parse('1995-01-01'), max: Date.parse('2090-01-01') })
    fc.assert(
      fc.property(times, fc.nat(coverage.wrappers.length - 1), (ms, index) => {
        const { quote } = buildPreviewReading(coverage.wrappers[index]!, 50, new Date(ms))
        const { near_reference_usd } = quote.effective_float
        const numbers = [
          quote.wrapper_price,
          quote.reference_price,
          quote.basis_pct,
          quote.basis_bps,
          near_reference_usd,
        ]
        expect(numbers.filter((number) => !Number.isFinite(number))).toEqual([])
        expect(Math.abs(quote.basis_bps - quote.basis_pct * 10_000)).toBeLessThan(1e-6)
        expect(quote.wrapper_price).toBeGreaterThan(0)
        expect(quote.basis_pct).toBe(
          Number(((quote.wrapper_price - quote.reference_price) / quote.reference_price).toFixed(6)),
        )
      }),
      { numRuns: 60 },
    )
  })
})
