import { verifyAttestation } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createChainlink } from '../../src/adapters/prices/chainlink.ts'
import { createCoinbaseStocks } from '../../src/adapters/prices/coinbase-stocks.ts'
import { createEvmSupply } from '../../src/adapters/prices/evm-supply.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import type { Attestation } from '../../src/modules/basis/attestation.ts'
import { type Coverage, parseCoverage } from '../../src/modules/basis/coverage.ts'
import { toFraction } from '../../src/modules/basis/integer-math.ts'
import { toSqrtPrice } from '../../src/modules/basis/tick-math.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase } from '../harness.ts'
import { type BasisNode, openBasisNode } from './basis-node.ts'
import { type Contract, type PoolChain, startPoolChain } from './pool-chain.ts'
import {
  coinbaseToken,
  NOW,
  pythResponse,
  unix,
  xstocksAsset,
  xstocksMultiplier,
  xstocksReserves,
} from './source-responses.ts'
import { startUpstream, type Upstream, type UpstreamReply } from './upstream-server.ts'

/**
 * Live mode end to end: real pools, tokens and feeds on the embedded chain, third-party services replaced by servers on
 * the loopback address, from their responses to a signed attestation that a contract accepts.
 */
const PYTH_FEED_ID = '49f6b65cb1de6b10eaf75e7c03ca029c306d0357e91b5311b175084a5ad55688'
const clock = createTestClock(NOW)

type ListedWrapper = { token: Contract; pool: Contract; feed: Contract; symbol: string }

let chain: PoolChain
let actor: Contract
let verifier: Contract
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let upstream: Upstream
let node: BasisNode
let wrappers: { AAPLc: ListedWrapper; AAPLx: ListedWrapper }
const world = { share: 250, multiplier: 1, replies: {} as Record<string, UpstreamReply> }

const unitsOf = (token: Contract, quote: Contract) => ({
  wrapperIsToken0: token.address < quote.address,
  wrapperDecimals: 8,
  quoteDecimals: 6,
})
let quoteToken: Contract

async function listWrapper(symbol: string, wrapperFirst: boolean): Promise<ListedWrapper> {
  let token = await chain.deployTest('TestToken', [8])
  while (token.address < quoteToken.address !== wrapperFirst) token = await chain.deployTest('TestToken', [8])
  await chain.send(token, 'mint', [actor.address, 10n ** 14n])
  const feed = await chain.deployTest('TestFeed')
  const units = unitsOf(token, quoteToken)
  const pool = await chain.createPool(token, quoteToken, 500, toSqrtPrice(toFraction(250), units))
  const { tick } = await readSlot0(pool)
  const base = Math.floor(tick / 10) * 10
  await chain.send(actor, 'provide', [pool.address, base - 6000, base + 6000, 10n ** 12n])
  await chain.send(actor, 'provide', [pool.address, base - 300, base + 300, 5n * 10n ** 12n])
  return { token, pool, feed, symbol }
}

const readSlot0 = async (pool: Contract) => {
  const [, tick] = await chain.read<[bigint, number]>(pool, 'slot0')
  return { tick }
}

const buildCoverage = (listed: ListedWrapper[]): Coverage =>
  parseCoverage({
    version: 1,
    band_bps: 50,
    chains: { base: { kind: 'evm', caip2: 'eip155:8453', asset_namespace: 'erc20' } },
    underlyings: { AAPL: { pyth_feed_id: PYTH_FEED_ID, preview_price: 250 } },
    wrappers: listed.map(({ symbol, token, pool, feed }) => ({
      symbol,
      underlying: 'AAPL',
      issuer: 'The tests',
      deployments: [
        {
          chain: 'base',
          address: token.address,
          decimals: 8,
          issuer_api: symbol.endsWith('c') ? 'coinbase' : 'xstocks',
          feed: { address: feed.address, decimals: 8, includes_multiplier: true },
          registry: feed.address,
          pools: [{ kind: 'uniswap-v3', address: pool.address, quote_address: quoteToken.address, quote_decimals: 6 }],
          locked_holders: [{ label: 'the pool', address: pool.address }],
        },
      ],
    })),
  })

