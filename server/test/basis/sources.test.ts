import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAerodromeSlipstream } from '../../src/adapters/prices/aerodrome-slipstream.ts'
import { createAlpaca } from '../../src/adapters/prices/alpaca.ts'
import { createChainlink } from '../../src/adapters/prices/chainlink.ts'
import { createCoinbaseStocks } from '../../src/adapters/prices/coinbase-stocks.ts'
import { configuredSources } from '../../src/adapters/prices/configured-sources.ts'
import { SELECTOR } from '../../src/adapters/prices/evm-rpc.ts'
import { createEvmSupply } from '../../src/adapters/prices/evm-supply.ts'
import { createHttpFetch } from '../../src/adapters/prices/http-fetch.ts'
import { createJupiter } from '../../src/adapters/prices/jupiter.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { createSolana } from '../../src/adapters/prices/solana.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import { collect } from '../../src/modules/basis/collect.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import type { Covered, Observation, PriceSource } from '../../src/modules/basis/price-source.ts'
import { createTestClock } from '../clock.ts'
import {
  accountShape,
  block,
  coinbaseToken,
  mintAccount,
  NOW,
  pythShape,
  unix,
  words,
  xstocksAsset,
  xstocksMultiplier,
  xstocksReserves,
} from './shapes.ts'
import { type Answer, type Answerer, answerRpc, startUpstream, type Upstream } from './upstream.ts'

const coverage = loadCoverage()
const tslax = coverage.find('TSLAx')!
const pool = '0x1111111111111111111111111111111111111111'
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const aaplc: Covered = {
  ...coverage.find('AAPLc')!,
  pools: [{ kind: 'uniswap-v3', address: pool, quoteAddress: usdc, quoteDecimals: 6 }],
  lockedHolders: [{ label: 'vault', address: '0x2222222222222222222222222222222222222222' }],
}

let upstream: Upstream
let answer: Answerer
const bodies = new Map<string, Uint8Array>()
const fetch = createHttpFetch({ clock: createTestClock(NOW), timeoutMs: 300, maxBytes: 200_000 })

beforeAll(async () => {
  upstream = await startUpstream((asked) => answer(asked))
})
afterAll(() => upstream.close())
beforeEach(() => bodies.clear())

/** Asks the source about one wrapper and gives what it observed, or why it was refused. */
async function ask(
  source: PriceSource,
  covered: Covered,
  how: Answerer,
): Promise<{ seen: Observation[]; refused: (string | undefined)[] }> {
  answer = how
  const collected = await collect(source, [covered], NOW, {
    fetch,
    keepBody: async (sha256, body) => void bodies.set(sha256, body),
  })
  return {
    seen: collected.flatMap(({ kept }) => kept.map(({ observation }) => observation)),
    refused: collected.map(({ refused }) => refused).filter((reason) => reason !== undefined),
  }
}

const always =
  (given: Answer): Answerer =>
  () =>
    given

describe('pyth', () => {
  const source = () => createPythHermes({ baseUrl: upstream.url, apiKey: 'secret' })
  const feed = tslax.pythFeedId!
  const of = (change: Parameters<typeof pythShape>[0][string]) => always({ json: pythShape({ [feed]: change }) })

  test('reads price, error and publish time, and sends its key', async () => {
    let sent: string | undefined
    const { seen } = await ask(source(), tslax, ({ headers }) => {
      sent = headers.authorization
      return { json: pythShape({ [feed]: { price: '34215500', conf: '8200' } }) }
    })
    expect(sent).toBe('Bearer secret')
    expect(seen).toEqual([
      { kind: 'share_price', underlying: 'TSLA', price: 342.155, conf: expect.closeTo(0.082, 9), publishedAt: NOW },
    ])
    expect(bodies.size).toBe(1)
  })

  test.each<[string, Answerer, RegExp]>([
    ['a zero price', of({ price: '0' }), /not a price/],
    ['a negative price', of({ price: '-34215500' }), /not a price/],
    ['a price that is no number', of({ price: 'NaN' }), /not a number/],
    ['a wrong exponent', of({ price: '34215500', expo: 8 }), /exponent/],
    ['a timestamp from the future', of({ price: '34215500', publish_time: unix(NOW) + 600 }), /in the future/],
    ['no feeds', always({ json: { parsed: [] } }), /none of the feeds/],
    ['a feed nobody asked for', always({ json: pythShape({ ['a'.repeat(64)]: { price: '1' } }) }), /not asked for/],
  ])('refuses %s', async (_name, how, reason) => {
    const { seen, refused } = await ask(source(), tslax, how)
    expect(seen).toEqual([])
    expect(refused[0]).toMatch(reason)
  })
})

