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
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve))
  const { port } = collector.address() as AddressInfo
  tracing = createOtlpTracing({ endpoint: `http://127.0.0.1:${port}`, headers: { authorization: 'Bearer t' } })
  app = fastify() as unknown as App
  tracing.traceRequests(app)
})
afterEach(async () => {
  await app.close()
  collector.close()
})

/** All spans that the collector received, after a flush. */
async function flushSpans(): Promise<Span[]> {
  await tracing.close()
  return received.flatMap((text) => {
    const { resourceSpans } = JSON.parse(text.slice(text.indexOf('{')))
    return resourceSpans.flatMap((resource: { scopeSpans: { spans: Span[] }[] }) =>
      resource.scopeSpans.flatMap((scope) => scope.spans),
    )
  })
}

test('a request and its nested steps are spans of the caller’s trace', async () => {
  const inner = tracing.withSpan('inner', async () => 7)
  const outer = tracing.withSpan('outer', async (_secret: string) => {
    await new Promise((resolve) => setTimeout(resolve, 5))
    return inner()
  })
  app.get('/task/:id', async () => ({ n: await outer('canary-argument') }))
  const traceId = 'a'.repeat(32)
  await app.inject({
    url: '/task/canary-id?key=canary-query',
    headers: { traceparent: `00-${traceId}-${'b'.repeat(16)}-01`, 'x-api-key': 'canary-key' },
  })
  const spans = await flushSpans()
  expect(received[0]).toMatch(/^\/v1\/traces Bearer t /)
  const byName = new Map(spans.map((span) => [span.name, span]))
  expect([...byName.keys()].sort()).toEqual(['GET /task/:id', 'inner', 'outer'])
  expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]))
  const root = byName.get('GET /task/:id')!
  expect([root.parentSpanId, root.kind]).toEqual(['b'.repeat(16), 2])
  expect(byName.get('outer')!.parentSpanId).toBe(root.spanId)
  expect(byName.get('inner')!.parentSpanId).toBe(byName.get('outer')!.spanId)
  expect(root.attributes).toContainEqual({ key: 'http.response.status_code', value: { intValue: '200' } })
  expect(BigInt(root.endTimeUnixNano)).toBeGreaterThan(BigInt(root.startTimeUnixNano))
  expect(received.join()).not.toContain('canary')
})

test('a failed step reports the kind of failure, never its message', async () => {
  const refused = tracing.withSpan('refused', async () => {
    throw invalid('canary-message')
  })
  const broken = tracing.withSpan('broken', async () => {
    throw new TypeError('canary-cause')
  })
  await expect(refused()).rejects.toThrow('canary-message')
  await expect(broken()).rejects.toThrow('canary-cause')
  const spans = await flushSpans()
  expect(spans.map(({ name, status }) => [name, status.code, status.message])).toEqual([
    ['refused', 2, 'invalid_request 400'],
    ['broken', 2, 'TypeError'],
  ])
  expect(received.join()).not.toContain('canary')
})

test('concurrent requests have separate traces, and an invalid traceparent is ignored', async () => {
  const step = tracing.withSpan('step', () => new Promise((resolve) => setTimeout(resolve, Math.random() * 10)))
  app.get('/', async () => {
    await step()
    return {}
  })
  await Promise.all(Array.from({ length: 20 }, () => app.inject({ url: '/', headers: { traceparent: '00-zz-yy-01' } })))
  const spans = await flushSpans()
  const roots = spans.filter(({ name }) => name === 'GET /')
  expect(new Set(roots.map(({ traceId }) => traceId)).size).toBe(20)
  for (const step of spans.filter(({ name }) => name === 'step')) {
    const root = roots.find(({ spanId }) => spanId === step.parentSpanId)
    expect(root?.traceId).toBe(step.traceId)
  }
})

test('traced functions work without a collector', async () => {
  const tracingWithoutCollector = createOtlpTracing({ endpoint: 'http://127.0.0.1:1' })
  expect(await tracingWithoutCollector.withSpan('step', async () => 'done')()).toBe('done')
  await tracingWithoutCollector.close()
})
