import { createHash } from 'node:crypto'
import { hashJson, verifyAttestation } from '@countersign/proof'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createJupiter } from '../../src/adapters/prices/jupiter.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { getRequest } from '../../src/adapters/prices/response-parsing.ts'
import { createSolana } from '../../src/adapters/prices/solana.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import type { PriceSource } from '../../src/modules/basis/price-source.ts'
import type { Database } from '../../src/platform/db.ts'
import { pruneInBatches } from '../../src/platform/prune.ts'
import { createTestDatabase } from '../harness.ts'
import { type BasisNode, type BasisNodeOptions, openBasisNode } from './basis-node.ts'
import {
  mintAccount,
  NOW,
  pythResponse,
  solanaAccountResponse,
  unix,
  xstocksAsset,
  xstocksMultiplier,
  xstocksReserves,
} from './source-responses.ts'
import { replyToRpcBatch, startUpstream, type Upstream, type UpstreamReply } from './upstream-server.ts'

const fullCoverage = loadCoverage()
const tslax = fullCoverage.find('TSLAx')!
/** One wrapper only, so that the numbers of a test are easy to follow. */
const coverage = {
  ...fullCoverage,
  wrappers: [tslax],
  symbols: fullCoverage.symbols.filter(({ symbol }) => symbol === 'TSLAx'),
}

/** What the sources report now; tests change it. */
type World = {
  share: number
  wrapper: number
  supply: bigint
  /** Replies that replace the usual ones, by source. */
  replies: Record<string, UpstreamReply>
  frozenAt?: number
  slot: number
}
let world: World
let upstream: Upstream
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: BasisNode
const openNodes: BasisNode[] = []

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(5)
  upstream = await startUpstream(({ path, body }) => {
    const source = path.split('/')[1]!
    if (world.replies[source]) return world.replies[source]
    const now = node.clock.now()
    if (source === 'pyth')
      return {
        json: pythResponse(
          { [tslax.pythFeedId!]: { price: String(Math.round(world.share * 1e5)) } },
          world.frozenAt ?? unix(now) - 2,
        ),
      }
    if (source === 'jupiter')
      return { json: { [tslax.address]: { usdPrice: world.wrapper, liquidity: 2_000_000, blockId: 1, decimals: 8 } } }
    if (source === 'solana') {
      world.slot += 1
      const account = solanaAccountResponse(
        mintAccount({ supply: world.supply, decimals: 8, scaled: { multiplier: 1, next: 1, nextAt: 0 } }),
      )
      const accountAtSlot = { ...account, context: { slot: world.slot } }
      return replyToRpcBatch(body, (method) => (method === 'getBlockTime' ? unix(now) : accountAtSlot))
    }
    if (path.endsWith('/multiplier')) return { json: xstocksMultiplier() }
    return { json: path.includes('proof-of-reserves') ? xstocksReserves() : xstocksAsset() }
  })
})
afterAll(async () => {
  await upstream.close()
  await database.close()
  await scratch.drop()
})
beforeEach(async () => {
  world = { share: 340, wrapper: 340.34, supply: 100_000_00000000n, replies: {}, slot: 100 }
  await database.pool.query('truncate basis_assets, basis_readings, basis_bodies, basis_fetches, basis_turn')
  node = await openNode()
})
afterEach(async () => {
  for (const running of openNodes.splice(0)) await running.close()
})

const sources = () => [
  createPythHermes({ baseUrl: `${upstream.url}/pyth` }),
  createJupiter({ baseUrl: `${upstream.url}/jupiter` }),
  createSolana({ rpcUrl: `${upstream.url}/solana` }),
  createXStocks({ baseUrl: `${upstream.url}/xstocks` }),
]

async function openNode(options: BasisNodeOptions = {}) {
  const newNode = await openBasisNode(database, { coverage, sources: sources(), ...options })
  openNodes.push(newNode)
  return newNode
}

async function runRounds(count: number, everySeconds = 15) {
  for (let index = 0; index < count; index += 1) {
    node.clock.advance(everySeconds * 1000)
    await node.basis.runIngestRound()
  }
}

const getQuote = async (from = node) => (await from.get('/api/basis/v1/quote/TSLAx')).body
const getAttestation = async (query = '') => (await node.get(`/api/basis/v1/attestation/TSLAx${query}`)).body

