import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadCoverage } from './coverage.ts'
import type { Venue } from './depth.ts'
import { toFraction } from './integer-math.ts'
import { type MeasureInputs, measure } from './measure.ts'
import { initialMeasurementState, type MeasurementState, parseMeasurementState } from './measurement-state.ts'
import type { CoveredWrapper, Observation, SourcedObservation } from './price-source.ts'
import { tickAtSqrtPrice, toSqrtPrice } from './tick-math.ts'

const NOW = new Date('2026-11-16T15:00:00Z')
const ago = (seconds: number, at = NOW) => new Date(at.getTime() - seconds * 1000)

const aaplc: CoveredWrapper = {
  ...loadCoverage().find('AAPLc')!,
  pools: [{ kind: 'uniswap-v3', address: '0xpool', quoteAddress: '0xusdc', quoteDecimals: 6 }],
}
const { asset, underlying } = aaplc

const units = { wrapperIsToken0: true, wrapperDecimals: 8, quoteDecimals: 6 }

function pool(price: number, liquidity = 50_000_000_000_000n): Venue {
  const sqrtPriceX96 = toSqrtPrice(toFraction(price), units)
  const tick = tickAtSqrtPrice(sqrtPriceX96)
  return {
    kind: 'concentrated',
    id: '0xpool',
    units,
    pool: {
      sqrtPriceX96,
      tick,
      liquidity,
      tickSpacing: 10,
      feePips: 500,
      ticks: [],
      readFrom: tick - 20_000,
      readTo: tick + 20_000,
    },
  }
}

function sourced(source: string, observation: Observation, fetchedAt = NOW): SourcedObservation {
  const record = {
    source,
    url: `https://${source}.example`,
    status: 200,
    body_sha256: 'a'.repeat(64),
    fetched_at: fetchedAt.toISOString(),
    published_at: observation.publishedAt.toISOString(),
    block: null,
  }
  return { source, observation, fetchedAt, changedAt: observation.publishedAt, records: [record] }
}

type Scenario = {
  wrapper?: number
  share?: number
  feed?: number
  multiplier?: number
  at?: Date
  extra?: SourcedObservation[]
  without?: Observation['kind'][]
}

function observe({
  wrapper = 250,
  share = 250,
  feed = 250,
  multiplier = 1,
  at = NOW,
  extra = [],
  without = [],
}: Scenario = {}): SourcedObservation[] {
  const publishedAt = ago(5, at)
  const observations: [string, Observation][] = [
    ['pyth', { kind: 'share_price', underlying, price: share, conf: 0.02, publishedAt }],
    ['chainlink', { kind: 'token_reference', asset, price: feed, conf: 0, publishedAt }],
    ['chainlink', { kind: 'multiplier', asset, current: multiplier, next: null, onChain: true, publishedAt }],
    ['coinbase', { kind: 'multiplier', asset, current: multiplier, next: null, onChain: false, publishedAt }],
    ['uniswap-v3', { kind: 'venue', asset, venue: pool(wrapper), block: 1, publishedAt }],
    ['coinbase', { kind: 'issuer', asset, accepting: true, reason: '', publishedAt }],
    ['base-supply', { kind: 'supply', asset, tokens: 1000, block: 1, publishedAt }],
  ]
  return [
    ...observations
      .filter(([, { kind }]) => !without.includes(kind))
      .map(([source, observation]) => sourced(source, observation, at)),
    ...extra,
  ]
}

const stateWithSamples = (price: number, at = NOW): MeasurementState => ({
  ...initialMeasurementState,
  samples: [240, 180, 120, 60].map((seconds) => ({ at: ago(seconds, at), price })),
})

const run = (observations: SourcedObservation[], overrides: Partial<MeasureInputs> = {}) =>
  measure({
    wrapper: aaplc,
    observations,
    rejected: [],
    state: stateWithSamples(250),
    bandBps: 50,
    at: NOW,
    ...overrides,
  })