describe('any source', () => {
  const source = () => createPythHermes({ baseUrl: upstream.url })
  const whole = JSON.stringify(pythShape({ [tslax.pythFeedId!]: { price: '34215500' } }))

  test.each<[string, Answer, RegExp]>([
    ['status 500', { status: 500, json: { error: 'oops' } }, /status 500/],
    ['status 403', { status: 403, text: 'forbidden' }, /status 403/],
    [
      'a redirect',
      { raw: (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
      /status 302/,
    ],
    ['half an answer', { text: whole.slice(0, whole.length / 2) }, /cut short/],
    [
      'a connection that breaks',
      {
        raw: (_request, response) => {
          response.writeHead(200, { 'content-length': '9999' })
          response.write('{"parsed":')
          setTimeout(() => response.destroy(), 20)
        },
      },
      /cut short/,
    ],
    ['silence', { raw: () => {} }, /did not answer within 300 ms/],
    [
      'an answer without end',
      {
        raw: (_request, response) => {
          response.on('error', () => {})
          const more = () => response.writable && response.write('x'.repeat(50_000), () => setImmediate(more))
          more()
        },
      },
      /larger than 200000 bytes/,
    ],
    ['a list where an object belongs', { json: [] }, /missing/],
    [
      'something that is not UTF-8',
      { raw: (_request, response) => response.end(Buffer.from([0xff, 0xfe, 0x22])) },
      /cut short or is not JSON/,
    ],
  ])('that answers with %s is refused', async (_name, given, reason) => {
    const { seen, refused } = await ask(source(), tslax, always(given))
    expect(seen).toEqual([])
    expect(refused[0]).toMatch(reason)
  })

  test('a recorded body replays through the same code', async () => {
    const first = await ask(source(), tslax, always({ text: whole }))
    const [[, body]] = [...bodies] as [[string, Uint8Array]]
    const [request] = source().ask([tslax], NOW)
    const replayed = source().read(request!, { status: 200, body, fetchedAt: NOW })
    expect(replayed.observations).toEqual(first.seen)
  })

  test('publishes no key in an address', () => {
    const [request] = createChainlink({
      endpoint: { url: 'https://user:pass@node.example/v2/KEY?apikey=KEY', chain: 'base' },
    }).ask([aaplc], NOW)
    expect(request!.shownUrl).toBe('https://node.example')
  })
})

describe('xstocks', () => {
  const source = () => createXStocks({ baseUrl: `${upstream.url}/api/v2/public` })
  const serve =
    (parts: { asset?: unknown; multiplier?: unknown; reserves?: unknown }): Answerer =>
    ({ path }) => ({
      json: path.endsWith('/multiplier')
        ? (parts.multiplier ?? xstocksMultiplier())
        : path.includes('/proof-of-reserves/')
          ? 'reserves' in parts
            ? parts.reserves
            : xstocksReserves()
          : (parts.asset ?? xstocksAsset()),
    })

  test('reads the issuer, the announced multiplier and the report', async () => {
    const multiplier = xstocksMultiplier({ newMultiplier: 1.0039, activationDateTime: '2026-11-20T14:30:00Z' })
    const { seen } = await ask(source(), tslax, serve({ multiplier }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: true }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'halt', underlying: 'TSLA', halted: false }))
    expect(seen).toContainEqual(
      expect.objectContaining({
        kind: 'multiplier',
        current: 1,
        next: { value: 1.0039, at: new Date('2026-11-20T14:30:00Z') },
      }),
    )
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'reserves', ratio: 1.01, ratioBasis: 'reserve_report' }),
    )
  })

  test('a symbol without a report has none, and that is not an error', async () => {
    const { seen, refused } = await ask(source(), tslax, serve({ reserves: null }))
    expect(refused).toEqual([])
    expect(seen.some(({ kind }) => kind === 'reserves')).toBe(false)
  })

  test('a halt closes creation', async () => {
    const { seen } = await ask(source(), tslax, serve({ asset: xstocksAsset({ isTradingHalted: true }) }))
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, why: 'the issuer has halted trading' }),
    )
  })

  test.each([
    ['a negative multiplier', { multiplier: xstocksMultiplier({ currentMultiplier: -1 }) }, /currentMultiplier is -1/],
    ['a report from the future', { reserves: xstocksReserves({ timestamp: '2027-01-01T00:00:00Z' }) }, /in the future/],
    ['a report on nothing', { reserves: xstocksReserves({ circulatingSupply: '0' }) }, /circulatingSupply is 0/],
    ['another underlying', { asset: xstocksAsset({ underlyingSymbol: 'NVDA' }) }, /another underlying/],
  ])('refuses %s', async (_name, parts, reason) => {
    expect((await ask(source(), tslax, serve(parts))).refused[0]).toMatch(reason)
  })
})