describe('ingestion', () => {
  test('makes the quote live and stores the body behind every number', async () => {
    expect((await getQuote()).source).toBe('preview')
    const { live, rejected } = await node.basis.runIngestRound()
    expect({ live, rejected }).toEqual({ live: 1, rejected: [] })
    const body = await getQuote()
    expect(body).toMatchObject({
      source: 'live',
      preview: false,
      wrapper_price: 340.34,
      reference_price: 340,
      basis_bps: 10,
      as_of: NOW.toISOString(),
    })
    expect((await node.get('/api/basis/v1/board')).body).toMatchObject({ status: 'live', preview: false })

    const attestation = await getAttestation()
    expect(verifyAttestation(attestation, { jwks: node.jwks, now: NOW, requireLive: true }).ok).toBe(true)
    expect(attestation.backing).toMatchObject({
      ratio: 1.01,
      evidence: { ratio_basis: 'reserve_report', seq: 1, prev_hash: null, asset: tslax.caip19 },
    })
    const { sources, hash } = attestation.backing.evidence
    expect(hashJson(sources)).toBe(hash)
    expect(new Set(sources.map((source: { id: string }) => source.id))).toEqual(
      new Set(['pyth', 'jupiter', 'solana', 'xstocks']),
    )
    for (const { sha256 } of sources) {
      const evidence = await node.app.inject({ url: `/api/basis/v1/evidence/${sha256}` })
      expect(evidence.statusCode).toBe(200)
      expect(createHash('sha256').update(evidence.rawPayload).digest('hex')).toBe(sha256)
    }
  })

  test('links each attestation to the previous one, and serves older ones', async () => {
    await node.basis.runIngestRound()
    const first = await getAttestation()
    await runRounds(1)
    const second = await getAttestation()
    const { schema, symbol, chain, as_of, snapshot, backing } = first
    expect(second.backing.evidence).toMatchObject({
      seq: 2,
      prev_hash: hashJson({ schema, symbol, chain, as_of, snapshot, backing }),
    })
    expect(await getAttestation('?seq=1')).toEqual(first)
    expect(verifyAttestation(await getAttestation('?seq=1'), { jwks: node.jwks }).ok).toBe(true)
  })

  test('a failing source is reported, and its last observation counts for 15 minutes and no longer', async () => {
    await node.basis.runIngestRound()
    world.replies.pyth = { status: 500, json: {} }
    await runRounds(1, 60)
    const quoteInOutage = await getQuote()
    expect(quoteInOutage.source).toBe('live')
    expect(quoteInOutage.observations).toContain('pyth is not used: it answered with status 500.')
    await runRounds(2, 450)
    const quoteAfter = await getQuote()
    expect(quoteAfter).toMatchObject({ source: 'preview', preview: true })
    expect(quoteAfter.observations.join(' ')).toMatch(/No reference can be derived.*pyth is not used/)
    expect(verifyAttestation(await getAttestation(), { jwks: node.jwks, requireLive: true }).ok).toBe(false)
    delete world.replies.pyth
    world.share = 340.2
    await runRounds(1, 900)
    expect((await getQuote()).source).toBe('live')
  })

  test('a feed frozen over the weekend is rejected on Monday', async () => {
    world.frozenAt = unix(new Date('2026-11-13T20:59:59Z'))
    await node.basis.runIngestRound()
    const body = await getQuote()
    expect(body.source).toBe('preview')
    expect(body.observations.join(' ')).toMatch(
      /pyth is not used: it was published 2026-11-13T20:59:59.000Z, more than 15 minutes ago/,
    )
  })

  test('a feed with an unchanged price under new timestamps is rejected as frozen', async () => {
    await node.basis.runIngestRound()
    await runRounds(2, 460)
    const body = await getQuote()
    expect(body.source).toBe('preview')
    expect(body.observations.join(' ')).toMatch(/frozen/)
    world.share = 340.1
    await runRounds(1)
    expect((await getQuote()).source).toBe('live')
  })

  test('an implausible price affects its own wrapper and no other', async () => {
    const otherWrapper = fullCoverage.find('NVDAx')!
    const plausible = { usdPrice: 340, liquidity: 2_000_000, blockId: 1, decimals: 8 }
    node = await openNode({ coverage: { ...fullCoverage, wrappers: [tslax, otherWrapper] } })
    const implausible = [
      { usdPrice: 1e30, liquidity: 1, source: 'preview' },
      { usdPrice: 1e-30, liquidity: 1, source: 'preview' },
      { usdPrice: 9e8, liquidity: 1, source: 'preview' },
      { usdPrice: 340, liquidity: 1e308, source: 'live' },
    ]
    for (const { source, ...prices } of implausible) {
      node.clock.advance(30_000)
      world.replies.jupiter = {
        json: { [tslax.address]: { ...prices, blockId: 1, decimals: 8 }, [otherWrapper.address]: plausible },
      }
      const price = { price: '34000000', publish_time: unix(node.clock.now()) }
      world.replies.pyth = { json: pythResponse({ [tslax.pythFeedId!]: price, [otherWrapper.pythFeedId!]: price }) }
      await node.basis.runIngestRound()
      expect((await node.get('/api/basis/v1/quote/NVDAx')).body, JSON.stringify(prices)).toMatchObject({
        source: 'live',
      })
      const body = await getQuote()
      expect(JSON.stringify(body)).not.toMatch(/null,"reference_price|e\+/)
      expect(body, JSON.stringify(prices)).toMatchObject({ source, preview: source === 'preview' })
    }
  })

  test('an invalid row of a response is reported, and the other rows are used', async () => {
    const otherWrapper = fullCoverage.find('NVDAx')!
    node = await openNode({ coverage: { ...fullCoverage, wrappers: [tslax, otherWrapper] } })
    const row = { usdPrice: 340, liquidity: 2_000_000, blockId: 1, decimals: 8 }
    const setReplies = (tsla: object, feed: { price: string }) => {
      node.clock.advance(30_000)
      const publish_time = unix(node.clock.now())
      const pyth = { [tslax.pythFeedId!]: feed, [otherWrapper.pythFeedId!]: { price: '34000000' } }
      world.replies.jupiter = { json: { [tslax.address]: tsla, [otherWrapper.address]: row } }
      world.replies.pyth = { json: pythResponse(pyth, publish_time) }
    }
    setReplies(row, { price: '34000000' })
    await node.basis.runIngestRound()
    expect((await getQuote()).source).toBe('live')

    setReplies({ ...row, usdPrice: -1 }, { price: '0' })
    const { rejected } = await node.basis.runIngestRound()
    expect(rejected).toEqual(
      expect.arrayContaining([
        { source: 'jupiter', reason: 'usdPrice is -1, which is not a price' },
        { source: 'pyth', reason: 'the price of TSLA is 0, which is not a price' },
      ]),
    )
    const body = await getQuote()
    expect(body).toMatchObject({ source: 'live', wrapper_price: 340 })
    expect(body.observations).toContain('pyth is not used: the price of TSLA is 0, which is not a price.')
    const otherQuote = (await node.get('/api/basis/v1/quote/NVDAx')).body
    expect(otherQuote.source).toBe('live')
    expect(otherQuote.observations.join()).not.toMatch(/TSLA|usdPrice/)

    for (let round = 0; round < 17; round += 1) {
      node.clock.advance(30_000)
      setReplies({ ...row, usdPrice: -1 }, { price: '0' })
      await node.basis.runIngestRound()
    }
    expect((await getQuote()).source).toBe('preview')
    expect((await node.get('/api/basis/v1/quote/NVDAx')).body.observations.join()).not.toMatch(/TSLA|usdPrice/)
  })

  test('an unexpected error in measuring one wrapper is reported and leaves the others live', async () => {
    const otherWrapper = fullCoverage.find('NVDAx')!
    const publishedAt = node.clock.now()
    const faultySource: PriceSource = {
      id: 'faulty',
      everySeconds: 15,
      buildRequests: () => [getRequest(`${upstream.url}/xstocks/faulty`)],
      parseResponse: () => ({
        observations: [{ kind: 'meme', asset: tslax.asset, symbol: 'MEME', change24h: Number.NaN, publishedAt }],
      }),
    }
    const json = Object.fromEntries(
      [tslax, otherWrapper].map(({ address }) => [address, { usdPrice: 340, liquidity: 1e6, blockId: 1, decimals: 8 }]),
    )
    world.replies.jupiter = { json }
    const price = { price: '34000000', publish_time: unix(publishedAt) }
    world.replies.pyth = { json: pythResponse({ [tslax.pythFeedId!]: price, [otherWrapper.pythFeedId!]: price }) }
    node = await openNode({
      coverage: { ...fullCoverage, wrappers: [tslax, otherWrapper] },
      sources: [...sources(), faultySource],
    })
    const { rejected } = await node.basis.runIngestRound()
    expect(rejected).toContainEqual({
      source: tslax.asset,
      reason: expect.stringMatching(/^it could not be measured: NaN/),
    })
    expect((await node.get('/api/basis/v1/quote/NVDAx')).body.source).toBe('live')
    expect(await getQuote()).toMatchObject({
      source: 'preview',
      observations: expect.arrayContaining(['The inputs of this wrapper could not be measured.']),
    })
  })

  test('polls a failing source less often, and at its own interval again once it answers', async () => {
    world.replies.pyth = { status: 503, json: {} }
    const pythRequests = () => upstream.requests.filter((line) => line.includes('/pyth/')).length
    const before = pythRequests()
    await node.basis.runIngestRound()
    await runRounds(30, 30)
    const failingRequests = pythRequests() - before
    expect(failingRequests).toBeGreaterThan(3)
    expect(failingRequests).toBeLessThan(10)
    delete world.replies.pyth
    await runRounds(1, 900)
    const requestsAtRecovery = pythRequests()
    await runRounds(5, 15)
    expect(pythRequests() - requestsAtRecovery).toBe(5)
  })

  test('a mint appears in the primary market and is kept over a restart', async () => {
    await node.basis.runIngestRound()
    world.supply += 1_250_00000000n
    await runRounds(2, 30)
    const primaryMarket = (await getQuote()).primary_market
    expect(primaryMarket).toMatchObject({ creation: 'open', last_mint_size: 1250 })
    const clock = node.clock
    node = await openNode({ clock, holder: 'this process' })
    await runRounds(1)
    expect((await getQuote()).primary_market).toEqual(primaryMarket)
    expect((await getAttestation()).backing.evidence.seq).toBe(4)
  })

  test('a change of the window status emits one event', async () => {
    await node.basis.runIngestRound()
    await runRounds(1)
    expect(node.events).toEqual([])
    world.wrapper = 360
    await runRounds(2)
    expect(node.events).toEqual([
      {
        type: 'basis.window_changed',
        at: new Date(NOW.getTime() + 30_000),
        data: expect.objectContaining({
          symbol: 'TSLAx',
          chain: 'solana',
          previous_status: 'aligned',
          window_status: 'drifting',
        }),
      },
    ])
  })
})

describe('several processes', () => {
  test('one process ingests, the others serve its readings and take over when its lease ends', async () => {
    await node.basis.runIngestRound()
    const otherNode = await openNode({ clock: node.clock, holder: 'another process' })
    expect((await otherNode.basis.runIngestRound()).hasLease).toBe(false)
    expect((await getQuote(otherNode)).source).toBe('preview')
    await otherNode.basis.reload()
    expect(await getQuote(otherNode)).toEqual(await getQuote())
    node.clock.advance(61_000)
    expect((await otherNode.basis.runIngestRound()).hasLease).toBe(true)
    expect((await otherNode.get('/api/basis/v1/attestation/TSLAx')).body.backing.evidence.seq).toBe(2)
  })

  test('a process that lost its lease without noticing cannot fork the chain of attestations', async () => {
    await node.basis.runIngestRound()
    const otherNode = await openNode({ clock: node.clock, holder: 'another process' })
    await database.pool.query(`update basis_assets set seq = 50`)
    node.clock.advance(15_000)
    await expect(node.basis.runIngestRound()).rejects.toThrow(/Another process/)
    node.clock.advance(15_000)
    await node.basis.runIngestRound()
    await otherNode.basis.reload()
    expect((await otherNode.get('/api/basis/v1/attestation/TSLAx')).body.backing.evidence.seq).toBe(51)
  })

  test('without new measurements a live quote becomes a preview after 15 minutes', async () => {
    await node.basis.runIngestRound()
    node.clock.advance(14 * 60_000)
    expect((await getQuote()).source).toBe('live')
    node.clock.advance(61_000)
    const body = await getQuote()
    expect(body.source).toBe('preview')
    expect(body.observations).toContain(`Nothing has been measured since ${NOW.toISOString()}.`)
  })
})

test('history holds the last reading of each interval', async () => {
  await node.basis.runIngestRound()
  await runRounds(8, 15)
  const { body } = await node.get(`/api/basis/v1/history/TSLAx?interval=1m&from=${NOW.toISOString()}`)
  expect(body).toMatchObject({ source: 'live', preview: false })
  expect(body.points.map((point: { as_of: string }) => point.as_of)).toEqual([
    '2026-11-16T15:00:45.000Z',
    '2026-11-16T15:01:45.000Z',
  ])
})

test('old bodies and attestations are pruned, the figures of a reading stay', async () => {
  await node.basis.runIngestRound()
  node.clock.advance(31 * 86_400_000)
  expect(await node.basis.prune()).toBeGreaterThan(0)
  const remaining = await database.pool.query(
    'select (select count(*) from basis_bodies)::int as bodies, (select count(*) from basis_readings where attestation is null)::int as readings',
  )
  expect(remaining.rows[0]).toEqual({ bodies: 0, readings: 1 })
})

test('one round of pruning deletes more than one batch', async () => {
  await node.basis.runIngestRound()
  await database.pool.query(
    `insert into basis_readings select (jsonb_populate_record(reading, jsonb_build_object('seq', reading.seq + copy))).*
     from basis_readings reading, generate_series(1, 12000) copy`,
  )
  // The time that a round has is a test of its own.
  node.clock.advance(401 * 86_400_000)
  await pruneInBatches(node.basis.prune, 60_000)
  expect((await database.pool.query('select count(*)::int as rows from basis_readings')).rows).toEqual([{ rows: 0 }])
}, 120_000)