describe('a measurement', () => {
  test('with only fresh inputs is live and has high confidence', () => {
    const { reading } = run(observe({ wrapper: 250.5 }))
    expect(reading?.quote).toMatchObject({
      source: 'live',
      preview: false,
      wrapper_price: 250.5,
      reference_price: 250,
      basis_pct: 0.002,
      basis_bps: 20,
      reference_source: 'chainlink+pyth×multiplier',
      underlying_state: 'open',
      effective_float: { band_bps: 50, confidence: 'high' },
      primary_market: { creation: 'open', last_mint_at: null },
    })
    expect(reading?.quote.effective_float.near_reference_usd).toBeGreaterThan(1000)
    expect(reading?.records.map(({ source }) => source)).toEqual([
      'base-supply',
      'chainlink',
      'coinbase',
      'pyth',
      'uniswap-v3',
    ])
  })

  test.each<[string, Scenario, Partial<MeasureInputs>, string]>([
    ['a single reference', { without: ['token_reference'] }, {}, 'medium'],
    ['two references 12 basis points apart', { feed: 250.3 }, {}, 'medium'],
    ['a price that jumped', { wrapper: 252 }, {}, 'medium'],
    ['no earlier price samples', {}, { state: initialMeasurementState }, 'medium'],
    ['a jump and a single reference', { wrapper: 252, without: ['token_reference'] }, {}, 'low'],
  ])('with %s', (_name, scenario, overrides, confidence) => {
    expect(run(observe(scenario), overrides).reading?.quote.effective_float.confidence).toBe(confidence)
  })

  test('multipliers that disagree lower the confidence and are reported', () => {
    const observations = observe().map((entry) =>
      entry.source === 'coinbase' && entry.observation.kind === 'multiplier'
        ? sourced('coinbase', { ...entry.observation, current: 1.01 })
        : entry,
    )
    const { reading } = run(observations)
    expect(reading?.quote.effective_float.confidence).toBe('medium')
    expect(reading?.quote.observations).toContain('Sources disagree about shares per token.')
  })

  test('a known pool that was not read lowers the confidence', () => {
    const state = { ...stateWithSamples(250), venueSizes: { '0xpool': 1, '0xgone': 1e12 } }
    expect(run(observe(), { state }).reading?.quote.effective_float.confidence).toBe('medium')
  })

  test('a multiplier of 1.0039 changes the reference, not the basis', () => {
    const { reading } = run(observe({ share: 250, feed: 250.975, wrapper: 250.975, multiplier: 1.0039 }))
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window).toEqual({ score: 0, status: 'aligned' })
  })

  test('the basis does not depend on the number of shares per token', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 50, noNaN: true }), (multiplier) => {
        const { reading } = run(
          observe({ share: 250 / multiplier, multiplier, wrapper: 251, without: ['token_reference'] }),
        )
        expect(reading!.quote.basis_bps).toBeCloseTo(40, 1)
      }),
      { numRuns: 40 },
    )
  })

  test('contains only finite numbers', () => {
    let readings = 0
    const anyPrice = fc.double({ min: 1e-7, max: 1e7, noNaN: true })
    fc.assert(
      fc.property(anyPrice, anyPrice, fc.constantFrom(1, 0.0001, 9999), (wrapper, share, multiplier) => {
        const { reading } = run(observe({ wrapper, share, feed: share * multiplier, multiplier }))
        const walk = (value: unknown): void => {
          if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true)
          else if (value && typeof value === 'object') for (const member of Object.values(value)) walk(member)
        }
        walk(reading)
        if (reading) readings += 1
      }),
      { numRuns: 150 },
    )
    expect(readings).toBeGreaterThan(20)
  })
})