describe('coinbase', () => {
  const source = () => createCoinbaseStocks({ url: `${upstream.url}/v1/tokenized-stocks` })
  const of = (change: Record<string, unknown>) => always({ json: { tokens: [coinbaseToken(aaplc, change)] } })

  test('reads supply, multiplier and net asset value, and calls the ratio a claim', async () => {
    const { seen } = await ask(source(), aaplc, of({}))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'token_reference', price: 250.1 }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'supply', tokens: 2500 }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'reserves', ratio: 1, ratioBasis: 'issuer_claim' }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: true }))
  })

  test.each([
    ['wrong decimals', of({ decimals: 18 }), /other decimals/],
    ['a zero price', of({ nav_price: '0' }), /not a price/],
    ['a price from the future', of({ nav_price_updated_at: '2027-01-01T00:00:00Z' }), /in the future/],
    ['a list without ours', always({ json: { tokens: [] } }), /none of the covered/],
  ])('refuses %s', async (_name, how, reason) => {
    expect((await ask(source(), aaplc, how)).refused[0]).toMatch(reason)
  })

  test('a paused feature closes creation', async () => {
    const { seen } = await ask(source(), aaplc, of({ paused_features: ['MINT'] }))
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, why: 'the issuer has paused MINT' }),
    )
  })
})

describe('solana', () => {
  const source = () => createSolana({ rpcUrl: upstream.url })
  const mint = (
    options: Partial<Parameters<typeof mintAccount>[0]> = {},
    account: Record<string, unknown> = {},
    time: unknown = unix(NOW),
  ): Answerer => {
    const data = mintAccount({
      supply: 12_345_678_900_000n,
      decimals: 8,
      scaled: { multiplier: 1, next: 1.0039, nextAt: unix(NOW) + 60 },
      ...options,
    })
    return ({ body }) => answerRpc(body, (method) => (method === 'getBlockTime' ? time : accountShape(data, account)))
  }

  test('decodes supply and the multiplier with its time from the account itself', async () => {
    const { seen } = await ask(source(), tslax, mint())
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'supply', tokens: 123456.789, block: 380_000_000, publishedAt: NOW }),
    )
    expect(seen).toContainEqual(
      expect.objectContaining({
        kind: 'multiplier',
        onChain: true,
        current: 1,
        next: { value: 1.0039, at: new Date(NOW.getTime() + 60_000) },
      }),
    )
  })

  test('a mint without the extension is one share a token; a paused one takes no orders', async () => {
    const { seen } = await ask(source(), tslax, mint({ scaled: undefined, paused: true }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'multiplier', current: 1, next: null }))
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, why: 'the mint is paused' }),
    )
  })

  test.each<[string, Answerer, RegExp]>([
    ['wrong decimals', mint({ decimals: 6 }), /other decimals/],
    ['a multiplier that is none', mint({ scaled: { multiplier: Number.NaN, next: 1, nextAt: 0 } }), /not one/],
    ['an account of another program', mint({}, { owner: '11111111111111111111111111111111' }), /token program/],
    ['an account cut short', mint({}, { data: [Buffer.alloc(40).toString('base64'), 'base64'] }), /too short/],
    ['a block from the future', mint({}, {}, unix(NOW) + 3600), /in the future/],
  ])('refuses %s', async (_name, how, reason) => {
    const { seen, refused } = await ask(source(), tslax, how)
    expect(seen).toEqual([])
    expect(refused[0]).toMatch(reason)
  })
})

