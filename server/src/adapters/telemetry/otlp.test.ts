import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastify from 'fastify'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { App } from '../../platform/http-app.ts'
import { invalid } from '../../platform/problem.ts'
import type { Tracing } from '../../platform/tracing.ts'
import { createOtlpTracing } from './otlp.ts'

type Span = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: Record<string, string> }[]
  status: { code: number; message?: string }
}

let collector: Server
let received: string[] = []
let tracing: Tracing
let app: App

beforeEach(async () => {
  received = []
  collector = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    received.push(`${request.url} ${request.headers.authorization} ${body}`)
    response.end('{}')
  })
  await new Promise<void>((done) => collector.listen(0, '127.0.0.1', done))
  const { port } = collector.address() as AddressInfo
  tracing = createOtlpTracing({ endpoint: `http://127.0.0.1:${port}`, headers: { authorization: 'Bearer t' } })
  app = fastify() as unknown as App
  tracing.traceRequests(app)
})
afterEach(async () => {
  await app.close()
  collector.close()
})

/** What the collector was sent, after everything has been flushed. */
async function spans(): Promise<Span[]> {
  await tracing.close()
  return received.flatMap((text) => {
    const { resourceSpans } = JSON.parse(text.slice(text.indexOf('{')))
    return resourceSpans.flatMap((resource: { scopeSpans: { spans: Span[] }[] }) =>
      resource.scopeSpans.flatMap((scope) => scope.spans),
    )
  })
}

test('a request, its steps and their steps are one trace, in the caller’s own', async () => {
  const inner = tracing.withSpan('inner', async () => 7)
  const outer = tracing.withSpan('outer', async (_secret: string) => {
    await new Promise((done) => setTimeout(done, 5))
    return inner()
  })
  app.get('/task/:id', async () => ({ n: await outer('canary-argument') }))
  const traceId = 'a'.repeat(32)
  await app.inject({
    url: '/task/canary-id?key=canary-query',
    headers: { traceparent: `00-${traceId}-${'b'.repeat(16)}-01`, 'x-api-key': 'canary-key' },
  })
  const all = await spans()
  expect(received[0]).toMatch(/^\/v1\/traces Bearer t /)
  const byName = new Map(all.map((span) => [span.name, span]))
  expect([...byName.keys()].sort()).toEqual(['GET /task/:id', 'inner', 'outer'])
  expect(new Set(all.map((span) => span.traceId))).toEqual(new Set([traceId]))
  const root = byName.get('GET /task/:id')!
  expect([root.parentSpanId, root.kind]).toEqual(['b'.repeat(16), 2])
  expect(byName.get('outer')!.parentSpanId).toBe(root.spanId)
  expect(byName.get('inner')!.parentSpanId).toBe(byName.get('outer')!.spanId)
  expect(root.attributes).toContainEqual({ key: 'http.response.status_code', value: { intValue: '200' } })
  expect(BigInt(root.endTimeUnixNano)).toBeGreaterThan(BigInt(root.startTimeUnixNano))
  expect(received.join()).not.toContain('canary')
})

test('a failed step says what kind of failure it was, never its words', async () => {
  const refused = tracing.withSpan('refused', async () => {
    throw invalid('canary-message')
  })
  const broken = tracing.withSpan('broken', async () => {
    throw new TypeError('canary-cause')
  })
  await expect(refused()).rejects.toThrow('canary-message')
  await expect(broken()).rejects.toThrow('canary-cause')
  const all = await spans()
  expect(all.map(({ name, status }) => [name, status.code, status.message])).toEqual([
    ['refused', 2, 'invalid_request 400'],
    ['broken', 2, 'TypeError'],
  ])
  expect(received.join()).not.toContain('canary')
})

test('requests at the same time keep their steps apart, and a made-up trace header is ignored', async () => {
  const step = tracing.withSpan('step', () => new Promise((done) => setTimeout(done, Math.random() * 10)))
  app.get('/', async () => {
    await step()
    return {}
  })
  await Promise.all(Array.from({ length: 20 }, () => app.inject({ url: '/', headers: { traceparent: '00-zz-yy-01' } })))
  const all = await spans()
  const roots = all.filter(({ name }) => name === 'GET /')
  expect(new Set(roots.map(({ traceId }) => traceId)).size).toBe(20)
  for (const one of all.filter(({ name }) => name === 'step')) {
    const root = roots.find(({ spanId }) => spanId === one.parentSpanId)
    expect(root?.traceId).toBe(one.traceId)
  }
})

test('without a collector the work goes on', async () => {
  const lonely = createOtlpTracing({ endpoint: 'http://127.0.0.1:1' })
  expect(await lonely.withSpan('step', async () => 'done')()).toBe('done')
  await lonely.close()
})
