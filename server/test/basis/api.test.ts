import { type AddressInfo, connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { verifyAttestation } from '@countersign/proof'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/platform/db.ts'
import { createTestDatabase, readJson } from '../harness.ts'
import { type BasisNode, openBasisNode, VALID_KEY } from './basis-node.ts'

let scratch: Awaited<ReturnType<typeof createTestDatabase>>
let database: Database
let node: BasisNode

beforeAll(async () => {
  scratch = await createTestDatabase()
  database = scratch.open(3)
  node = await openBasisNode(database)
})
afterAll(async () => {
  await node.close()
  await database.close()
  await scratch.drop()
})

const quoteFields = [
  'symbol',
  'underlying',
  'chain',
  'as_of',
  'wrapper_price',
  'reference_price',
  'reference_source',
  'basis_pct',
  'basis_bps',
  'effective_float',
  'borrow',
  'underlying_state',
  'primary_market',
  'observations',
  'source',
  'preview',
  'attestation_url',
]
const verdictWords = /verdict|accept|reject|recommend|buy|sell|signal/i

describe('without any source configured', () => {
  test('the contract has every documented field', async () => {
    const { status, body } = await node.get('/api/basis/v1')
    expect(status).toBe(200)
    expect(Object.keys(body)).toEqual(
      expect.arrayContaining([
        'service',
        'version',
        'status',
        'description',
        'disclaimer',
        'machine_readable',
        'methodology',
        'spec_repo',
        'free_tier',
        'endpoints',
        'response_shapes',
        'coverage_seed',
        'note',
      ]),
    )
    expect(body).toMatchObject({
      version: 'v1',
      status: 'preview',
      free_tier: { metered: false },
      keys: { evm_signers: node.addresses },
    })
    expect(body.note).toMatch(/illustrative and flagged preview:true/)
  })

  test('symbols lists the covered wrappers', async () => {
    const { body } = await node.get('/api/basis/v1/symbols')
    expect(body.count).toBe(14)
    expect(body.symbols[0]).toEqual({
      symbol: 'TSLAx',
      underlying: 'TSLA',
      issuer: 'Backed (xStocks)',
      chains: ['solana'],
    })
  })

  test('every quote has exactly the documented fields and is a preview', async () => {
    for (const { symbol } of node.basis.coverage.symbols) {
      const { status, body, headers } = await node.get(`/api/basis/v1/quote/${symbol}`)
      expect(status).toBe(200)
      expect(headers['content-type']).toBe('application/json; charset=utf-8')
      expect(Object.keys(body)).toEqual(quoteFields)
      expect(Object.keys(body.effective_float)).toEqual(['near_reference_usd', 'band_bps', 'confidence'])
      expect(Object.keys(body.primary_market)).toEqual([
        'creation',
        'last_mint_at',
        'last_mint_block',
        'last_mint_size',
      ])
      expect(Object.keys(body.borrow)).toEqual(['available', 'rate_apr', 'source'])
      expect(body).toMatchObject({ symbol, source: 'preview', preview: true })
      expect(body.basis_bps).toBeCloseTo(body.basis_pct * 10_000, 6)
    }
  })

  test('the board ranks all wrappers, explains its scores and gives no verdict', async () => {
    const { body } = await node.get('/api/basis/v1/board')
    expect(Object.keys(body)).toEqual(['status', 'as_of', 'scoring', 'rows', 'preview'])
    expect(body).toMatchObject({ status: 'preview', preview: true })
    expect(body.rows).toHaveLength(14)
    const scores = body.rows.map((row: { window_score: number }) => row.window_score)
    expect(scores).toEqual([...scores].sort((a, b) => b - a))
    expect(body.rows.map((row: { rank: number }) => row.rank)).toEqual(
      scores.map((_: number, index: number) => index + 1),
    )
    for (const row of body.rows) {
      expect(Object.keys(row)).toEqual(
        expect.arrayContaining([
          'rank',
          'symbol',
          'underlying',
          'meme_symbol',
          'window_score',
          'window_status',
          'basis_bps',
          'meme_momentum_24h_pct',
          'float_locked_pct',
          'primary_market',
          'as_of',
        ]),
      )
      expect(Object.keys(row).filter((name) => verdictWords.test(name))).toEqual([])
      expect(body.scoring.statuses[row.window_status]).toEqual(expect.any(String))
    }
  })

  test('a preview attestation verifies offline, but not as live', async () => {
    const { status, body } = await node.get('/api/basis/v1/attestation/AAPLc')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      schema: 'basis-attestation/v1',
      preview: true,
      backing: { restated_by: 'countersign', evidence: { mode: 'preview' } },
    })
    const now = node.clock.now()
    expect(verifyAttestation(body, { jwks: node.jwks, now }).ok).toBe(true)
    expect(verifyAttestation(body, { jwks: node.jwks, now, requireLive: true }).ok).toBe(false)
  })

  test('the quote and the attestation of one moment have the same figures', async () => {
    const { body: quote } = await node.get('/api/basis/v1/quote/TSLAx')
    const { body: attestation } = await node.get('/api/basis/v1/attestation/TSLAx')
    const { wrapper_price, reference_price, basis_bps, underlying_state } = quote
    expect(attestation.as_of).toBe(quote.as_of)
    expect(attestation.snapshot).toEqual({ wrapper_price, reference_price, basis_bps, underlying_state })
  })

  test('without live readings the history consists of previews', async () => {
    const { status, body } = await node.get(
      '/api/basis/v1/history/TSLAx?from=2026-11-16T12:00:00Z&to=2026-11-16T15:00:00Z&interval=15m',
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({ symbol: 'TSLAx', chain: 'solana', interval: '15m', source: 'preview', preview: true })
    expect(body.points).toHaveLength(12)
    expect(body.points[0]).toMatchObject({ as_of: '2026-11-16T12:00:00.000Z', underlying_state: 'closed' })
    expect(body.points[11].underlying_state).toBe('open')
  })

  test('history ends now at the latest and starts with the calendar in 1990', async () => {
    const future = await node.get(
      '/api/basis/v1/history/TSLAx?from=2026-11-16T14:00:00Z&to=9999-12-31T00:00:00Z&interval=15m',
    )
    expect(future.body.points).toHaveLength(4)
    expect(future.body.to).toBe('2026-11-16T15:00:00.000Z')
    const earliest = await node.get(
      '/api/basis/v1/history/TSLAx?from=1990-01-01T00:00:00Z&to=1990-01-03T00:00:00Z&interval=1d',
    )
    expect(earliest.body.points).toHaveLength(2)
  })

  test.each([
    ['a range that ends before it starts', '?from=2026-11-16T15:00:00Z&to=2026-11-16T12:00:00Z', /before/],
    [
      'a range too long for its interval',
      '?from=2020-01-01T00:00:00Z&to=2026-11-16T12:00:00Z&interval=1m',
      /1500 are allowed/,
    ],
    ['a range in the future', '?from=2026-11-16T15:00:01Z&to=2026-11-17T00:00:00Z', /in the past/],
    ['a range in year 1', '?from=0001-01-01T00:00:00Z&to=0001-02-01T00:00:00Z&interval=1d', /begins 1990/],
    ['a range that ends in year 0', '?to=0000-01-01T00:00:00Z&interval=1d', /begins 1990/],
    ['an unknown interval', '?interval=7m', /must be one of 1m, 5m, 15m, 1h, 1d/],
    ['an invalid time', '?from=yesterday', /must match format "date-time"/],
  ])('%s is rejected', async (_name, query, message) => {
    const { status, body } = await node.get(`/api/basis/v1/history/TSLAx${query}`)
    expect(status).toBe(400)
    expect(body).toMatchObject({ error: 'invalid_request', message: expect.stringMatching(message) })
  })
})