describe('jupiter', () => {
  const source = () => createJupiter({ baseUrl: upstream.url })
  const withMeme = { ...tslax, meme: { symbol: 'MOON', address: 'MoonMoonMoonMoonMoonMoonMoonMoonMoonMoonMoo' } }
  const of = (change: Record<string, unknown>) =>
    always({
      json: {
        [tslax.address]: {
          usdPrice: 343.2,
          liquidity: 812_345.6,
          blockId: 380_000_001,
          decimals: 8,
          priceChange24h: 1.2,
          ...change,
        },
      },
    })

  test('reads the price of a wrapper, and its memecoin’s day as a fraction', async () => {
    const { seen } = await ask(source(), withMeme, () => ({
      json: {
        [tslax.address]: { usdPrice: 343.2, liquidity: 812_345.6, blockId: 1, decimals: 8 },
        [withMeme.meme.address]: { usdPrice: 0.01, decimals: 6, priceChange24h: 42 },
      },
    }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'token_price', price: 343.2, liquidityUsd: 812_345.6 }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'meme', symbol: 'MOON', change24h: 0.42 }))
  })

  test.each([
    ['wrong decimals', of({ decimals: 9 }), /other decimals/],
    ['a negative price', of({ usdPrice: -1 }), /not a price/],
    ['negative liquidity', of({ liquidity: -5 }), /negative/],
    ['nothing', always({ json: {} }), /none of the covered/],
  ])('refuses %s', async (_name, how, reason) => {
    expect((await ask(source(), tslax, how)).refused[0]).toMatch(reason)
  })
})

describe('alpaca', () => {
  const source = () =>
    createAlpaca({ dataUrl: upstream.url, tradingUrl: upstream.url, keyId: 'id', secretKey: 'secret' })
  const serve =
    (parts: { quote?: unknown; clock?: unknown; calendar?: unknown } = {}): Answerer =>
    ({ path }) => ({
      json:
        path === '/v2/clock'
          ? (parts.clock ?? { timestamp: '2026-11-16T10:00:00-05:00', is_open: true })
          : path === '/v2/calendar'
            ? (parts.calendar ?? [{ date: '2026-11-16', open: '09:30', close: '16:00' }])
            : {
                symbol: 'TSLA',
                quote: {
                  bp: 342.1,
                  ap: 342.3,
                  bs: 1,
                  as: 1,
                  t: '2026-11-16T14:59:58.123456789Z',
                  ...(parts.quote as object),
                },
              },
    })

  test('reads the middle of the market with half its width as error, and the exchange’s clock and calendar', async () => {
    const { seen } = await ask(source(), tslax, serve())
    expect(seen).toContainEqual(
      expect.objectContaining({ kind: 'share_price', price: expect.closeTo(342.2, 9), conf: expect.closeTo(0.1, 9) }),
    )
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'exchange_clock', by: 'clock', open: true }))
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'exchange_clock', by: 'calendar', open: true }))
  })

  test('a day without a line has no session', async () => {
    const { seen } = await ask(source(), tslax, serve({ calendar: [] }))
    expect(seen).toContainEqual(expect.objectContaining({ by: 'calendar', open: false }))
  })

  test.each([
    ['a crossed market', { quote: { bp: 343, ap: 342 } }, /not a market/],
    ['an empty bid', { quote: { bp: 0 } }, /not a price/],
    ['a quote from the future', { quote: { t: '2026-11-16T16:00:00Z' } }, /in the future/],
  ])('refuses %s', async (_name, parts, reason) => {
    expect((await ask(source(), tslax, serve(parts))).refused[0]).toMatch(reason)
  })
})

