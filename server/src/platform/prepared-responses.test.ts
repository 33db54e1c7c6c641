import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { systemClock } from './clock.ts'
import { createHttp } from './http.ts'
import type { App } from './http-app.ts'
import { createIds } from './ids.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import {
  compressResponse,
  createPreparedJson,
  type PreparedResponse,
  prepareResponse,
  sendPrepared,
} from './prepared-responses.ts'
import { createRateLimiter } from './rate-limit.ts'

let app: App
let url: string
let logLines = ''
const metrics = createMetrics()
let current: PreparedResponse | undefined = prepareResponse('{"a":1}')

beforeAll(async () => {
  const authenticate = { key: async () => undefined, admin: () => false }
  app = await createHttp({
    log: createLog('info', {
      write(line: string) {
        logLines += line
      },
    }),
    clock: systemClock,
    ids: createIds(systemClock),
    metrics,
    authenticate,
    limiter: createRateLimiter(systemClock),
    limits: { anonymousPerMinute: 8, keyPerMinute: 8 },
    publicUrl: () => url,
  })
  app.get('/free', { config: { unmetered: true } }, async (request, reply) =>
    sendPrepared(request, reply, prepareResponse('{"from":"the route"}')),
  )
  app.prepareResponse('/free', { route: '/free', unmetered: true, find: () => current })
  app.get('/limited', async (request, reply) => sendPrepared(request, reply, current!))
  app.prepareResponse('/limited', { route: '/limited', find: () => current })
  url = await app.listen({ host: '127.0.0.1', port: 0 })
})
afterAll(() => app.close())

test('prepared bytes are sent with an ETag, a request id, a metric and a log line, as a route sends them', async () => {
  const prepared = await fetch(`${url}/free`, { headers: { 'x-request-id': 'mine-1' } })
  const fromRoute = await fetch(`${url}/free?query=1`, { headers: { 'x-request-id': 'mine-1' } })
  expect([await prepared.text(), await fromRoute.text()]).toEqual(['{"a":1}', '{"from":"the route"}'])
  expect([...prepared.headers.keys()].sort()).toEqual([...fromRoute.headers.keys()].sort())
  for (const name of ['x-request-id', 'x-content-type-options', 'content-type'])
    expect(prepared.headers.get(name)).toBe(fromRoute.headers.get(name))
  expect(await metrics.registry.metrics()).toContain(
    'countersign_http_request_seconds_count{method="GET",route="/free",status="200"} 2',
  )
  expect(logLines.match(/"request_id":"mine-1".*"route":"\/free"/g)).toHaveLength(2)
})

test('a client that has the bytes gets 304, from the prepared response and from the route', async () => {
  for (const path of ['/free', '/free?query=1']) {
    const etag = (await fetch(url + path)).headers.get('etag')!
    for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const response = await fetch(url + path, { headers: { 'if-none-match': header } })
      expect([response.status, await response.text(), response.headers.get('etag')]).toEqual([304, '', etag])
    }
    expect((await fetch(url + path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  }
})

test('letters of several bytes and compressed bytes arrive as they are', async () => {
  const text = JSON.stringify({ text: 'Zürich, 東京, 1 € '.repeat(100) })
  current = await compressResponse(prepareResponse(text))
  for (const encoding of ['identity', 'gzip', 'br']) {
    const response = await fetch(`${url}/free`, { headers: { 'accept-encoding': encoding } })
    expect(response.headers.get('content-encoding') ?? 'identity').toBe(encoding)
    expect(await response.text()).toBe(text)
  }
  current = prepareResponse('{"a":1}')
})

test('without bytes, with another method or with a credential the route answers', async () => {
  expect(await (await fetch(`${url}/free`, { headers: { 'x-api-key': 'any' } })).text()).toBe('{"from":"the route"}')
  expect((await fetch(`${url}/free`, { method: 'HEAD' })).headers.get('content-length')).toBe('20')
  expect((await fetch(`${url}/free`, { method: 'DELETE' })).status).toBe(405)
  current = undefined
  expect(await (await fetch(`${url}/free`)).text()).toBe('{"from":"the route"}')
  current = prepareResponse('{"a":1}')
})

test('a repeated credential header is refused on a prepared path too', async () => {
  const { port } = new URL(url)
  const reply = await new Promise<string>((resolve) => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.write('GET /free HTTP/1.1\r\nhost: x\r\nx-api-key: a\r\nx-api-key: b\r\nconnection: close\r\n\r\n')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('end', () => resolve(text))
  })
  expect(reply).toMatch(/^HTTP\/1.1 400/)
})

test('prepared responses and routes share one rate limit, and a refused request is counted once', async () => {
  const paths = ['/limited', '/limited?query=1']
  const remaining: number[] = []
  let limited: Response
  do {
    limited = await fetch(url + paths[remaining.length % 2])
    remaining.push(Number(/r=(\d+)/.exec(limited.headers.get('ratelimit')!)![1]))
  } while (limited.status === 200)
  // One less for each request, down to none for the last that was allowed and for the one that was refused.
  const last = remaining.length - 1
  expect(remaining).toEqual(remaining.map((_, index) => Math.max(0, last - 1 - index)))
  expect([limited.status, limited.headers.get('ratelimit-policy')]).toEqual([429, '"minute";q=8;w=60'])
  expect(await limited.json()).toMatchObject({ code: 'rate_limited' })
})

test('a prepared JSON is made again when its source changes or it is too old, and once for many callers', async () => {
  let now = 1_000
  let source = {}
  let builds = 0
  const json = createPreparedJson({
    clock: { now: () => new Date(now) },
    source: () => source,
    build: async () => ++builds,
    maxAgeMs: 100,
  })
  expect(json.find()).toBeUndefined()
  const responses = await Promise.all([json.read(String), json.read(String)])
  expect(responses.map(({ body }) => body.toString())).toEqual(['1', '1'])
  expect(json.find()).toBe(responses[0])
  now += 100
  expect(json.find()).toBeUndefined()
  expect((await json.read(String)).body.toString()).toBe('2')
  source = {}
  expect(json.find()).toBeUndefined()
  expect((await json.read(String)).body.toString()).toBe('3')
})

test('a build that fails is not kept', async () => {
  let fails = true
  const json = createPreparedJson({
    clock: systemClock,
    source: () => metrics,
    build: async () => {
      if (fails) throw new Error('The database cannot be reached.')
      return 1
    },
  })
  await expect(json.read(String)).rejects.toThrow('cannot be reached')
  fails = false
  expect((await json.read(String)).body.toString()).toBe('1')
})
