import { createHash } from 'node:crypto'
import { hashJson, verifyAttestation } from '@countersign/proof'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createJupiter } from '../../src/adapters/prices/jupiter.ts'
import { createPythHermes } from '../../src/adapters/prices/pyth-hermes.ts'
import { get } from '../../src/adapters/prices/reading.ts'
import { createSolana } from '../../src/adapters/prices/solana.ts'
import { createXStocks } from '../../src/adapters/prices/xstocks.ts'
import { loadCoverage } from '../../src/modules/basis/coverage.ts'
import type { PriceSource } from '../../src/modules/basis/price-source.ts'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase } from '../harness.ts'
import { type BasisNode, type BasisNodeOptions, openBasisNode } from './node.ts'
import {
  accountShape,
  mintAccount,
  NOW,
  pythShape,
  unix,
  xstocksAsset,
  xstocksMultiplier,
  xstocksReserves,
} from './shapes.ts'
import { type Answer, answerRpc, startUpstream, type Upstream } from './upstream.ts'

const shipped = loadCoverage()
const tslax = shipped.find('TSLAx')!
/** Only one wrapper, so that a test's numbers are easy to follow. */
const coverage = { ...shipped, covered: [tslax], symbols: shipped.symbols.filter(({ symbol }) => symbol === 'TSLAx') }

