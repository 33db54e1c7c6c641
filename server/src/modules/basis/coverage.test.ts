import { describe, expect, test } from 'vitest'
import { parseCoverage } from './coverage.ts'

describe('the coverage file', () => {
  const file = {
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

  test('finds a wrapper by chain and regardless of case', () => {
    const coverage = parseCoverage(file)
    expect(coverage.find('aaplC')?.caip19).toBe('eip155:8453/erc20:0xb200000000000000000000C2e324d24d7eEcd1fb')
    expect(coverage.find('AAPLc', 'solana')).toBeUndefined()
    expect(coverage.symbols).toEqual([{ symbol: 'AAPLc', underlying: 'AAPL', issuer: 'Coinbase', chains: ['base'] }])
  })

  test.each([
    ['an unknown chain', { chains: {} }, /not among its chains/],
    ['an unlisted underlying', { underlyings: {} }, /does not list AAPL/],
    ['the same wrapper twice', { wrappers: [file.wrappers[0], file.wrappers[0]] }, /twice/],
    ['no wrappers', { wrappers: [] }, /not usable/],
    ['an unknown property', { extra: 1 }, /not usable/],
  ])('with %s is rejected', (_name, overrides, message) => {
    expect(() => parseCoverage({ ...file, ...overrides })).toThrow(message)
  })
})
