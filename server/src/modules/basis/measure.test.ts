import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadCoverage } from './coverage.ts'
import type { Venue } from './depth.ts'
import { toFraction } from './integer-math.ts'
import { type MeasureInputs, measure } from './measure.ts'
import type { Covered, Kept, Observation } from './price-source.ts'
import { sqrtPriceOf, tickAtSqrtPrice } from './tick-math.ts'
import { emptyTrack, reviveTrack, type Track } from './track.ts'

const NOW = new Date('2026-11-16T15:00:00Z')
const ago = (seconds: number, at = NOW) => new Date(at.getTime() - seconds * 1000)

const covered: Covered = {
  ...loadCoverage().find('AAPLc')!,
  pools: [{ kind: 'uniswap-v3', address: '0xpool', quoteAddress: '0xusdc', quoteDecimals: 6 }],
}
const { asset, underlying } = covered

const units = { wrapperIsToken0: true, wrapperDecimals: 8, quoteDecimals: 6 }

function pool(price: number, liquidity = 50_000_000_000_000n): Venue {
  const sqrtPriceX96 = sqrtPriceOf(toFraction(price), units)
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

function keep(source: string, observation: Observation, fetchedAt = NOW): Kept {
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

type Scene = {
  wrapper?: number
  share?: number
  feed?: number
  multiplier?: number
  at?: Date
  extra?: Kept[]
  without?: Observation['kind'][]
}

function scene({
  wrapper = 250,
  share = 250,
  feed = 250,
  multiplier = 1,
  at = NOW,
  extra = [],
  without = [],
}: Scene = {}): Kept[] {
  const publishedAt = ago(5, at)
  const observations: [string, Observation][] = [
    ['pyth', { kind: 'share_price', underlying, price: share, conf: 0.02, publishedAt }],
    ['chainlink', { kind: 'token_reference', asset, price: feed, conf: 0, publishedAt }],
    ['chainlink', { kind: 'multiplier', asset, current: multiplier, next: null, onChain: true, publishedAt }],
    ['coinbase', { kind: 'multiplier', asset, current: multiplier, next: null, onChain: false, publishedAt }],
    ['uniswap-v3', { kind: 'venue', asset, venue: pool(wrapper), block: 1, publishedAt }],
    ['coinbase', { kind: 'issuer', asset, accepting: true, why: '', publishedAt }],
    ['base-supply', { kind: 'supply', asset, tokens: 1000, block: 1, publishedAt }],
  ]
  return [
    ...observations.filter(([, { kind }]) => !without.includes(kind)).map(([source, each]) => keep(source, each, at)),
    ...extra,
  ]
}

const settled = (price: number, at = NOW): Track => ({
  ...emptyTrack,
  samples: [240, 180, 120, 60].map((seconds) => ({ at: ago(seconds, at), price })),
})

const run = (kept: Kept[], change: Partial<MeasureInputs> = {}) =>
  measure({ covered, kept, refused: [], track: settled(250), bandBps: 50, at: NOW, ...change })

describe('a measurement', () => {
  test('with every input fresh is live and of high confidence', () => {
    const { reading } = run(scene({ wrapper: 250.5 }))
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

  test.each<[string, Scene, Partial<MeasureInputs>, string]>([
    ['one reference alone', { without: ['token_reference'] }, {}, 'medium'],
    ['two references 12 basis points apart', { feed: 250.3 }, {}, 'medium'],
    ['a price that jumped', { wrapper: 252 }, {}, 'medium'],
    ['nothing to compare with', {}, { track: emptyTrack }, 'medium'],
    ['a jump and a lone reference', { wrapper: 252, without: ['token_reference'] }, {}, 'low'],
  ])('%s', (_name, what, change, confidence) => {
    expect(run(scene(what), change).reading?.quote.effective_float.confidence).toBe(confidence)
  })

  test('multipliers that disagree cost confidence and are told', () => {
    const kept = scene().map((each) =>
      each.source === 'coinbase' && each.observation.kind === 'multiplier'
        ? keep('coinbase', { ...each.observation, current: 1.01 })
        : each,
    )
    const { reading } = run(kept)
    expect(reading?.quote.effective_float.confidence).toBe('medium')
    expect(reading?.quote.observations).toContain('Sources disagree about shares per token.')
  })

  test('a pool that could not be read still counts in the whole', () => {
    const track = { ...settled(250), venueSizes: { '0xpool': 1, '0xgone': 1e12 } }
    expect(run(scene(), { track }).reading?.quote.effective_float.confidence).toBe('medium')
  })

  test('a multiplier of 1.0039 is 39 basis points of reference, not of basis', () => {
    const { reading } = run(scene({ share: 250, feed: 250.975, wrapper: 250.975, multiplier: 1.0039 }))
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window).toEqual({ score: 0, status: 'aligned' })
  })

  test('whatever the shares per token, the same value makes the same basis', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 50, noNaN: true }), (multiplier) => {
        const { reading } = run(
          scene({ share: 250 / multiplier, multiplier, wrapper: 251, without: ['token_reference'] }),
        )
        expect(reading!.quote.basis_bps).toBeCloseTo(40, 1)
      }),
      { numRuns: 40 },
    )
  })

  test('holds only numbers that are numbers', () => {
    const anyPrice = fc.double({ min: 1e-7, max: 1e7, noNaN: true })
    fc.assert(
      fc.property(anyPrice, anyPrice, fc.constantFrom(1, 0.0001, 9999), (wrapper, share, multiplier) => {
        const { reading } = run(scene({ wrapper, share, feed: share * multiplier, multiplier }))
        const walk = (value: unknown): void => {
          if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true)
          else if (value && typeof value === 'object') for (const each of Object.values(value)) walk(each)
        }
        walk(reading)
      }),
      { numRuns: 150 },
    )
  })
})

