import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAerodromeSlipstream } from '../../src/adapters/prices/aerodrome-slipstream.ts'
import { createAlpaca } from '../../src/adapters/prices/alpaca.ts'
import { createChainlink } from '../../src/adapters/prices/chainlink.ts'
import { createCoinbaseStocks } from '../../src/adapters/prices/coinbase-stocks.ts'
import { createConfiguredSources } from '../../src/adapters/prices/configured-sources.ts'
import { SELECTOR } from '../../src/adapters/prices/evm-rpc.ts'
import { createEvmSupply } from '../../src/adapters/prices/evm-supply.ts'
import { createHttpFetch } from '../../src/adapters/prices/http-fetch.ts'
import { createJupiter } from '../../src/adapters/prices/jupiter.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { createSolana } from '../../src/adapters/prices/solana.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import { pollSource } from '../../src/modules/basis/poll-source.ts'
import type { CoveredWrapper, Observation, PriceSource } from '../../src/modules/basis/price-source.ts'
import { createTestClock } from '../clock.ts'
import {
  block,
  coinbaseToken,
  mintAccount,
  NOW,
  pythResponse,
  solanaAccountResponse,
  unix,
  words,
  xstocksAsset,
  xstocksMultiplier,
  xstocksReserves,
} from './source-responses.ts'
import {
  replyToRpcBatch,
  startUpstream,
  type Upstream,
  type UpstreamHandler,
  type UpstreamReply,
} from './upstream-server.ts'

const coverage = loadCoverage()
const tslax = coverage.find('TSLAx')!
const pool = '0x1111111111111111111111111111111111111111'
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913'
const aaplc: CoveredWrapper = {
  ...coverage.find('AAPLc')!,
  pools: [{ kind: 'uniswap-v3', address: pool, quoteAddress: usdc, quoteDecimals: 6 }],
  lockedHolders: [{ label: 'vault', address: '0x2222222222222222222222222222222222222222' }],
}

let upstream: Upstream
let handler: UpstreamHandler
const bodies = new Map<string, Uint8Array>()
const fetch = createHttpFetch({ clock: createTestClock(NOW), timeoutMs: 1_500, maxBytes: 200_000 })

beforeAll(async () => {
  upstream = await startUpstream((request) => handler(request))
})
afterAll(() => upstream.close())
beforeEach(() => bodies.clear())

/** Polls the source for one wrapper; returns its observations and the reasons of rejected requests. */
async function poll(
  source: PriceSource,
  wrapper: CoveredWrapper,
  upstreamHandler: UpstreamHandler,
): Promise<{ observations: Observation[]; rejections: string[] }> {
  handler = upstreamHandler
  const results = await pollSource(source, [wrapper], NOW, {
    fetch,
    storeBody: async (sha256, body) => void bodies.set(sha256, body),
  })
  return {
    observations: results.flatMap((result) => result.observations.map(({ observation }) => observation)),
    rejections: results.flatMap(({ rejection }) => (rejection === undefined ? [] : [rejection])),
  }
}

const always =
  (reply: UpstreamReply): UpstreamHandler =>
  () =>
    reply

describe('pyth', () => {
  const source = () => createPythHermes({ baseUrl: upstream.url, apiKey: 'secret' })
  const feed = tslax.pythFeedId!
  const responseWith = (overrides: Parameters<typeof pythResponse>[0][string]) =>
    always({ json: pythResponse({ [feed]: overrides }) })

  test('reads price, confidence interval and publish time, and sends its key', async () => {
    let authorization: string | undefined
    const { observations } = await poll(source(), tslax, ({ headers }) => {
      authorization = headers.authorization
      return { json: pythResponse({ [feed]: { price: '34215500', conf: '8200' } }) }
    })
    expect(authorization).toBe('Bearer secret')
    expect(observations).toEqual([
      { kind: 'share_price', underlying: 'TSLA', price: 342.155, conf: expect.closeTo(0.082, 9), publishedAt: NOW },
    ])
    expect(bodies.size).toBe(1)
  })

  test.each<[string, UpstreamHandler, RegExp]>([
    ['a zero price', responseWith({ price: '0' }), /not a price/],
    ['a negative price', responseWith({ price: '-34215500' }), /not a price/],
    ['a price that is not a number', responseWith({ price: 'NaN' }), /not a number/],
    ['a wrong exponent', responseWith({ price: '34215500', expo: 8 }), /exponent/],
    [
      'a timestamp from the future',
      responseWith({ price: '34215500', publish_time: unix(NOW) + 600 }),
      /in the future/,
    ],
    ['no feeds', always({ json: { parsed: [] } }), /none of the requested feeds/],
    [
      'a feed that was not requested',
      always({ json: pythResponse({ ['a'.repeat(64)]: { price: '1' } }) }),
      /not requested/,
    ],
  ])('rejects %s', async (_name, handler, reason) => {
    const { observations, rejections } = await poll(source(), tslax, handler)
    expect(observations).toEqual([])
    expect(rejections[0]).toMatch(reason)
  })
})

