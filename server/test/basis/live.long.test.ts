import { verifyAttestation } from '@countersign/proof'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createChainlink } from '../../src/adapters/prices/chainlink.ts'
import { createCoinbaseStocks } from '../../src/adapters/prices/coinbase-stocks.ts'
import { createEvmSupply } from '../../src/adapters/prices/evm-supply.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { createUniswapV3 } from '../../src/adapters/prices/uniswap-v3.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import type { Attestation } from '../../src/modules/basis/attestation.ts'
import { type Coverage, readCoverage } from '../../src/modules/basis/coverage.ts'
import { toFraction } from '../../src/modules/basis/integer-math.ts'
import { sqrtPriceOf } from '../../src/modules/basis/tick-math.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestClock } from '../clock.ts'
import { createTestDatabase } from '../harness.ts'
import { type BasisChain, type Contract, startChain } from './chain.ts'
import { type BasisNode, openBasisNode } from './node.ts'
import { coinbaseToken, NOW, pythShape, unix, xstocksAsset, xstocksMultiplier, xstocksReserves } from './shapes.ts'
import { type Answer, startUpstream, type Upstream } from './upstream.ts'

/**
 * Live mode, seen working: real pools, tokens and a feed on the embedded chain, the services of others replayed on the
 * loopback, the whole way from their answers to a signed object that a contract accepts.
 */
const PYTH = '49f6b65cb1de6b10eaf75e7c03ca029c306d0357e91b5311b175084a5ad55688'
const clock = createTestClock(NOW)

type Listed = { token: Contract; pool: Contract; feed: Contract; symbol: string }

let chain: BasisChain
let actor: Contract
let verifier: Contract
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let upstream: Upstream
let node: BasisNode
let ours: { AAPLc: Listed; AAPLx: Listed }
const world = { share: 250, multiplier: 1, down: {} as Record<string, Answer> }

const unitsOf = (token: Contract, quote: Contract) => ({
  wrapperIsToken0: token.address < quote.address,
  wrapperDecimals: 8,
  quoteDecimals: 6,
})
let quoteToken: Contract

async function list(symbol: string, wrapperFirst: boolean): Promise<Listed> {
  let token = await chain.deployTest('TestToken', [8])
  while (token.address < quoteToken.address !== wrapperFirst) token = await chain.deployTest('TestToken', [8])
  await chain.send(token, 'mint', [actor.address, 10n ** 14n])
  const feed = await chain.deployTest('TestFeed')
  const units = unitsOf(token, quoteToken)
  const pool = await chain.createPool(token, quoteToken, 500, sqrtPriceOf(toFraction(250), units))
  const { tick } = await slot(pool)
  const base = Math.floor(tick / 10) * 10
  await chain.send(actor, 'provide', [pool.address, base - 6000, base + 6000, 10n ** 12n])
  await chain.send(actor, 'provide', [pool.address, base - 300, base + 300, 5n * 10n ** 12n])
  return { token, pool, feed, symbol }
}

const slot = async (pool: Contract) => {
  const [, tick] = await chain.read<[bigint, number]>(pool, 'slot0')
  return { tick }
}

