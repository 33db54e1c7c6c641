import { expect, test } from 'vitest'
import { startService } from '../harness.ts'
import { frozenClock } from './frozen-clock.ts'

const TOKEN = 'a-token-for-the-scraper'
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const SERIES = 'countersign_http_request_seconds_bucket'

test('in production without a token or a port the API has no metrics', async () => {
  const service = await startService({ clock: frozenClock, env: { NODE_ENV: 'production' } })
  try {
    expect(await service.get('/metrics')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  } finally {
    await service.close()
  }
})

test('with METRICS_TOKEN the metrics take it, in production and elsewhere, and a guess counts against the address', async () => {
  const service = await startService({
    clock: frozenClock,
    env: { NODE_ENV: 'production', METRICS_TOKEN: TOKEN, RATE_LIMIT_ANON_PER_MINUTE: '3' },
  })
  try {
    expect(await service.get('/metrics')).toMatchObject({ status: 401, body: { code: 'unauthorized' } })
    expect((await service.get('/metrics', bearer('a-guess-at-the-token'))).status).toBe(401)
    for (let scrape = 0; scrape < 5; scrape++) {
      const metrics = await service.get('/metrics', bearer(TOKEN))
      expect(metrics.status).toBe(200)
      expect(metrics.text).toContain(SERIES)
    }
    expect((await service.get('/metrics', bearer('another-guess'))).status).toBe(401)
    expect((await service.get('/metrics', bearer('another-guess'))).status).toBe(429)
  } finally {
    await service.close()
  }
})

test('with METRICS_PORT the metrics are there and not in the API', async () => {
  const service = await startService({ clock: frozenClock, env: { METRICS_PORT: '0', METRICS_TOKEN: TOKEN } })
  try {
    expect((await service.get('/metrics')).status).toBe(404)
    const url = service.service.metricsUrl!
    expect((await fetch(url)).status).toBe(401)
    const response = await fetch(url, { headers: bearer(TOKEN) })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain(SERIES)
    expect((await fetch(url.replace('/metrics', '/api/pricing'), { headers: bearer(TOKEN) })).status).toBe(404)
  } finally {
    await service.close()
  }
})

test('open metrics of a development service are limited like any anonymous request', async () => {
  const service = await startService({ clock: frozenClock, env: { RATE_LIMIT_ANON_PER_MINUTE: '3' } })
  try {
    for (let request = 0; request < 3; request++) expect((await service.get('/metrics')).status).toBe(200)
    expect((await service.get('/metrics')).status).toBe(429)
  } finally {
    await service.close()
  }
})