describe('any source', () => {
  const source = () => createPythHermes({ baseUrl: upstream.url })
  const validBody = JSON.stringify(pythResponse({ [tslax.pythFeedId!]: { price: '34215500' } }))

  test.each<[string, UpstreamReply, RegExp]>([
    ['status 500', { status: 500, json: { error: 'oops' } }, /status 500/],
    ['status 403', { status: 403, text: 'forbidden' }, /status 403/],
    [
      'a redirect',
      { raw: (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
      /status 302/,
    ],
    ['half a response', { text: validBody.slice(0, validBody.length / 2) }, /cut short/],
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
    ['no response', { raw: () => {} }, /did not answer within 1500 ms/],
    [
      'an endless response',
      {
        raw: (_request, response) => {
          response.on('error', () => {})
          const writeMore = () => response.writable && response.write('x'.repeat(50_000), () => setImmediate(writeMore))
          writeMore()
        },
      },
      /larger than 200000 bytes/,
    ],
    ['a list where an object belongs', { json: [] }, /missing/],
    [
      'a body that is not UTF-8',
      { raw: (_request, response) => response.end(Buffer.from([0xff, 0xfe, 0x22])) },
      /cut short or is not JSON/,
    ],
  ])('that answers with %s is rejected', async (_name, reply, reason) => {
    const { observations, rejections } = await poll(source(), tslax, always(reply))
    expect(observations).toEqual([])
    expect(rejections[0]).toMatch(reason)
  })

  test('a recorded body can be replayed through the same code', async () => {
    const first = await poll(source(), tslax, always({ text: validBody }))
    const [[, body]] = [...bodies] as [[string, Uint8Array]]
    const [request] = source().buildRequests([tslax], NOW)
    const replayed = source().parseResponse(request!, { status: 200, body, fetchedAt: NOW })
    expect(replayed.observations).toEqual(first.observations)
  })

  test('the published URL contains no key', () => {
    const [request] = createChainlink({
      endpoint: { url: 'https://user:pass@node.example/v2/KEY?apikey=KEY', chain: 'base' },
    }).buildRequests([aaplc], NOW)
    expect(request!.publicUrl).toBe('https://node.example')
  })
})

describe('xstocks', () => {
  const source = () => createXStocks({ baseUrl: `${upstream.url}/api/v2/public` })
  const serve =
    (responses: { asset?: unknown; multiplier?: unknown; reserves?: unknown }): UpstreamHandler =>
    ({ path }) => ({
      json: path.endsWith('/multiplier')
        ? (responses.multiplier ?? xstocksMultiplier())
        : path.includes('/proof-of-reserves/')
          ? 'reserves' in responses
            ? responses.reserves
            : xstocksReserves()
          : (responses.asset ?? xstocksAsset()),
    })

  test('reads the issuer state, the announced multiplier and the reserve report', async () => {
    const multiplier = xstocksMultiplier({ newMultiplier: 1.0039, activationDateTime: '2026-11-20T14:30:00Z' })
    const { observations } = await poll(source(), tslax, serve({ multiplier }))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: true }))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'halt', underlying: 'TSLA', halted: false }))
    expect(observations).toContainEqual(
      expect.objectContaining({
        kind: 'multiplier',
        current: 1,
        next: { value: 1.0039, at: new Date('2026-11-20T14:30:00Z') },
      }),
    )
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'reserves', ratio: 1.01, ratioBasis: 'reserve_report' }),
    )
  })

  test('a symbol without a reserve report is not an error', async () => {
    const { observations, rejections } = await poll(source(), tslax, serve({ reserves: null }))
    expect(rejections).toEqual([])
    expect(observations.some(({ kind }) => kind === 'reserves')).toBe(false)
  })

  test('a halt closes creation', async () => {
    const { observations } = await poll(source(), tslax, serve({ asset: xstocksAsset({ isTradingHalted: true }) }))
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, reason: 'the issuer has halted trading' }),
    )
  })

  test.each([
    ['a negative multiplier', { multiplier: xstocksMultiplier({ currentMultiplier: -1 }) }, /currentMultiplier is -1/],
    ['a report from the future', { reserves: xstocksReserves({ timestamp: '2027-01-01T00:00:00Z' }) }, /in the future/],
    [
      'a report with a supply of zero',
      { reserves: xstocksReserves({ circulatingSupply: '0' }) },
      /circulatingSupply is 0/,
    ],
    ['another underlying', { asset: xstocksAsset({ underlyingSymbol: 'NVDA' }) }, /another underlying/],
  ])('rejects %s', async (_name, responses, reason) => {
    expect((await poll(source(), tslax, serve(responses))).rejections[0]).toMatch(reason)
  })
})