const coverageOf = (wrappers: Listed[]): Coverage =>
  readCoverage({
    version: 1,
    band_bps: 50,
    chains: { base: { kind: 'evm', caip2: 'eip155:8453', asset_namespace: 'erc20' } },
    underlyings: { AAPL: { pyth_feed_id: PYTH, preview_price: 250 } },
    wrappers: wrappers.map(({ symbol, token, pool, feed }) => ({
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
  chain = await startChain(clock)
  actor = await chain.deployTest('PoolActor')
  quoteToken = await chain.deployTest('TestToken', [6])
  await chain.send(quoteToken, 'mint', [actor.address, 10n ** 20n])
  ours = { AAPLc: await list('AAPLc', true), AAPLx: await list('AAPLx', false) }
  const coverage = coverageOf([ours.AAPLc, ours.AAPLx])

  upstream = await startUpstream(({ path }) => {
    const part = path.split('/')[1]!
    if (world.down[part]) return world.down[part]
    const at = clock.now()
    if (part === 'pyth')
      return { json: pythShape({ [PYTH]: { price: String(Math.round(world.share * 1e5)) } }, unix(at) - 1) }
    if (part === 'coinbase') {
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

/** The feeds of the chain say what the world says, and a round is made. */
async function round(seconds = 15, feeds = true) {
  clock.advance(seconds * 1000)
  if (feeds)
    for (const { feed } of Object.values(ours))
      await chain.send(feed, 'set', [
        BigInt(Math.round(world.share * world.multiplier * 1e8)),
        BigInt(unix(clock.now())),
      ])
  return node.basis.round()
}

const quote = async (symbol = 'AAPLc') => (await node.get(`/api/basis/v1/quote/${symbol}`)).body
const attestation = async (symbol = 'AAPLc') =>
  (await node.get(`/api/basis/v1/attestation/${symbol}`)).body as Attestation
const move = (price: number, { token, pool }: Listed) =>
  chain.send(actor, 'moveTo', [pool.address, [sqrtPriceOf(toFraction(price), unitsOf(token, quoteToken))]])
const accepted = ({ evm_signature: { typed_data, value } }: Attestation) =>
  chain.read<boolean>(verifier, 'accepts', [typed_data.message, value])

test('the quote turns live, from several sources that agree', async () => {
  expect((await quote()).source).toBe('preview')
  expect((await round()).refused).toEqual([])
  for (let index = 0; index < 3; index += 1) {
    world.share += 0.01
    await round()
  }
  const both = [await quote('AAPLc'), await quote('AAPLx')]
  for (const body of both) {
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
  expect(both[0]!.reference_source).toBe('chainlink+coinbase+pyth×multiplier')
  const { body } = await node.get('/api/basis/v1/board')
  expect(body).toMatchObject({ status: 'live', preview: false })
  expect(body.rows[0].float_locked_pct).toBeGreaterThan(0)
})

test('a swap moves the basis, and only of the wrapper that was bought', async () => {
  const before = await quote('AAPLx')
  await move(257.5, ours.AAPLc)
  await round()
  const moved = await quote()
  expect(moved.wrapper_price).toBeCloseTo(257.5, 4)
  expect(moved.basis_bps).toBeGreaterThan(290)
  expect(moved.effective_float.near_reference_usd).toBe(0)
  expect((await quote('AAPLx')).wrapper_price).toBe(before.wrapper_price)
  const { body } = await node.get('/api/basis/v1/board')
  expect(body.rows[0]).toMatchObject({ rank: 1, symbol: 'AAPLc' })
  expect(body.rows[0].window_score).toBeGreaterThan(body.rows[1].window_score)
  expect(node.events.at(-1)).toMatchObject({
    type: 'basis.window_changed',
    data: { symbol: 'AAPLc', previous_status: 'aligned' },
  })
})

test('a mint changes the primary market and answers the window', async () => {
  const score = (await node.get('/api/basis/v1/board')).body.rows[0].window_score
  clock.advance(5_000)
  const { block } = await chain.send(ours.AAPLc.token, 'mint', [actor.address, 5_000_00000000n])
  for (let index = 0; index < 3; index += 1) await round(30)
  const { primary_market } = await quote()
  expect(primary_market).toMatchObject({ creation: 'open', last_mint_block: block, last_mint_size: 5000 })
  const row = (await node.get('/api/basis/v1/board')).body.rows.find(
    (each: { symbol: string }) => each.symbol === 'AAPLc',
  )
  expect(row.window_score).toBeLessThan(score)
  expect(row.window_status).toBe('supply_responding')
  await chain.send(ours.AAPLc.token, 'burn', [actor.address, 1_000_00000000n])
  for (let index = 0; index < 3; index += 1) await round(30)
  expect((await quote()).primary_market.last_mint_size).toBe(-1000)
})

test('a live attestation is accepted by a contract on the chain, a changed or a preview one is not', async () => {
  await round()
  const signed = await attestation()
  expect(verifyAttestation(signed, { jwks: node.jwks, now: clock.now(), requireLive: true }).ok).toBe(true)
  expect(await accepted(signed)).toBe(true)
  const dearer = { ...signed.evm_signature.typed_data.message, wrapperPriceE6: '1' }
  const changed = {
    ...signed,
    evm_signature: { ...signed.evm_signature, typed_data: { ...signed.evm_signature.typed_data, message: dearer } },
  }
  expect(await accepted(changed)).toBe(false)
  expect(signed.backing).toMatchObject({ ratio: 1, evidence: { ratio_basis: 'issuer_claim', mode: 'live' } })
  expect((await attestation('AAPLx')).backing).toMatchObject({
    ratio: 1.01,
    evidence: { ratio_basis: 'reserve_report' },
  })
})

test('a change of shares per token makes no false basis', async () => {
  await move(250, ours.AAPLc)
  await round()
  const before = (await quote()).basis_bps
  world.multiplier = 2
  world.share /= 2
  for (const { feed } of Object.values(ours)) await chain.send(feed, 'setParams', [2n * 10n ** 18n, false])
  for (let index = 0; index < 5; index += 1) await round()
  const after = await quote()
  expect(after.source).toBe('live')
  expect(after.basis_bps).toBeCloseTo(before, 0)
  expect(after.observations.join(' ')).toMatch(/One token stands for 2 shares/)
})

test('feeds that go stale turn the reading back to preview, with the reason; a contract refuses what comes then', async () => {
  world.down = { pyth: { status: 500, json: {} }, coinbase: { status: 403, text: 'no' } }
  const signed = await attestation()
  for (let index = 0; index < 4; index += 1) await round(300, false)
  const body = await quote()
  expect(body).toMatchObject({ source: 'preview', preview: true })
  expect(body.observations.join(' ')).toMatch(/No reference can be derived/)
  expect(body.observations.join(' ')).toMatch(/pyth is not used: it answered with status 500/)
  expect(body.observations.join(' ')).toMatch(/chainlink is not used: it was published .* more than 15 minutes ago/)
  const preview = await attestation()
  expect(preview.backing.evidence.mode).toBe('preview')
  expect(verifyAttestation(preview, { jwks: node.jwks }).ok).toBe(true)
  expect(await accepted(preview)).toBe(false)
  // Its time is over too, and the chain's clock knows it.
  expect(await accepted(signed)).toBe(false)
  expect((await node.get('/api/basis/v1/board')).body.status).toBe('preview')

  world.down = {}
  for (let index = 0; index < 3; index += 1) {
    world.share += 0.02
    await round(600)
  }
  expect((await quote()).source).toBe('live')
})