describe('unknown symbols, chains and hashes', () => {
  test.each([
    '/api/basis/v1/quote/NOPE',
    '/api/basis/v1/quote/AAPLc?chain=solana',
    '/api/basis/v1/attestation/NOPE',
    '/api/basis/v1/attestation/AAPLc?seq=9',
    '/api/basis/v1/history/NOPE',
    '/api/basis/v1/board?chain=nowhere',
    `/api/basis/v1/evidence/${'0'.repeat(64)}`,
  ])('%s is not_found', async (url) => {
    const { status, body } = await node.get(url)
    expect(status).toBe(404)
    expect(body).toMatchObject({ error: 'error', code: 'not_found', message: expect.stringMatching(/^No such /) })
  })

  test('symbols are found by chain and regardless of case', async () => {
    expect((await node.get('/api/basis/v1/quote/aaplc?chain=base')).body.symbol).toBe('AAPLc')
    expect((await node.get('/api/basis/v1/board?chain=base')).body.rows).toHaveLength(5)
  })

  test('evidence with an invalid hash is a 400', async () => {
    expect((await node.get('/api/basis/v1/evidence/..%2fetc')).status).toBe(400)
  })
})

describe('keys', () => {
  test('a valid Bearer key and no key are accepted, an invalid key is a 401', async () => {
    const getQuote = (headers: Record<string, string>) => node.get('/api/basis/v1/quote/TSLAx', headers)
    expect((await getQuote({})).status).toBe(200)
    expect((await getQuote({ authorization: `Bearer ${VALID_KEY}` })).status).toBe(200)
    expect((await getQuote({ authorization: 'Bearer another_key' })).status).toBe(401)
    expect((await getQuote({ authorization: 'Basic abc' })).body).toMatchObject({
      error: 'error',
      code: 'unauthorized',
    })
  })

  test('requests are not counted in preview; when metered, RateLimit headers are sent and the limit is enforced', async () => {
    for (let index = 0; index < 5; index += 1)
      expect((await node.get('/api/basis/v1/symbols')).headers.ratelimit).toBeUndefined()
    const metered = await openBasisNode(database, { metered: true })
    const first = await metered.get('/api/basis/v1/symbols')
    expect(first.headers['ratelimit-policy']).toBe('"minute";q=2;w=60')
    await metered.get('/api/basis/v1/symbols')
    expect((await metered.get('/api/basis/v1/symbols')).status).toBe(429)
    await metered.close()
  })
})

