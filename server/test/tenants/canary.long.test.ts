import { Writable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLog } from '../../src/platform/log.ts'
import { startService, type TestService } from '../harness.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'
import { listRoutes, sampleValue } from './openapi-samples.ts'

/** Every secret contains a canary; logs, responses, metrics and the database are searched for them. */
const settings = {
  ADMIN_KEY: 'canary-admin-0123456789abcdef',
  SIGNING_KEY: 'canary-signing-0123456789abcdef0123456789',
  ENCRYPTION_KEY: 'canary-encryption-0123456789abcdef0123456789',
  STRIPE_SECRET_KEY: 'sk_test_canary_stripe',
  STRIPE_API_URL: 'http://127.0.0.1:1',
  LANE_API_KEY: 'canary-lane-key',
  RH_OAUTH_CLIENT_ID: 'client',
  RH_OAUTH_CLIENT_SECRET: 'canary-oauth-secret',
  RH_OAUTH_REDIRECT_URI: 'http://127.0.0.1:1/back',
  RH_OAUTH_AUTHORIZE_URL: 'http://127.0.0.1:1/authorize',
  RH_OAUTH_TOKEN_URL: 'http://127.0.0.1:1/token',
}

let service: TestService
let receiver: Receiver
let logText = ''
const responses: string[] = []
const canaries = new Map<string, string>()

beforeAll(async () => {
  const sink = new Writable({
    write(chunk, _encoding, callback) {
      logText += chunk
      callback()
    },
  })
  service = await startService({ env: settings, log: createLog('trace', sink) })
  receiver = await openReceiver()
  for (const [name, value] of Object.entries(settings)) if (value.includes('canary')) canaries.set(name, value)
})
afterAll(async () => {
  await service?.close()
  await receiver?.close()
})

const recordResponse = <T extends { text: string }>(response: T): T => {
  responses.push(response.text)
  return response
}

const TIMEOUT_MS = 20_000

/** Fails with the name of a route that does not respond, instead of blocking the whole test. */
async function withTimeout<T>(name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} did not respond within ${TIMEOUT_MS} ms.`)), TIMEOUT_MS)
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

test('no secret appears in a log, a response, a metric or a dump of the database', async () => {
  const tenant = await service.onboard()
  canaries.set('api key', tenant.apiKey)
  const session = await service.post('/api/session', { api_key: tenant.apiKey })
  const cookie = session.headers.get('set-cookie')!.split(';')[0]!
  canaries.set('session cookie', cookie.split('=')[1]!)
  canaries.set('csrf token', session.body.csrf_token)
  const webhook = await service.post('/api/webhooks', { url: receiver.url, events: ['*'] }, tenant.headers)
  canaries.set('signing secret', webhook.body.signingSecret)
  const rotateResponse = await service.post(`/api/webhooks/${webhook.body.id}/rotate-secret`, {}, tenant.headers)
  canaries.set('rotated secret', rotateResponse.body.signingSecret)
  const headers = { ...tenant.headers, 'idempotency-key': 'canary-run' }
  const secondWebhook = await service.post('/api/webhooks', { url: receiver.url, events: ['*'] }, headers)
  canaries.set('secret of a stored response', secondWebhook.body.signingSecret)

  const payer = await service.payer()
  const paidRun = await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { ...tenant.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ task: 'Say something.', agent_id: 'comedian-v1' }),
  })
  responses.push(await paidRun.text())

  // Every route with a valid and a broken body, by key, by session and as the operator.
  const admin = { 'x-admin-key': settings.ADMIN_KEY }
  const { body: description } = await service.get('/openapi.json')
  for (const route of listRoutes(description)) {
    if (/\/api\/(onboard|session)$|rotate|\/keys$|admin\/tenants$/.test(route.path) && route.method === 'POST') continue
    // A stream never ends.
    if (route.path === '/api/session' || route.path.endsWith('/stream')) continue
    const path = route.path.replace(/\{[^}]+\}/g, 'nothing')
    for (const headers of [tenant.headers, { cookie, 'x-csrf-token': session.body.csrf_token }, admin, { cookie }])
      for (const body of route.body ? [sampleValue(route.body, 'nothing'), '{"broken":'] : [undefined])
        recordResponse(
          await withTimeout(`${route.method} ${path}`, service.call(route.method, path, body, { ...headers })),
        )
  }
  for (const path of ['/api/env-check', '/metrics', '/api/health', '/api/me', '/api/me/plan'])
    recordResponse(await service.get(path, tenant.headers))
  await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
  responses.push(JSON.stringify(receiver.received.map(({ body }) => body)))

  const dump = await dumpDatabase(service)
  const leaks = [...canaries].flatMap(([name, value]) => [
    ...(logText.includes(value) ? [`${name} in the log`] : []),
    ...(responses.some((text) => text.includes(value)) ? [`${name} in a response`] : []),
    ...(dump.includes(value) ? [`${name} in the database`] : []),
  ])
  expect(leaks).toEqual([])
  // The search itself works: values that are not secret are found.
  expect(logText).toContain('"status":200')
  expect(dump).toContain(tenant.tenantId)
  expect(responses.some((text) => text.includes(tenant.tenantId))).toBe(true)
})

async function dumpDatabase({ service: { database } }: TestService): Promise<string> {
  const { rows: tables } = await database.pool.query<{ table_name: string }>(
    `select table_name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`,
  )
  let dump = ''
  for (const { table_name } of tables) {
    const { rows } = await database.pool.query(
      `select coalesce(jsonb_agg(to_jsonb(r)), '[]')::text as text from "${table_name}" r`,
    )
    dump += rows[0].text
  }
  return dump
}