describe('what is missing or old', () => {
  test.each<[string, Kept[], RegExp]>([
    ['no reference', scene({ without: ['share_price', 'token_reference'] }), /No reference/],
    ['no market', scene({ without: ['venue'] }), /No market price/],
    [
      'an old pool',
      scene({
        without: ['venue'],
        extra: [keep('uniswap-v3', { kind: 'venue', asset, venue: pool(250), block: 1, publishedAt: ago(16 * 60) })],
      }),
      /No market price/,
    ],
    [
      'a pool read long ago',
      scene({
        without: ['venue'],
        extra: [
          keep(
            'uniswap-v3',
            { kind: 'venue', asset, venue: pool(250), block: 1, publishedAt: ago(16 * 60) },
            ago(16 * 60),
          ),
        ],
      }),
      /No market price/,
    ],
  ])('%s: no reading, and the reason', (_name, kept, reason) => {
    const { reading, reasons } = run(kept)
    expect(reading).toBeUndefined()
    expect(reasons.join(' ')).toMatch(reason)
  })

  test('a source that was refused is told even when the reading stands', () => {
    const { reading } = run(scene(), { refused: [{ source: 'alpaca', reason: 'it answered with status 403' }] })
    expect(reading?.quote.observations).toContain('alpaca is not used: it answered with status 403.')
  })

  test('an unknown issuer counts as closed, and says so', () => {
    const { reading } = run(scene({ without: ['issuer'] }))
    expect(reading?.quote.primary_market.creation).toBe('closed')
    expect(reading?.quote.observations.join(' ')).toMatch(/not known/)
  })
})