describe('coinbase', () => {
  const source = () => createCoinbaseStocks({ url: `${upstream.url}/v1/tokenized-stocks` })
  const responseWith = (overrides: Record<string, unknown>) =>
    always({ json: { tokens: [coinbaseToken(aaplc, overrides)] } })

  test('reads supply, multiplier and net asset value, and marks the ratio as an issuer claim', async () => {
    const { observations } = await poll(source(), aaplc, responseWith({}))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'token_reference', price: 250.1 }))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'supply', tokens: 2500 }))
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'reserves', ratio: 1, ratioBasis: 'issuer_claim' }),
    )
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: true }))
  })

  test.each([
    ['wrong decimals', responseWith({ decimals: 18 }), /other decimals/],
    ['a zero price', responseWith({ nav_price: '0' }), /not a price/],
    ['a price from the future', responseWith({ nav_price_updated_at: '2027-01-01T00:00:00Z' }), /in the future/],
    ['a list without the covered token', always({ json: { tokens: [] } }), /none of the covered/],
  ])('rejects %s', async (_name, handler, reason) => {
    expect((await poll(source(), aaplc, handler)).rejections[0]).toMatch(reason)
  })

  test('a paused feature closes creation', async () => {
    const { observations } = await poll(source(), aaplc, responseWith({ paused_features: ['MINT'] }))
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, reason: 'the issuer has paused MINT' }),
    )
  })
})

describe('solana', () => {
  const source = () => createSolana({ rpcUrl: upstream.url })
  const mint = (
    options: Partial<Parameters<typeof mintAccount>[0]> = {},
    account: Record<string, unknown> = {},
    time: unknown = unix(NOW),
  ): UpstreamHandler => {
    const data = mintAccount({
      supply: 12_345_678_900_000n,
      decimals: 8,
      scaled: { multiplier: 1, next: 1.0039, nextAt: unix(NOW) + 60 },
      ...options,
    })
    return ({ body }) =>
      replyToRpcBatch(body, (method) => (method === 'getBlockTime' ? time : solanaAccountResponse(data, account)))
  }

  test('decodes the supply and the announced multiplier from the mint account', async () => {
    const { observations } = await poll(source(), tslax, mint())
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'supply', tokens: 123456.789, block: 380_000_000, publishedAt: NOW }),
    )
    expect(observations).toContainEqual(
      expect.objectContaining({
        kind: 'multiplier',
        onChain: true,
        current: 1,
        next: { value: 1.0039, at: new Date(NOW.getTime() + 60_000) },
      }),
    )
  })

  test('a mint without the extension has a multiplier of 1, and a paused mint closes creation', async () => {
    const { observations } = await poll(source(), tslax, mint({ scaled: undefined, paused: true }))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'multiplier', current: 1, next: null }))
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'issuer', accepting: false, reason: 'the mint is paused' }),
    )
  })

  test.each<[string, UpstreamHandler, RegExp]>([
    ['wrong decimals', mint({ decimals: 6 }), /other decimals/],
    [
      'a multiplier that is not a number',
      mint({ scaled: { multiplier: Number.NaN, next: 1, nextAt: 0 } }),
      /not a positive number/,
    ],
    ['an account of another program', mint({}, { owner: '11111111111111111111111111111111' }), /token program/],
    ['a truncated account', mint({}, { data: [Buffer.alloc(40).toString('base64'), 'base64'] }), /too short/],
    ['a block from the future', mint({}, {}, unix(NOW) + 3600), /in the future/],
  ])('rejects %s', async (_name, handler, reason) => {
    const { observations, rejections } = await poll(source(), tslax, handler)
    expect(observations).toEqual([])
    expect(rejections[0]).toMatch(reason)
  })
})