/** A chain that holds one feed, one registry, one token and one pool, as far as the sources ask. */
function chain(change: Partial<Record<keyof typeof SELECTOR | 'block' | 'mints', unknown>> = {}): Answerer {
  const tick = -13863
  const results: Record<string, unknown> = {
    [SELECTOR.latestRoundData]: change.latestRoundData ?? words(9, 25010000000n, 0, unix(NOW) - 30, 9),
    [SELECTOR.getOracleParams]: change.getOracleParams ?? words(10n ** 18n, 0),
    [SELECTOR.slot0]: change.slot0 ?? words(39614081257132168796771975168n, tick, 0, 1, 1, 0, 1),
    [SELECTOR.liquidity]: change.liquidity ?? words(1_000_000_000_000n),
    [SELECTOR.fee]: words(3000),
    [SELECTOR.tickSpacing]: words(60),
    [SELECTOR.token0]: change.token0 ?? words(BigInt(usdc)),
    [SELECTOR.token1]: words(BigInt(aaplc.address)),
    [SELECTOR.totalSupply]: words(2_500_00000000n),
    [SELECTOR.balanceOf]: words(500_00000000n),
    [SELECTOR.ticks]: change.ticks ?? words(5, -5, 0, 0, 0, 0, 0, 1),
  }
  return ({ body }) =>
    answerRpc(body, (method, params) => {
      if (method === 'eth_getBlockByNumber') return change.block ?? block(1000)
      if (method === 'eth_getLogs') {
        const minting = (params[0] as { topics: unknown[] }).topics.length === 2
        return minting ? (change.mints ?? [{ blockNumber: '0x3e0', data: words(50_00000000n) }]) : []
      }
      const { to, data } = params[0] as { to: string; data: string }
      const selector = data.slice(0, 10)
      if (selector === SELECTOR.decimals) return change.decimals ?? words(to === usdc ? 6 : 8)
      if (selector === SELECTOR.tickBitmap)
        return words(BigInt(`0x${data.slice(10)}`) === 0n || BigInt(`0x${data.slice(10)}`) > 10n ? 1n << 20n : 0n)
      return results[selector]
    })
}

describe('chainlink', () => {
  const source = () => createChainlink({ endpoint: { url: upstream.url, chain: 'base' } })

  test('reads an already multiplied feed and the registry’s multiplier', async () => {
    const { seen } = await ask(source(), aaplc, chain())
    expect(seen).toContainEqual({
      kind: 'token_reference',
      asset: aaplc.asset,
      price: 250.1,
      conf: 0,
      publishedAt: new Date(NOW.getTime() - 30_000),
    })
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'multiplier', current: 1, onChain: true }))
  })

  test('a paused registry leaves no price, and closes creation', async () => {
    const { seen } = await ask(source(), aaplc, chain({ getOracleParams: words(10n ** 18n, 1) }))
    expect(seen.some(({ kind }) => kind === 'token_reference')).toBe(false)
    expect(seen).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: false }))
  })

  test.each([
    ['wrong decimals', { decimals: words(18) }, /other decimals/],
    ['a negative answer', { latestRoundData: words(9, -1, 0, unix(NOW), 9) }, /not a price/],
    ['a zero answer', { latestRoundData: words(9, 0, 0, unix(NOW), 9) }, /not a price/],
    ['an answer from the future', { latestRoundData: words(9, 1, 0, unix(NOW) + 3600, 9) }, /in the future/],
    ['an answer without a time', { latestRoundData: words(9, 1, 0, 0, 9) }, /does not say when/],
    ['the answer of an older round', { latestRoundData: words(9, 1, 0, unix(NOW), 8) }, /older round/],
    ['something that is not a feed', { latestRoundData: '0x' }, /0 words where 5/],
    ['a block from the future', { block: block(1000, new Date('2027-01-01')) }, /in the future/],
  ])('refuses %s', async (_name, change, reason) => {
    const { seen, refused } = await ask(source(), aaplc, chain(change))
    expect(seen).toEqual([])
    expect(refused[0]).toMatch(reason)
  })
})

