import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadCoverage, readCoverage } from './coverage.ts'
import { previewReading } from './preview.ts'

const coverage = loadCoverage()
const monday = new Date('2026-11-16T15:00:07Z')

describe('preview readings', () => {
  test('the same clock gives the same bytes, another quarter of a minute gives others', () => {
    const bytes = (at: Date) => JSON.stringify(coverage.covered.map((each) => previewReading(each, 50, at)))
    expect(bytes(monday)).toBe(bytes(new Date(monday)))
    expect(bytes(monday)).not.toBe(bytes(new Date(monday.getTime() + 15_000)))
  })

  test('say preview in both places and never more than low confidence', () => {
    for (const covered of coverage.covered) {
      const { quote } = previewReading(covered, 50, monday)
      expect(quote).toMatchObject({
        source: 'preview',
        preview: true,
        as_of: '2026-11-16T15:00:00.000Z',
        underlying_state: 'open',
      })
      expect(quote.effective_float.confidence).toBe('low')
    }
  })

  test('keep the reference still while the exchange is closed', () => {
    const [covered] = coverage.covered
    const at = (text: string) => previewReading(covered!, 50, new Date(text)).quote
    expect(at('2026-11-14T12:00:00Z').reference_price).toBe(at('2026-11-15T20:00:00Z').reference_price)
    expect(at('2026-11-15T20:00:00Z').underlying_state).toBe('closed')
    expect(at('2026-11-26T15:00:00Z').underlying_state).toBe('holiday')
  })

  test('give the reasons when live sources exist and cannot be believed, and are not scored then', () => {
    const reading = previewReading(coverage.covered[0]!, 50, monday, ['pyth is not used: frozen.'])
    expect(reading.quote.observations).toContain('pyth is not used: frozen.')
    expect(reading.window).toEqual({ score: 0, status: 'insufficient_data' })
  })

  test('hold no number that is none, whatever the clock says', () => {
    const days = fc.integer({ min: Date.parse('1995-01-01'), max: Date.parse('2090-01-01') })
    fc.assert(
      fc.property(days, fc.nat(coverage.covered.length - 1), (ms, index) => {
        const { quote } = previewReading(coverage.covered[index]!, 50, new Date(ms))
        expect(JSON.stringify(quote)).not.toMatch(/:null,"basis|NaN|Infinity/)
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

describe('the coverage file', () => {
  const shipped = {
    version: 1,
    band_bps: 50,
    chains: { base: { kind: 'evm', caip2: 'eip155:8453', asset_namespace: 'erc20' } },
    underlyings: { AAPL: { preview_price: 250 } },
    wrappers: [
      {
        symbol: 'AAPLc',
        underlying: 'AAPL',
        issuer: 'Coinbase',
        deployments: [{ chain: 'base', address: '0xb200000000000000000000C2e324d24d7eEcd1fb', decimals: 8 }],
      },
    ],
  }

  test('finds a wrapper whatever its case, and by chain', () => {
    const read = readCoverage(shipped)
    expect(read.find('aaplC')?.caip19).toBe('eip155:8453/erc20:0xb200000000000000000000C2e324d24d7eEcd1fb')
    expect(read.find('AAPLc', 'solana')).toBeUndefined()
    expect(read.symbols).toEqual([{ symbol: 'AAPLc', underlying: 'AAPL', issuer: 'Coinbase', chains: ['base'] }])
  })

  test.each([
    ['an unknown chain', { chains: {} }, /not among its chains/],
    ['an unlisted underlying', { underlyings: {} }, /does not list AAPL/],
    ['the same wrapper twice', { wrappers: [shipped.wrappers[0], shipped.wrappers[0]] }, /twice/],
    ['no wrappers', { wrappers: [] }, /not usable/],
    ['a property nobody knows', { extra: 1 }, /not usable/],
  ])('with %s it is refused in a sentence', (_name, change, message) => {
    expect(() => readCoverage({ ...shipped, ...change })).toThrow(message)
  })
})