describe('jupiter', () => {
  const source = () => createJupiter({ baseUrl: upstream.url })
  const withMeme = { ...tslax, meme: { symbol: 'MOON', address: 'MoonMoonMoonMoonMoonMoonMoonMoonMoonMoonMoo' } }
  const responseWith = (overrides: Record<string, unknown>) =>
    always({
      json: {
        [tslax.address]: {
          usdPrice: 343.2,
          liquidity: 812_345.6,
          blockId: 380_000_001,
          decimals: 8,
          priceChange24h: 1.2,
          ...overrides,
        },
      },
    })

  test('reads the price of a wrapper, and the 24-hour change of its memecoin as a fraction', async () => {
    const { observations } = await poll(source(), withMeme, () => ({
      json: {
        [tslax.address]: { usdPrice: 343.2, liquidity: 812_345.6, blockId: 1, decimals: 8 },
        [withMeme.meme.address]: { usdPrice: 0.01, decimals: 6, priceChange24h: 42 },
      },
    }))
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'token_price', price: 343.2, liquidityUsd: 812_345.6 }),
    )
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'meme', symbol: 'MOON', change24h: 0.42 }))
  })

  test.each([
    ['wrong decimals', responseWith({ decimals: 9 }), /other decimals/],
    ['a negative price', responseWith({ usdPrice: -1 }), /not a price/],
    ['negative liquidity', responseWith({ liquidity: -5 }), /negative/],
    ['an empty response', always({ json: {} }), /none of the covered/],
  ])('rejects %s', async (_name, handler, reason) => {
    expect((await poll(source(), tslax, handler)).rejections[0]).toMatch(reason)
  })
})

describe('alpaca', () => {
  const source = () =>
    createAlpaca({ dataUrl: upstream.url, tradingUrl: upstream.url, keyId: 'id', secretKey: 'secret' })
  const serve =
    (responses: { quote?: unknown; clock?: unknown; calendar?: unknown } = {}): UpstreamHandler =>
    ({ path }) => ({
      json:
        path === '/v2/clock'
          ? (responses.clock ?? { timestamp: '2026-11-16T10:00:00-05:00', is_open: true })
          : path === '/v2/calendar'
            ? (responses.calendar ?? [{ date: '2026-11-16', open: '09:30', close: '16:00' }])
            : {
                symbol: 'TSLA',
                quote: {
                  bp: 342.1,
                  ap: 342.3,
                  bs: 1,
                  as: 1,
                  t: '2026-11-16T14:59:58.123456789Z',
                  ...(responses.quote as object),
                },
              },
    })

  test('reads the mid price with half the spread as error, and the exchange’s clock and calendar', async () => {
    const { observations } = await poll(source(), tslax, serve())
    expect(observations).toContainEqual(
      expect.objectContaining({ kind: 'share_price', price: expect.closeTo(342.2, 9), conf: expect.closeTo(0.1, 9) }),
    )
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'exchange_clock', by: 'clock', open: true }))
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'exchange_clock', by: 'calendar', open: true }))
  })

  test('a day that the calendar does not list has no session', async () => {
    const { observations } = await poll(source(), tslax, serve({ calendar: [] }))
    expect(observations).toContainEqual(expect.objectContaining({ by: 'calendar', open: false }))
  })

  test.each([
    ['a crossed market', { quote: { bp: 343, ap: 342 } }, /not a valid quote/],
    ['an empty bid', { quote: { bp: 0 } }, /not a price/],
    ['a quote from the future', { quote: { t: '2026-11-16T16:00:00Z' } }, /in the future/],
  ])('rejects %s', async (_name, responses, reason) => {
    expect((await poll(source(), tslax, serve(responses))).rejections[0]).toMatch(reason)
  })
})