describe('pools', () => {
  const uniswap = () => createUniswapV3({ endpoint: { url: upstream.url, chain: 'base' } })
  const slipstream = () => createAerodromeSlipstream({ endpoint: { url: upstream.url, chain: 'base' } })
  const onSlipstream: Covered = { ...aaplc, pools: [{ ...aaplc.pools[0]!, kind: 'slipstream' }] }

  test('a Uniswap pool is read in one block, with its ticks', async () => {
    const { seen, refused } = await ask(uniswap(), aaplc, chain())
    expect(refused).toEqual([])
    expect(seen[0]).toMatchObject({
      kind: 'venue',
      block: 1000,
      publishedAt: NOW,
      venue: { kind: 'concentrated', id: pool, units: { wrapperIsToken0: false } },
    })
    const venue = (seen[0] as Extract<Observation, { kind: 'venue' }>).venue
    expect(venue.kind === 'concentrated' && venue.pool.ticks.length).toBeGreaterThan(0)
  })

  test('a Slipstream pool is wider and narrower in the right places', async () => {
    const slip = {
      slot0: words(39614081257132168796771975168n, -13863, 0, 1, 1, 1),
      // liquidityGross, liquidityNet, stakedLiquidityNet, two growths of fees, one of rewards, three of time, initialized.
      ticks: words(5, -5, 3, 11, 12, 13, 14, 15, 16, 1),
    }
    const { seen } = await ask(slipstream(), onSlipstream, chain(slip))
    expect(seen).toHaveLength(1)
    const { venue } = seen[0] as Extract<Observation, { kind: 'venue' }>
    const nets = venue.kind === 'concentrated' ? venue.pool.ticks.map(({ liquidityNet }) => liquidityNet) : []
    expect(new Set(nets)).toEqual(new Set([-5n]))
    expect((await ask(uniswap(), aaplc, chain(slip))).refused[0]).toMatch(/6 words where 7/)
    expect((await ask(slipstream(), onSlipstream, chain())).refused[0]).toMatch(/7 words where 6/)
  })

  test.each([
    ['another pair', { token0: words(7) }, /does not trade/],
    ['wrong decimals', { decimals: words(18) }, /other decimals/],
    ['no price', { slot0: words(0, 0, 0, 0, 0, 0, 1) }, /no price yet/],
    ['a marked tick that is not initialised', { ticks: words(0, 0, 0, 0, 0, 0, 0, 0) }, /not initialised/],
  ])('a pool with %s is refused', async (_name, change, reason) => {
    expect((await ask(uniswap(), aaplc, chain(change))).refused[0]).toMatch(reason)
  })
})

test('the supply of an EVM token comes with its mints and locked balances', async () => {
  const source = createEvmSupply({ endpoint: { url: upstream.url, chain: 'base' } })
  const { seen } = await ask(source, aaplc, chain())
  expect(seen).toContainEqual(expect.objectContaining({ kind: 'supply', tokens: 2500, block: 1000 }))
  expect(seen).toContainEqual(
    expect.objectContaining({
      kind: 'issuance',
      events: [{ at: NOW.toISOString(), block: 992, size: 50 }],
      toBlock: 1000,
    }),
  )
  expect(seen).toContainEqual(expect.objectContaining({ kind: 'locked', tokens: 500 }))
})

test('the selectors are those of the functions they name', async () => {
  const { toFunctionSelector } = await import('viem')
  const takes: Partial<Record<keyof typeof SELECTOR, string>> = {
    tickBitmap: 'int16',
    ticks: 'int24',
    balanceOf: 'address',
    getOracleParams: 'address',
  }
  for (const [name, selector] of Object.entries(SELECTOR))
    expect(toFunctionSelector(`function ${name}(${takes[name as keyof typeof SELECTOR] ?? ''})`)).toBe(selector)
})

test('every source is off until it is configured', () => {
  expect(configuredSources({})).toEqual([])
  expect(configuredSources({ alpacaKeyId: 'id' })).toEqual([])
  const all = configuredSources({
    pythUrl: 'https://a.example',
    baseRpcUrl: 'https://b.example',
    xstocksUrl: 'https://c.example',
    coinbaseStocksUrl: 'https://d.example',
    solanaRpcUrl: 'https://e.example',
    jupiterUrl: 'https://f.example',
    alpacaKeyId: 'id',
    alpacaSecretKey: 'secret',
  })
  const ids = all.map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
  expect(ids).toEqual([
    'pyth',
    'chainlink',
    'uniswap-v3',
    'slipstream',
    'base-supply',
    'xstocks',
    'coinbase',
    'solana',
    'jupiter',
    'alpaca',
  ])
})