beforeAll(async () => {
  chain = await startPoolChain(clock)
  actor = await chain.deployTest('PoolActor')
  quoteToken = await chain.deployTest('TestToken', [6])
  await chain.send(quoteToken, 'mint', [actor.address, 10n ** 20n])
  wrappers = { AAPLc: await listWrapper('AAPLc', true), AAPLx: await listWrapper('AAPLx', false) }
  const coverage = buildCoverage([wrappers.AAPLc, wrappers.AAPLx])

  upstream = await startUpstream(({ path }) => {
    const source = path.split('/')[1]!
    if (world.replies[source]) return world.replies[source]
    const at = clock.now()
    if (source === 'pyth')
      return { json: pythResponse({ [PYTH_FEED_ID]: { price: String(Math.round(world.share * 1e5)) } }, unix(at) - 1) }
    if (source === 'coinbase') {
      const change = {
        multiplier: String(world.multiplier),
        nav_price: String(world.share * world.multiplier),
        nav_price_updated_at: new Date(at.getTime() - 2000).toISOString(),
      }
      return { json: { tokens: [coinbaseToken(coverage.find('AAPLc')!, change)] } }
    }
    if (path.endsWith('/multiplier')) return { json: xstocksMultiplier({ currentMultiplier: world.multiplier }) }
    if (path.includes('proof-of-reserves')) return { json: xstocksReserves({ symbol: 'AAPLx' }) }
    return { json: xstocksAsset({ symbol: 'AAPLx', underlyingSymbol: 'AAPL' }) }
  })

  scratch = await createTestDatabase()
  database = scratch.open(4)
  const endpoint = { url: chain.rpcUrl, chain: 'base' }
  node = await openBasisNode(database, {
    coverage,
    clock,
    sources: [
      createPythHermes({ baseUrl: `${upstream.url}/pyth` }),
      createChainlink({ endpoint }),
      createUniswapV3({ endpoint }),
      createEvmSupply({ endpoint }),
      createXStocks({ baseUrl: `${upstream.url}/xstocks` }),
      createCoinbaseStocks({ url: `${upstream.url}/coinbase` }),
    ],
  })
  verifier = await chain.deployTest('BasisVerifier', [node.addresses.live])
})
afterAll(async () => {
  await node?.close()
  await database?.close()
  await scratch?.drop()
  await upstream?.close()
  await chain?.close()
})

/** Updates the feeds on the chain to the current prices and runs an ingest round. */
async function runRound(seconds = 15, updateFeeds = true) {
  clock.advance(seconds * 1000)
  if (updateFeeds)
    for (const { feed } of Object.values(wrappers))
      await chain.send(feed, 'set', [
        BigInt(Math.round(world.share * world.multiplier * 1e8)),
        BigInt(unix(clock.now())),
      ])
  return node.basis.runIngestRound()
}

const getQuote = async (symbol = 'AAPLc') => (await node.get(`/api/basis/v1/quote/${symbol}`)).body
const getAttestation = async (symbol = 'AAPLc') =>
  (await node.get(`/api/basis/v1/attestation/${symbol}`)).body as Attestation
const movePrice = (price: number, { token, pool }: ListedWrapper) =>
  chain.send(actor, 'moveTo', [pool.address, [toSqrtPrice(toFraction(price), unitsOf(token, quoteToken))]])
const isAcceptedByContract = ({ evm_signature: { typed_data, value } }: Attestation) =>
  chain.read<boolean>(verifier, 'accepts', [typed_data.message, value])

test('the quote becomes live from several agreeing sources', async () => {
  expect((await getQuote()).source).toBe('preview')
  expect((await runRound()).rejected).toEqual([])
  for (let index = 0; index < 3; index += 1) {
    world.share += 0.01
    await runRound()
  }
  const quotes = [await getQuote('AAPLc'), await getQuote('AAPLx')]
  for (const body of quotes) {
    expect(body).toMatchObject({
      source: 'live',
      preview: false,
      underlying_state: 'open',
      effective_float: { confidence: 'high' },
    })
    expect(body.wrapper_price).toBeCloseTo(250, 4)
    expect(Math.abs(body.basis_bps)).toBeLessThan(5)
    expect(body.effective_float.near_reference_usd).toBeGreaterThan(10_000)
    expect(body.primary_market.creation).toBe('open')
  }
  expect(quotes[0]!.reference_source).toBe('chainlink+coinbase+pyth×multiplier')
  const { body } = await node.get('/api/basis/v1/board')
  expect(body).toMatchObject({ status: 'live', preview: false })
  expect(body.rows[0].float_locked_pct).toBeGreaterThan(0)
})