describe('missing or stale inputs', () => {
  test.each<[string, SourcedObservation[], RegExp]>([
    ['no reference', observe({ without: ['share_price', 'token_reference'] }), /No reference/],
    ['no market', observe({ without: ['venue'] }), /No market price/],
    [
      'a pool state published 16 minutes ago',
      observe({
        without: ['venue'],
        extra: [sourced('uniswap-v3', { kind: 'venue', asset, venue: pool(250), block: 1, publishedAt: ago(16 * 60) })],
      }),
      /No market price/,
    ],
    [
      'a pool fetched 16 minutes ago',
      observe({
        without: ['venue'],
        extra: [
          sourced(
            'uniswap-v3',
            { kind: 'venue', asset, venue: pool(250), block: 1, publishedAt: ago(16 * 60) },
            ago(16 * 60),
          ),
        ],
      }),
      /No market price/,
    ],
  ])('%s: no reading, but the reason', (_name, observations, reason) => {
    const { reading, reasons } = run(observations)
    expect(reading).toBeUndefined()
    expect(reasons.join(' ')).toMatch(reason)
  })

  test('a rejected source is reported in a live reading', () => {
    const { reading } = run(observe(), { rejected: [{ source: 'alpaca', reason: 'it answered with status 403' }] })
    expect(reading?.quote.observations).toContain('alpaca is not used: it answered with status 403.')
  })

  test('an unknown issuer state counts as closed and is reported', () => {
    const { reading } = run(observe({ without: ['issuer'] }))
    expect(reading?.quote.primary_market.creation).toBe('closed')
    expect(reading?.quote.observations.join(' ')).toMatch(/not known/)
  })
})

describe('the state of the underlying', () => {
  const halt = sourced('xstocks', { kind: 'halt', underlying, halted: true, publishedAt: NOW })

  test('a halt has precedence and lowers the confidence', () => {
    const { reading } = run(observe({ extra: [halt] }))
    expect(reading?.quote).toMatchObject({ underlying_state: 'halted', effective_float: { confidence: 'low' } })
  })

  test('the exchange’s clock can close a session, but not with a reading from before the opening', () => {
    const closedClock = (publishedAt: Date) =>
      sourced('alpaca', { kind: 'exchange_clock', by: 'clock', open: false, publishedAt })
    expect(run(observe({ extra: [closedClock(ago(10))] })).reading?.quote.underlying_state).toBe('closed')
    expect(
      run(observe({ extra: [closedClock(new Date('2026-11-16T14:29:00Z'))] })).reading?.quote.underlying_state,
    ).toBe('open')
  })

  test('on a Sunday the last close is carried, with low confidence', () => {
    const sunday = new Date('2026-11-15T15:00:00Z')
    const friday = new Date('2026-11-13T20:59:50Z')
    const observations = observe({ at: sunday, wrapper: 255, without: ['share_price', 'token_reference'] }).concat(
      sourced('pyth', { kind: 'share_price', underlying, price: 250, conf: 0, publishedAt: friday }, sunday),
    )
    const { reading } = run(observations, { at: sunday })
    expect(reading?.quote).toMatchObject({
      underlying_state: 'closed',
      reference_source: 'last_regular_close×multiplier',
      basis_bps: 200,
      effective_float: { confidence: 'low' },
    })
  })
})

describe('a split', () => {
  const at = new Date('2026-11-16T13:30:00Z')
  const activation = ago(600, at)
  const close = new Date('2026-11-13T20:59:50Z')
  const observations = observe({ at, wrapper: 1000, without: ['share_price', 'token_reference', 'multiplier'] }).concat(
    sourced('pyth', { kind: 'share_price', underlying, price: 1000, conf: 0, publishedAt: close }, at),
    sourced(
      'chainlink',
      { kind: 'multiplier', asset, current: 1, next: { value: 10, at: activation }, onChain: true, publishedAt: at },
      at,
    ),
  )

  test('makes no basis before the first new print, and is not scored', () => {
    const { reading, state } = run(observations, { at })
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window).toEqual({ score: 0, status: 'reference_suspended' })
    expect(state.gapSince).toBeNull()
  })

  test('is scored again after the first new print', () => {
    const afterOpening = observe({ wrapper: 1000, share: 100, without: ['token_reference', 'multiplier'] }).concat(
      sourced('chainlink', {
        kind: 'multiplier',
        asset,
        current: 1,
        next: { value: 10, at: activation },
        onChain: true,
        publishedAt: NOW,
      }),
    )
    const { reading } = run(afterOpening)
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window.status).toBe('aligned')
  })
})