describe('the stream', () => {
  test('one address may open 20 streams, and another one after closing one', async () => {
    const streaming = await openBasisNode(database)
    const address = await streaming.app.listen({ host: '127.0.0.1', port: 0 })
    const openStream = (controller: AbortController) =>
      fetch(`${address}/api/basis/v1/stream?symbols=TSLAx`, { signal: controller.signal })
    const controllers = Array.from({ length: 20 }, () => new AbortController())
    for (const controller of controllers) expect((await openStream(controller)).status).toBe(200)
    const rejectedResponse = await openStream(new AbortController())
    expect([rejectedResponse.status, (await readJson(rejectedResponse)).code]).toEqual([429, 'rate_limited'])
    controllers[0]!.abort()
    await expect.poll(() => streaming.basis.subscriberCount()).toBe(19)
    expect((await openStream(controllers[1]!)).status).toBe(200)
    for (const controller of controllers) controller.abort()
    await streaming.close()
  })

  test('sends the current readings, then new ones, and ends when the server stops', async () => {
    const streaming = await openBasisNode(database)
    const address = await streaming.app.listen({ host: '127.0.0.1', port: 0 })
    const response = await fetch(`${address}/api/basis/v1/stream?symbols=tslax,AAPLc`)
    expect(response.headers.get('content-type')).toMatch(/text\/event-stream/)
    expect(response.headers.get('x-request-id')).toBeTruthy()
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const readUntil = async (pattern: RegExp) => {
      while (!pattern.test(text)) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`The stream ended: ${text}`)
        text += value
      }
    }
    await readUntil(/id: TSLAx@2026-11-16T15:00:00.000Z[\s\S]*id: AAPLc@/)
    expect(text).not.toMatch(/NVDAx/)
    streaming.clock.advance(60_000)
    streaming.basis.publishPreviews()
    await readUntil(/id: TSLAx@2026-11-16T15:01:00.000Z/)
    const ended = reader.read().then(async function drain(chunk): Promise<boolean> {
      return chunk.done ? true : drain(await reader.read())
    })
    await streaming.close()
    expect(await ended).toBe(true)
  })

  test('a client that never reads is disconnected, and one that disconnects early leaves no subscription', async () => {
    const streaming = await openBasisNode(database, { keyDelayMs: 50 })
    await streaming.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = streaming.app.server.address() as AddressInfo
    const connectClient = (headers: string) => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      socket.write(`GET /api/basis/v1/stream HTTP/1.1\r\nhost: here\r\n${headers}\r\n`)
      return socket
    }
    const earlyLeaver = connectClient(`authorization: Bearer ${VALID_KEY}\r\n`)
    await sleep(20)
    earlyLeaver.resetAndDestroy()
    await sleep(100)
    await expect.poll(() => streaming.basis.subscriberCount()).toBe(0)

    const idleClient = connectClient('').pause()
    await expect.poll(() => streaming.basis.subscriberCount()).toBe(1)
    for (let ticks = 0; ticks < 2_000 && streaming.basis.subscriberCount() > 0; ticks += 1) {
      streaming.clock.advance(15_000)
      streaming.basis.publishPreviews()
      await new Promise(setImmediate)
    }
    expect(streaming.basis.subscriberCount()).toBe(0)
    idleClient.destroy()
    await streaming.close()
  })

  test('a stopping server does not wait for a client that does not read', async () => {
    const streaming = await openBasisNode(database)
    await streaming.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = streaming.app.server.address() as AddressInfo
    const idleClient = connect(port, '127.0.0.1')
      .on('error', () => {})
      .pause()
    idleClient.write('GET /api/basis/v1/stream HTTP/1.1\r\nhost: here\r\n\r\n')
    await expect.poll(() => streaming.basis.subscriberCount()).toBe(1)
    const [socket] = streaming.openSockets()
    while (socket!.writableLength === 0) {
      streaming.clock.advance(15_000)
      streaming.basis.publishPreviews()
    }
    const closed = await Promise.race([streaming.close().then(() => true), sleep(15_000).then(() => false)])
    expect(closed).toBe(true)
    idleClient.destroy()
  })

  test('an unknown wrapper is a 404 and an empty list a 400', async () => {
    expect((await node.get('/api/basis/v1/stream?symbols=NOPE')).status).toBe(404)
    expect((await node.get('/api/basis/v1/stream?symbols=,')).status).toBe(400)
  })
})

test('the OpenAPI document has every basis path', async () => {
  const { paths } = node.app.swagger() as unknown as {
    paths: Record<
      string,
      { get: { responses: Record<string, { content: { 'application/json': { schema: { required: string[] } } } }> } }
    >
  }
  const basis = Object.keys(paths).filter((path) => path.startsWith('/api/basis/v1'))
  expect(basis.sort()).toEqual(
    [
      '',
      '/attestation/{symbol}',
      '/attestations',
      '/attestations/{id}',
      '/attestations/{id}/proof',
      '/board',
      '/evidence/{sha256}',
      '/history/{symbol}',
      '/quote/{symbol}',
      '/stream',
      '/symbols',
    ].map((path) => `/api/basis/v1${path}`),
  )
  const quoteSchema = paths['/api/basis/v1/quote/{symbol}']!.get.responses['200']!.content['application/json'].schema
  expect(quoteSchema.required).toEqual(quoteFields)
})