test('a swap moves the basis of the traded wrapper only', async () => {
  const before = await getQuote('AAPLx')
  await movePrice(257.5, wrappers.AAPLc)
  await runRound()
  const quote = await getQuote()
  expect(quote.wrapper_price).toBeCloseTo(257.5, 4)
  expect(quote.basis_bps).toBeGreaterThan(290)
  expect(quote.effective_float.near_reference_usd).toBe(0)
  expect((await getQuote('AAPLx')).wrapper_price).toBe(before.wrapper_price)
  const { body } = await node.get('/api/basis/v1/board')
  expect(body.rows[0]).toMatchObject({ rank: 1, symbol: 'AAPLc' })
  expect(body.rows[0].window_score).toBeGreaterThan(body.rows[1].window_score)
  expect(node.events.at(-1)).toMatchObject({
    type: 'basis.window_changed',
    data: { symbol: 'AAPLc', previous_status: 'aligned' },
  })
})

test('a mint changes the primary market and lowers the window score', async () => {
  const score = (await node.get('/api/basis/v1/board')).body.rows[0].window_score
  clock.advance(5_000)
  const { block } = await chain.send(wrappers.AAPLc.token, 'mint', [actor.address, 5_000_00000000n])
  for (let index = 0; index < 3; index += 1) await runRound(30)
  const { primary_market } = await getQuote()
  expect(primary_market).toMatchObject({ creation: 'open', last_mint_block: block, last_mint_size: 5000 })
  const row = (await node.get('/api/basis/v1/board')).body.rows.find(
    (entry: { symbol: string }) => entry.symbol === 'AAPLc',
  )
  expect(row.window_score).toBeLessThan(score)
  expect(row.window_status).toBe('supply_responding')
  await chain.send(wrappers.AAPLc.token, 'burn', [actor.address, 1_000_00000000n])
  for (let index = 0; index < 3; index += 1) await runRound(30)
  expect((await getQuote()).primary_market.last_mint_size).toBe(-1000)
})

test('a contract accepts a live attestation and rejects a changed one', async () => {
  await runRound()
  const attestation = await getAttestation()
  expect(verifyAttestation(attestation, { jwks: node.jwks, now: clock.now(), requireLive: true }).ok).toBe(true)
  expect(await isAcceptedByContract(attestation)).toBe(true)
  const changedMessage = { ...attestation.evm_signature.typed_data.message, wrapperPriceE6: '1' }
  const changedAttestation = {
    ...attestation,
    evm_signature: {
      ...attestation.evm_signature,
      typed_data: { ...attestation.evm_signature.typed_data, message: changedMessage },
    },
  }
  expect(await isAcceptedByContract(changedAttestation)).toBe(false)
  expect(attestation.backing).toMatchObject({ ratio: 1, evidence: { ratio_basis: 'issuer_claim', mode: 'live' } })
  expect((await getAttestation('AAPLx')).backing).toMatchObject({
    ratio: 1.01,
    evidence: { ratio_basis: 'reserve_report' },
  })
})

test('a change of shares per token does not change the basis', async () => {
  await movePrice(250, wrappers.AAPLc)
  await runRound()
  const before = (await getQuote()).basis_bps
  world.multiplier = 2
  world.share /= 2
  for (const { feed } of Object.values(wrappers)) await chain.send(feed, 'setParams', [2n * 10n ** 18n, false])
  for (let index = 0; index < 5; index += 1) await runRound()
  const after = await getQuote()
  expect(after.source).toBe('live')
  expect(after.basis_bps).toBeCloseTo(before, 0)
  expect(after.observations.join(' ')).toMatch(/One token represents 2 shares/)
})

test('with stale feeds the reading is a preview with the reasons, and a contract rejects it', async () => {
  world.replies = { pyth: { status: 500, json: {} }, coinbase: { status: 403, text: 'no' } }
  const attestation = await getAttestation()
  for (let index = 0; index < 4; index += 1) await runRound(300, false)
  const body = await getQuote()
  expect(body).toMatchObject({ source: 'preview', preview: true })
  expect(body.observations.join(' ')).toMatch(/No reference can be derived/)
  expect(body.observations.join(' ')).toMatch(/pyth is not used: it answered with status 500/)
  expect(body.observations.join(' ')).toMatch(/chainlink is not used: it was published .* more than 15 minutes ago/)
  const preview = await getAttestation()
  expect(preview.backing.evidence.mode).toBe('preview')
  expect(verifyAttestation(preview, { jwks: node.jwks }).ok).toBe(true)
  expect(await isAcceptedByContract(preview)).toBe(false)
  // The earlier live attestation has expired too.
  expect(await isAcceptedByContract(attestation)).toBe(false)
  expect((await node.get('/api/basis/v1/board')).body.status).toBe('preview')

  world.replies = {}
  for (let index = 0; index < 3; index += 1) {
    world.share += 0.02
    await runRound(600)
  }
  expect((await getQuote()).source).toBe('live')
})