/** What the world says at the moment; tests change it. */
type World = {
  share: number
  wrapper: number
  supply: bigint
  down: Record<string, Answer>
  frozenAt?: number
  slot: number
}
let world: World
let upstream: Upstream
let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: BasisNode
const opened: BasisNode[] = []

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(5)
  upstream = await startUpstream(({ path, body }) => {
    const part = path.split('/')[1]!
    if (world.down[part]) return world.down[part]
    const now = node.clock.now()
    if (part === 'pyth')
      return {
        json: pythShape(
          { [tslax.pythFeedId!]: { price: String(Math.round(world.share * 1e5)) } },
          world.frozenAt ?? unix(now) - 2,
        ),
      }
    if (part === 'jupiter')
      return { json: { [tslax.address]: { usdPrice: world.wrapper, liquidity: 2_000_000, blockId: 1, decimals: 8 } } }
    if (part === 'solana') {
      world.slot += 1
      const account = accountShape(
        mintAccount({ supply: world.supply, decimals: 8, scaled: { multiplier: 1, next: 1, nextAt: 0 } }),
      )
      const at = { ...account, context: { slot: world.slot } }
      return answerRpc(body, (method) => (method === 'getBlockTime' ? unix(now) : at))
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
  world = { share: 340, wrapper: 340.34, supply: 100_000_00000000n, down: {}, slot: 100 }
  await database.pool.query('truncate basis_assets, basis_readings, basis_bodies, basis_fetches, basis_turn')
  node = await open()
})
afterEach(async () => {
  for (const each of opened.splice(0)) await each.close()
})

const sources = () => [
  createPythHermes({ baseUrl: `${upstream.url}/pyth` }),
  createJupiter({ baseUrl: `${upstream.url}/jupiter` }),
  createSolana({ rpcUrl: `${upstream.url}/solana` }),
  createXStocks({ baseUrl: `${upstream.url}/xstocks` }),
]

async function open(options: BasisNodeOptions = {}) {
  const fresh = await openBasisNode(database, { coverage, sources: sources(), ...options })
  opened.push(fresh)
  return fresh
}

async function rounds(count: number, everySeconds = 15) {
  for (let index = 0; index < count; index += 1) {
    node.clock.advance(everySeconds * 1000)
    await node.basis.round()
  }
}

const quote = async (of = node) => (await of.get('/api/basis/v1/quote/TSLAx')).body
const attestation = async (query = '') => (await node.get(`/api/basis/v1/attestation/TSLAx${query}`)).body

describe('ingestion', () => {
  test('turns the quote live, and every number can be traced to a body', async () => {
    expect((await quote()).source).toBe('preview')
    const { live, refused } = await node.basis.round()
    expect({ live, refused }).toEqual({ live: 1, refused: [] })
    const body = await quote()
    expect(body).toMatchObject({
      source: 'live',
      preview: false,
      wrapper_price: 340.34,
      reference_price: 340,
      basis_bps: 10,
      as_of: NOW.toISOString(),
    })
    expect((await node.get('/api/basis/v1/board')).body).toMatchObject({ status: 'live', preview: false })

    const signed = await attestation()
    expect(verifyAttestation(signed, { jwks: node.jwks, now: NOW, requireLive: true }).ok).toBe(true)
    expect(signed.backing).toMatchObject({
      ratio: 1.01,
      evidence: { ratio_basis: 'reserve_report', seq: 1, prev_hash: null, asset: tslax.caip19 },
    })
    const { sources, hash } = signed.backing.evidence
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

  test('chains each attestation to the one before, and serves older ones', async () => {
    await node.basis.round()
    const first = await attestation()
    await rounds(1)
    const second = await attestation()
    const { schema, symbol, chain, as_of, snapshot, backing } = first
    expect(second.backing.evidence).toMatchObject({
      seq: 2,
      prev_hash: hashJson({ schema, symbol, chain, as_of, snapshot, backing }),
    })
    expect(await attestation('?seq=1')).toEqual(first)
    expect(verifyAttestation(await attestation('?seq=1'), { jwks: node.jwks }).ok).toBe(true)
  })

  test('one bad source is told and does without; its last good word counts for a quarter of an hour and no longer', async () => {
    await node.basis.round()
    world.down.pyth = { status: 500, json: {} }
    await rounds(1, 60)
    const during = await quote()
    expect(during.source).toBe('live')
    expect(during.observations).toContain('pyth is not used: it answered with status 500.')
    await rounds(2, 450)
    const after = await quote()
    expect(after).toMatchObject({ source: 'preview', preview: true })
    expect(after.observations.join(' ')).toMatch(/No reference can be derived.*pyth is not used/)
    expect(verifyAttestation(await attestation(), { jwks: node.jwks, requireLive: true }).ok).toBe(false)
    delete world.down.pyth
    world.share = 340.2
    await rounds(1, 900)
    expect((await quote()).source).toBe('live')
  })

  test('a feed frozen over the weekend is refused on Monday', async () => {
    world.frozenAt = unix(new Date('2026-11-13T20:59:59Z'))
    await node.basis.round()
    const body = await quote()
    expect(body.source).toBe('preview')
    expect(body.observations.join(' ')).toMatch(
      /pyth is not used: it was published 2026-11-13T20:59:59.000Z, more than 15 minutes ago/,
    )
  })

  test('a feed that stands still under fresh timestamps is found out', async () => {
    await node.basis.round()
    await rounds(2, 460)
    const body = await quote()
    expect(body.source).toBe('preview')
    expect(body.observations.join(' ')).toMatch(/frozen/)
    world.share = 340.1
    await rounds(1)
    expect((await quote()).source).toBe('live')
  })

  test('a price nobody can mean silences its own wrapper and no other', async () => {
    const other = shipped.find('NVDAx')!
    const sane = { usdPrice: 340, liquidity: 2_000_000, blockId: 1, decimals: 8 }
    node = await open({ coverage: { ...shipped, covered: [tslax, other] } })
    const nonsense = [
      { usdPrice: 1e30, liquidity: 1, blockId: 1, decimals: 8 },
      { usdPrice: 1e-30, liquidity: 1, blockId: 1, decimals: 8 },
      { usdPrice: 9e8, liquidity: 1, blockId: 1, decimals: 8 },
      { usdPrice: 340, liquidity: 1e308, blockId: 1, decimals: 8 },
    ]
    for (const bad of nonsense) {
      node.clock.advance(30_000)
      world.down.jupiter = { json: { [tslax.address]: bad, [other.address]: sane } }
      const price = { price: '34000000', publish_time: unix(node.clock.now()) }
      world.down.pyth = { json: pythShape({ [tslax.pythFeedId!]: price, [other.pythFeedId!]: price }) }
      await node.basis.round()
      expect((await node.get('/api/basis/v1/quote/NVDAx')).body, JSON.stringify(bad)).toMatchObject({ source: 'live' })
      const body = await quote()
      expect(JSON.stringify(body)).not.toMatch(/null,"reference_price|e\+/)
      if (bad.usdPrice !== 340) expect(body, JSON.stringify(bad)).toMatchObject({ source: 'preview', preview: true })
    }
  })

  test('one bad row of an answer about many is told, and its neighbours are read', async () => {
    const other = shipped.find('NVDAx')!
    node = await open({ coverage: { ...shipped, covered: [tslax, other] } })
    const row = { usdPrice: 340, liquidity: 2_000_000, blockId: 1, decimals: 8 }
    const say = (tsla: object, feed: { price: string }) => {
      node.clock.advance(30_000)
      const publish_time = unix(node.clock.now())
      const pyth = { [tslax.pythFeedId!]: feed, [other.pythFeedId!]: { price: '34000000' } }
      world.down.jupiter = { json: { [tslax.address]: tsla, [other.address]: row } }
      world.down.pyth = { json: pythShape(pyth, publish_time) }
    }
    say(row, { price: '34000000' })
    await node.basis.round()
    expect((await quote()).source).toBe('live')

    say({ ...row, usdPrice: -1 }, { price: '0' })
    const { refused } = await node.basis.round()
    expect(refused).toEqual(
      expect.arrayContaining([
        { source: 'jupiter', reason: 'usdPrice is -1, which is not a price' },
        { source: 'pyth', reason: 'the price of TSLA is 0, which is not a price' },
      ]),
    )
    const body = await quote()
    expect(body).toMatchObject({ source: 'live', wrapper_price: 340 })
    expect(body.observations).toContain('pyth is not used: the price of TSLA is 0, which is not a price.')
    const neighbour = (await node.get('/api/basis/v1/quote/NVDAx')).body
    expect(neighbour.source).toBe('live')
    expect(neighbour.observations.join()).not.toMatch(/TSLA|usdPrice/)

    for (let minutes = 0; minutes < 17; minutes += 1) {
      node.clock.advance(30_000)
      say({ ...row, usdPrice: -1 }, { price: '0' })
      await node.basis.round()
    }
    expect((await quote()).source).toBe('preview')
    expect((await node.get('/api/basis/v1/quote/NVDAx')).body.observations.join()).not.toMatch(/TSLA|usdPrice/)
  })

  test('what no check foresaw in one wrapper’s inputs leaves the others live, and is told', async () => {
    const other = shipped.find('NVDAx')!
    const publishedAt = node.clock.now()
    const odd: PriceSource = {
      id: 'odd',
      everySeconds: 15,
      ask: () => [get(`${upstream.url}/xstocks/odd`)],
      read: () => ({
        observations: [{ kind: 'meme', asset: tslax.asset, symbol: 'ODD', change24h: Number.NaN, publishedAt }],
      }),
    }
    const json = Object.fromEntries(
      [tslax, other].map(({ address }) => [address, { usdPrice: 340, liquidity: 1e6, blockId: 1, decimals: 8 }]),
    )
    world.down.jupiter = { json }
    const price = { price: '34000000', publish_time: unix(publishedAt) }
    world.down.pyth = { json: pythShape({ [tslax.pythFeedId!]: price, [other.pythFeedId!]: price }) }
    node = await open({ coverage: { ...shipped, covered: [tslax, other] }, sources: [...sources(), odd] })
    const { refused } = await node.basis.round()
    expect(refused).toContainEqual({
      source: tslax.asset,
      reason: expect.stringMatching(/^it could not be measured: NaN/),
    })
    expect((await node.get('/api/basis/v1/quote/NVDAx')).body.source).toBe('live')
    expect(await quote()).toMatchObject({
      source: 'preview',
      observations: expect.arrayContaining(['Its inputs could not be measured.']),
    })
  })

  test('asks a failing source less and less, and at its own pace again once it answers', async () => {
    world.down.pyth = { status: 503, json: {} }
    const asked = () => upstream.asked.filter((line) => line.includes('/pyth/')).length
    const before = asked()
    await node.basis.round()
    await rounds(30, 30)
    const failing = asked() - before
    expect(failing).toBeGreaterThan(3)
    expect(failing).toBeLessThan(10)
    delete world.down.pyth
    await rounds(1, 900)
    const recovered = asked()
    await rounds(5, 15)
    expect(asked() - recovered).toBe(5)
  })

  test('a mint shows in the primary market and survives a restart', async () => {
    await node.basis.round()
    world.supply += 1_250_00000000n
    await rounds(2, 30)
    const minted = (await quote()).primary_market
    expect(minted).toMatchObject({ creation: 'open', last_mint_size: 1250 })
    const clock = node.clock
    node = await open({ clock, holder: 'this process' })
    await rounds(1)
    expect((await quote()).primary_market).toEqual(minted)
    expect((await attestation()).backing.evidence.seq).toBe(4)
  })

  test('a change of the window is told once, in the transaction that stored it', async () => {
    await node.basis.round()
    await rounds(1)
    expect(node.events).toEqual([])
    world.wrapper = 360
    await rounds(2)
    expect(node.events).toEqual([
      {
        type: 'basis.window_changed',
        at: expect.any(Date),
        data: expect.objectContaining({
          symbol: 'TSLAx',
          chain: 'solana',
          previous_status: 'aligned',
          window_status: expect.stringMatching(/window|drifting/),
        }),
      },
    ])
  })
})

describe('several processes', () => {
  test('one ingests, the others serve what it stored, and take over when it is gone', async () => {
    await node.basis.round()
    const other = await open({ clock: node.clock, holder: 'another process' })
    expect((await other.basis.round()).turn).toBe(false)
    expect((await quote(other)).source).toBe('preview')
    await other.basis.reload()
    expect(await quote(other)).toEqual(await quote())
    node.clock.advance(61_000)
    expect((await other.basis.round()).turn).toBe(true)
    expect((await other.get('/api/basis/v1/attestation/TSLAx')).body.backing.evidence.seq).toBe(2)
  })

  test('a process that lost its turn without noticing cannot fork the chain', async () => {
    await node.basis.round()
    const other = await open({ clock: node.clock, holder: 'another process' })
    await database.pool.query(`update basis_assets set seq = 50`)
    node.clock.advance(15_000)
    await expect(node.basis.round()).rejects.toThrow(/Another process/)
    node.clock.advance(15_000)
    await node.basis.round()
    await other.basis.reload()
    expect((await other.get('/api/basis/v1/attestation/TSLAx')).body.backing.evidence.seq).toBe(51)
  })

  test('when nobody measures any more, what was live becomes a preview by itself', async () => {
    await node.basis.round()
    node.clock.advance(14 * 60_000)
    expect((await quote()).source).toBe('live')
    node.clock.advance(61_000)
    const body = await quote()
    expect(body.source).toBe('preview')
    expect(body.observations).toContain(`Nothing was measured since ${NOW.toISOString()}.`)
  })
})

test('history holds the last reading of each span', async () => {
  await node.basis.round()
  await rounds(8, 15)
  const { body } = await node.get(`/api/basis/v1/history/TSLAx?interval=1m&from=${NOW.toISOString()}`)
  expect(body).toMatchObject({ source: 'live', preview: false })
  expect(body.points.map((point: { as_of: string }) => point.as_of)).toEqual([
    '2026-11-16T15:00:45.000Z',
    '2026-11-16T15:01:45.000Z',
  ])
})

test('old bodies and readings go, young ones stay', async () => {
  await node.basis.round()
  node.clock.advance(31 * 86_400_000)
  expect(await node.basis.prune()).toBeGreaterThan(0)
  const left = await database.pool.query(
    'select (select count(*) from basis_bodies)::int as bodies, (select count(*) from basis_readings where attestation is null)::int as readings',
  )
  expect(left.rows[0]).toEqual({ bodies: 0, readings: 1 })
})