describe('the window', () => {
  const wideGap = observe({ wrapper: 260, extra: [] })
  const mint = (size: number, at: Date) =>
    sourced('base-supply', {
      kind: 'issuance',
      asset,
      events: [{ at: at.toISOString(), block: 50, size }],
      toBlock: 60,
      publishedAt: NOW,
    })

  test('opens, keeps its start while the gap lasts, and supply toward parity lowers its score', () => {
    const first = run(wideGap)
    expect(first.state.gapSince).toEqual(NOW)
    const later = new Date(NOW.getTime() + 60_000)
    const second = run(observe({ wrapper: 260, at: later }), { at: later, state: first.state })
    expect(second.state.gapSince).toEqual(NOW)
    const afterMint = run(observe({ wrapper: 260, at: later, extra: [mint(1_000_000, later)] }), {
      at: later,
      state: first.state,
    })
    expect(afterMint.reading!.window.status).toBe('supply_responding')
    expect(afterMint.reading!.quote.primary_market).toMatchObject({ last_mint_block: 50, last_mint_size: 1_000_000 })
    expect(afterMint.reading!.window.score).toBeLessThan(second.reading!.window.score)
  })

  test('redemption does not count toward parity above the reference, and an event counts once', () => {
    const { state } = run(wideGap)
    const later = new Date(NOW.getTime() + 60_000)
    const afterRedemption = run(observe({ wrapper: 260, at: later, extra: [mint(-1_000_000, later)] }), {
      at: later,
      state,
    })
    expect(afterRedemption.reading!.window.status).not.toBe('supply_responding')
    expect(afterRedemption.reading!.quote.primary_market.last_mint_size).toBe(-1_000_000)
    const afterRepeat = run(observe({ wrapper: 260, at: later, extra: [mint(-1_000_000, later)] }), {
      at: later,
      state: afterRedemption.state,
    })
    expect(afterRepeat.state.supply.recent).toHaveLength(1)
  })

  test('returning inside the band ends the gap', () => {
    const { state } = run(wideGap)
    expect(run(observe(), { state }).state.gapSince).toBeNull()
  })

  test('the measurement state can be stored as JSON and read back', () => {
    const { state } = run(observe({ wrapper: 260, extra: [mint(5, NOW)] }))
    expect(parseMeasurementState(JSON.parse(JSON.stringify(state)))).toEqual(state)
  })
})

test('on Solana mints come from changes of the supply, and depth from an aggregator', () => {
  const tslax = loadCoverage().find('TSLAx')!
  const observeTslax = (tokens: number, block: number, at: Date): SourcedObservation[] => [
    sourced('pyth', { kind: 'share_price', underlying: 'TSLA', price: 340, conf: 0, publishedAt: ago(2, at) }, at),
    sourced(
      'jupiter',
      { kind: 'token_price', asset: tslax.asset, price: 340.2, liquidityUsd: 1_000_000, publishedAt: at },
      at,
    ),
    sourced(
      'solana',
      { kind: 'multiplier', asset: tslax.asset, current: 1, next: null, onChain: true, publishedAt: at },
      at,
    ),
    sourced('solana', { kind: 'supply', asset: tslax.asset, tokens, block, publishedAt: at }, at),
    sourced('solana', { kind: 'locked', asset: tslax.asset, tokens: 250, publishedAt: at }, at),
    sourced('jupiter', { kind: 'meme', asset: tslax.asset, symbol: 'MOON', change24h: 0.5, publishedAt: at }, at),
  ]
  const measureTslax = (observations: SourcedObservation[], at: Date, state: MeasurementState) =>
    measure({ wrapper: tslax, observations, rejected: [], state, bandBps: 50, at })
  const first = measureTslax(observeTslax(1000, 10, NOW), NOW, initialMeasurementState)
  expect(first.reading?.quote.primary_market.last_mint_size).toBeNull()
  expect(first.reading?.quote.observations.join(' ')).toMatch(/estimated/)
  expect(first.reading?.quote.effective_float.near_reference_usd).toBeGreaterThan(0)
  expect(first.reading).toMatchObject({ floatLocked: 0.25, meme: { symbol: 'MOON', change24h: 0.5 } })
  const later = new Date(NOW.getTime() + 30_000)
  const second = measureTslax(observeTslax(1012.5, 20, later), later, first.state)
  expect(second.reading?.quote.primary_market).toMatchObject({
    last_mint_block: 20,
    last_mint_size: 12.5,
    last_mint_at: later.toISOString(),
  })
})