describe('the state of the underlying', () => {
  const halt = keep('xstocks', { kind: 'halt', underlying, halted: true, publishedAt: NOW })

  test('a halt goes before everything and takes confidence away', () => {
    const { reading } = run(scene({ extra: [halt] }))
    expect(reading?.quote).toMatchObject({ underlying_state: 'halted', effective_float: { confidence: 'low' } })
  })

  test('the exchange’s own clock can close a session, but not by what it said before the bell', () => {
    const said = (publishedAt: Date) =>
      keep('alpaca', { kind: 'exchange_clock', by: 'clock', open: false, publishedAt })
    expect(run(scene({ extra: [said(ago(10))] })).reading?.quote.underlying_state).toBe('closed')
    expect(run(scene({ extra: [said(new Date('2026-11-16T14:29:00Z'))] })).reading?.quote.underlying_state).toBe('open')
  })

  test('on a Sunday the last close is carried, with low confidence', () => {
    const sunday = new Date('2026-11-15T15:00:00Z')
    const friday = new Date('2026-11-13T20:59:50Z')
    const kept = scene({ at: sunday, wrapper: 255, without: ['share_price', 'token_reference'] }).concat(
      keep('pyth', { kind: 'share_price', underlying, price: 250, conf: 0, publishedAt: friday }, sunday),
    )
    const { reading } = run(kept, { at: sunday })
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
  const kept = scene({ at, wrapper: 1000, without: ['share_price', 'token_reference', 'multiplier'] }).concat(
    keep('pyth', { kind: 'share_price', underlying, price: 1000, conf: 0, publishedAt: close }, at),
    keep(
      'chainlink',
      { kind: 'multiplier', asset, current: 1, next: { value: 10, at: activation }, onChain: true, publishedAt: at },
      at,
    ),
  )

  test('before the first new print makes no basis, and is not scored', () => {
    const { reading, track } = run(kept, { at })
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window).toEqual({ score: 0, status: 'reference_suspended' })
    expect(track.gapSince).toBeNull()
  })

  test('after the first new print is scored again', () => {
    const opened = scene({ wrapper: 1000, share: 100, without: ['token_reference', 'multiplier'] }).concat(
      keep('chainlink', {
        kind: 'multiplier',
        asset,
        current: 1,
        next: { value: 10, at: activation },
        onChain: true,
        publishedAt: NOW,
      }),
    )
    const { reading } = run(opened)
    expect(reading?.quote.basis_bps).toBe(0)
    expect(reading?.window.status).toBe('aligned')
  })
})

describe('the window', () => {
  const wide = scene({ wrapper: 260, extra: [] })
  const mint = (size: number, at: Date) =>
    keep('base-supply', {
      kind: 'issuance',
      asset,
      events: [{ at: at.toISOString(), block: 50, size }],
      toBlock: 60,
      publishedAt: NOW,
    })

  test('opens, is followed while it stays, and supply toward parity closes its score', () => {
    const first = run(wide)
    expect(first.track.gapSince).toEqual(NOW)
    const later = new Date(NOW.getTime() + 60_000)
    const second = run(scene({ wrapper: 260, at: later }), { at: later, track: first.track })
    expect(second.track.gapSince).toEqual(NOW)
    const minted = run(scene({ wrapper: 260, at: later, extra: [mint(1_000_000, later)] }), {
      at: later,
      track: first.track,
    })
    expect(minted.reading!.window.status).toBe('supply_responding')
    expect(minted.reading!.quote.primary_market).toMatchObject({ last_mint_block: 50, last_mint_size: 1_000_000 })
    expect(minted.reading!.window.score).toBeLessThan(second.reading!.window.score)
  })

  test('redemption does not answer a dear wrapper, and an event counts once', () => {
    const { track } = run(wide)
    const later = new Date(NOW.getTime() + 60_000)
    const redeemed = run(scene({ wrapper: 260, at: later, extra: [mint(-1_000_000, later)] }), { at: later, track })
    expect(redeemed.reading!.window.status).not.toBe('supply_responding')
    expect(redeemed.reading!.quote.primary_market.last_mint_size).toBe(-1_000_000)
    const again = run(scene({ wrapper: 260, at: later, extra: [mint(-1_000_000, later)] }), {
      at: later,
      track: redeemed.track,
    })
    expect(again.track.supply.recent).toHaveLength(1)
  })

  test('coming back inside the band ends it', () => {
    const { track } = run(wide)
    expect(run(scene(), { track }).track.gapSince).toBeNull()
  })

  test('what one cycle remembers survives the store', () => {
    const { track } = run(scene({ wrapper: 260, extra: [mint(5, NOW)] }))
    expect(reviveTrack(JSON.parse(JSON.stringify(track)))).toEqual(track)
  })
})

test('a wrapper on Solana learns of mints from its supply, and of depth from an aggregator', () => {
  const solana = loadCoverage().find('TSLAx')!
  const of = (tokens: number, block: number, at: Date): Kept[] => [
    keep('pyth', { kind: 'share_price', underlying: 'TSLA', price: 340, conf: 0, publishedAt: ago(2, at) }, at),
    keep(
      'jupiter',
      { kind: 'token_price', asset: solana.asset, price: 340.2, liquidityUsd: 1_000_000, publishedAt: at },
      at,
    ),
    keep(
      'solana',
      { kind: 'multiplier', asset: solana.asset, current: 1, next: null, onChain: true, publishedAt: at },
      at,
    ),
    keep('solana', { kind: 'supply', asset: solana.asset, tokens, block, publishedAt: at }, at),
    keep('solana', { kind: 'locked', asset: solana.asset, tokens: 250, publishedAt: at }, at),
    keep('jupiter', { kind: 'meme', asset: solana.asset, symbol: 'MOON', change24h: 0.5, publishedAt: at }, at),
  ]
  const go = (kept: Kept[], at: Date, track: Track) =>
    measure({ covered: solana, kept, refused: [], track, bandBps: 50, at })
  const first = go(of(1000, 10, NOW), NOW, emptyTrack)
  expect(first.reading?.quote.primary_market.last_mint_size).toBeNull()
  expect(first.reading?.quote.observations.join(' ')).toMatch(/estimated/)
  expect(first.reading?.quote.effective_float.near_reference_usd).toBeGreaterThan(0)
  expect(first.reading).toMatchObject({ floatLocked: 0.25, meme: { symbol: 'MOON', change24h: 0.5 } })
  const later = new Date(NOW.getTime() + 30_000)
  const second = go(of(1012.5, 20, later), later, first.track)
  expect(second.reading?.quote.primary_market).toMatchObject({
    last_mint_block: 20,
    last_mint_size: 12.5,
    last_mint_at: later.toISOString(),
  })
})