/** An EVM chain with one feed, one registry, one token and one pool. */
function evmChain(
  overrides: Partial<Record<keyof typeof SELECTOR | 'block' | 'mints', unknown>> = {},
): UpstreamHandler {
  const tick = -13863
  const results: Record<string, unknown> = {
    [SELECTOR.latestRoundData]: overrides.latestRoundData ?? words(9, 25010000000n, 0, unix(NOW) - 30, 9),
    [SELECTOR.getOracleParams]: overrides.getOracleParams ?? words(10n ** 18n, 0),
    [SELECTOR.slot0]: overrides.slot0 ?? words(39614081257132168796771975168n, tick, 0, 1, 1, 0, 1),
    [SELECTOR.liquidity]: overrides.liquidity ?? words(1_000_000_000_000n),
    [SELECTOR.fee]: words(3000),
    [SELECTOR.tickSpacing]: words(60),
    [SELECTOR.token0]: overrides.token0 ?? words(BigInt(usdc)),
    [SELECTOR.token1]: words(BigInt(aaplc.address)),
    [SELECTOR.totalSupply]: words(2_500_00000000n),
    [SELECTOR.balanceOf]: words(500_00000000n),
    [SELECTOR.ticks]: overrides.ticks ?? words(5, -5, 0, 0, 0, 0, 0, 1),
  }
  return ({ body }) =>
    replyToRpcBatch(body, (method, params) => {
      if (method === 'eth_getBlockByNumber') return overrides.block ?? block(1000)
      if (method === 'eth_getLogs') {
        const minting = (params[0] as { topics: unknown[] }).topics.length === 2
        return minting ? (overrides.mints ?? [{ blockNumber: '0x3e0', data: words(50_00000000n) }]) : []
      }
      const { to, data } = params[0] as { to: string; data: string }
      const selector = data.slice(0, 10)
      if (selector === SELECTOR.decimals) return overrides.decimals ?? words(to === usdc ? 6 : 8)
      if (selector === SELECTOR.tickBitmap)
        return words(BigInt(`0x${data.slice(10)}`) === 0n || BigInt(`0x${data.slice(10)}`) > 10n ? 1n << 20n : 0n)
      return results[selector]
    })
}

describe('chainlink', () => {
  const source = () => createChainlink({ endpoint: { url: upstream.url, chain: 'base' } })

  test('reads a feed that includes the multiplier, and the multiplier of the registry', async () => {
    const { observations } = await poll(source(), aaplc, evmChain())
    expect(observations).toContainEqual({
      kind: 'token_reference',
      asset: aaplc.asset,
      price: 250.1,
      conf: 0,
      publishedAt: new Date(NOW.getTime() - 30_000),
    })
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'multiplier', current: 1, onChain: true }))
  })

  test('a paused registry gives no price and closes creation', async () => {
    const { observations } = await poll(source(), aaplc, evmChain({ getOracleParams: words(10n ** 18n, 1) }))
    expect(observations.some(({ kind }) => kind === 'token_reference')).toBe(false)
    expect(observations).toContainEqual(expect.objectContaining({ kind: 'issuer', accepting: false }))
  })

  test.each([
    ['wrong decimals', { decimals: words(18) }, /other decimals/],
    ['a negative answer', { latestRoundData: words(9, -1, 0, unix(NOW), 9) }, /not a price/],
    ['a zero answer', { latestRoundData: words(9, 0, 0, unix(NOW), 9) }, /not a price/],
    ['an answer from the future', { latestRoundData: words(9, 1, 0, unix(NOW) + 3600, 9) }, /in the future/],
    ['an answer without a time', { latestRoundData: words(9, 1, 0, 0, 9) }, /no update time/],
    ['the answer of an older round', { latestRoundData: words(9, 1, 0, unix(NOW), 8) }, /older round/],
    ['something that is not a feed', { latestRoundData: '0x' }, /0 words instead of 5/],
    ['a block from the future', { block: block(1000, new Date('2027-01-01')) }, /in the future/],
  ])('rejects %s', async (_name, overrides, reason) => {
    const { observations, rejections } = await poll(source(), aaplc, evmChain(overrides))
    expect(observations).toEqual([])
    expect(rejections[0]).toMatch(reason)
  })
})

