import { afterEach, expect, test } from 'vitest'
import { createHttp } from '../../../platform/http.ts'
import type { App } from '../../../platform/http-app.ts'
import { createIds } from '../../../platform/ids.ts'
import type { Log } from '../../../platform/log.ts'
import { createMetrics } from '../../../platform/metrics.ts'
import { notFound, unavailable } from '../../../platform/problem.ts'
import { createRateLimiter } from '../../../platform/rate-limit.ts'
import type { ApprovalLinks } from './approval-links.ts'
import { approvalPageRoutes } from './approval-page.routes.ts'

const TOKEN = 'tokenCanary0000000000000000000000000000000A'
const clock = { now: () => new Date() }

let app: App
afterEach(() => app.close())

async function openApp(links: Partial<ApprovalLinks>, perMinute = 0) {
  const lines: string[] = []
  const write = (...parts: unknown[]) => {
    lines.push(JSON.stringify(parts))
  }
  const log = { info: write, warn: write, error: write, debug: write, isLevelEnabled: () => true } as unknown as Log
  app = await createHttp({
    log,
    clock,
    ids: createIds(clock),
    metrics: createMetrics(),
    authenticate: { key: async () => undefined, admin: () => false },
    limiter: createRateLimiter(clock),
    limits: { anonymousPerMinute: perMinute, keyPerMinute: 0 },
    publicUrl: () => 'http://127.0.0.1',
  })
  approvalPageRoutes(app, links as ApprovalLinks, log)
  await app.ready()
  return lines
}

test.each([
  ['an unavailable service', unavailable('The database cannot be reached at the moment.', 2), 503],
  ['a lost database', Object.assign(new Error('terminating connection'), { code: '57P01' }), 503],
  ['a fault of ours', new Error('secret detail'), 500],
])('%s is a page that says nothing was decided or how to find out, without the cause', async (_name, error, status) => {
  const fail = async () => {
    throw error
  }
  const lines = await openApp({ show: fail, decide: fail })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  for (const response of [
    await app.inject({ url: `/approve/${TOKEN}` }),
    await app.inject({ method: 'POST', url: `/approve/${TOKEN}`, headers, payload: 'decision=approve' }),
  ]) {
    expect(response.statusCode).toBe(status)
    expect(response.headers['content-type']).toMatch(/text\/html/)
    expect(response.headers['content-security-policy']).toMatch(/^default-src 'none'/)
    expect(response.headers['cache-control']).toBe('no-store')
    expect(response.body).toMatch(/role="alert"/)
    expect(response.body).not.toContain('secret detail')
    if (status === 503) expect(response.headers['retry-after']).toBe('2')
  }
  expect(lines.length).toBeGreaterThan(0)
  expect(lines.join()).not.toContain(TOKEN)
})

test('guesses are limited by address, and the refusal is a page', async () => {
  await openApp({ show: async () => Promise.reject(notFound('link')) }, 3)
  const statuses: number[] = []
  for (let guess = 0; guess < 5; guess += 1)
    statuses.push((await app.inject({ url: `/approve/guess-${guess}`, remoteAddress: '203.0.113.9' })).statusCode)
  expect(statuses).toEqual([404, 404, 404, 429, 429])
  const refused = await app.inject({ url: `/approve/${TOKEN}`, remoteAddress: '203.0.113.9' })
  expect(refused.headers['content-type']).toMatch(/text\/html/)
  expect(refused.headers['retry-after']).toBeDefined()
})