describe('pools', () => {
  const ticksOf = (observation: Observation) => {
    if (observation.kind !== 'venue' || observation.venue.kind !== 'concentrated') throw new Error('No pool was read.')
    return observation.venue.pool.ticks
  }
  const uniswap = () => createUniswapV3({ endpoint: { url: upstream.url, chain: 'base' } })
  const slipstream = () => createAerodromeSlipstream({ endpoint: { url: upstream.url, chain: 'base' } })
  const onSlipstream: CoveredWrapper = { ...aaplc, pools: [{ ...aaplc.pools[0]!, kind: 'slipstream' }] }

  test('a Uniswap pool is read at one block, with its ticks', async () => {
    const { observations, rejections } = await poll(uniswap(), aaplc, evmChain())
    expect(rejections).toEqual([])
    expect(observations[0]).toMatchObject({
      kind: 'venue',
      block: 1000,
      publishedAt: NOW,
      venue: { kind: 'concentrated', id: pool, units: { wrapperIsToken0: false } },
    })
    expect(ticksOf(observations[0]!).length).toBeGreaterThan(0)
  })

  test('a Slipstream pool has other result widths than a Uniswap pool, and each adapter rejects the other', async () => {
    const slipstreamResults = {
      slot0: words(39614081257132168796771975168n, -13863, 0, 1, 1, 1),
      // liquidityGross, liquidityNet, stakedLiquidityNet, two growths of fees, one of rewards, three of time, initialized.
      ticks: words(5, -5, 3, 11, 12, 13, 14, 15, 16, 1),
    }
    const { observations } = await poll(slipstream(), onSlipstream, evmChain(slipstreamResults))
    expect(observations).toHaveLength(1)
    const liquidityNets = ticksOf(observations[0]!).map(({ liquidityNet }) => liquidityNet)
    expect(new Set(liquidityNets)).toEqual(new Set([-5n]))
    expect((await poll(uniswap(), aaplc, evmChain(slipstreamResults))).rejections[0]).toMatch(/6 words instead of 7/)
    expect((await poll(slipstream(), onSlipstream, evmChain())).rejections[0]).toMatch(/7 words instead of 6/)
  })

  test.each([
    ['another pair', { token0: words(7) }, /does not trade/],
    ['wrong decimals', { decimals: words(18) }, /other decimals/],
    ['no price', { slot0: words(0, 0, 0, 0, 0, 0, 1) }, /no price yet/],
    ['a marked tick that is not initialised', { ticks: words(0, 0, 0, 0, 0, 0, 0, 0) }, /not initialised/],
  ])('a pool with %s is rejected', async (_name, overrides, reason) => {
    expect((await poll(uniswap(), aaplc, evmChain(overrides))).rejections[0]).toMatch(reason)
  })
})

test('the supply of an EVM token comes with its mints and locked balances', async () => {
  const source = createEvmSupply({ endpoint: { url: upstream.url, chain: 'base' } })
  const { observations } = await poll(source, aaplc, evmChain())
  expect(observations).toContainEqual(expect.objectContaining({ kind: 'supply', tokens: 2500, block: 1000 }))
  expect(observations).toContainEqual(
    expect.objectContaining({
      kind: 'issuance',
      events: [{ at: NOW.toISOString(), block: 992, size: 50 }],
      toBlock: 1000,
    }),
  )
  expect(observations).toContainEqual(expect.objectContaining({ kind: 'locked', tokens: 500 }))
})

test('each selector belongs to the function it names', async () => {
  const { toFunctionSelector } = await import('viem')
  const argumentTypes: Partial<Record<keyof typeof SELECTOR, string>> = {
    tickBitmap: 'int16',
    ticks: 'int24',
    balanceOf: 'address',
    getOracleParams: 'address',
  }
  for (const [name, selector] of Object.entries(SELECTOR))
    expect(toFunctionSelector(`function ${name}(${argumentTypes[name as keyof typeof SELECTOR] ?? ''})`)).toBe(selector)
})

test('every source is off until it is configured', () => {
  expect(createConfiguredSources({})).toEqual([])
  expect(createConfiguredSources({ alpacaKeyId: 'id' })).toEqual([])
  const sources = createConfiguredSources({
    pythUrl: 'https://a.example',
    baseRpcUrl: 'https://b.example',
    xstocksUrl: 'https://c.example',
    coinbaseStocksUrl: 'https://d.example',
    solanaRpcUrl: 'https://e.example',
    jupiterUrl: 'https://f.example',
    alpacaKeyId: 'id',
    alpacaSecretKey: 'secret',
  })
  const ids = sources.map(({ id }) => id)
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
