import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

const admin = { 'x-admin-key': 'an-admin-key-for-this-test-only' }

let service: TestService
beforeAll(async () => {
  service = await startService({
    env: { ADMIN_KEY: admin['x-admin-key'], PUBLIC_URL: 'https://countersign.example' },
  })
})
afterAll(() => service.close())

/** Sends text over a connection of its own and returns everything that comes back until the service closes it. */
const sendRaw = (url: string, text: string) =>
  new Promise<string>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const chunks: Buffer[] = []
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
    socket.on('error', reject)
  })

test('a request with two Host headers is refused, on a prepared path too', async () => {
  await service.get('/api/pricing')
  for (const path of ['/api/pricing', '/api/health', '/openapi.json', '/api/me']) {
    const reply = await sendRaw(
      service.url,
      `GET ${path} HTTP/1.1\r\nHost: a.example\r\nhost: b.example\r\nConnection: close\r\n\r\n`,
    )
    expect(reply, path).toMatch(/^HTTP\/1\.1 400 /)
    expect(reply).toContain('"error":"invalid_request"')
  }
})

test('an answer to a tenant or to the operator is not stored by caches, an override token neither', async () => {
  const { headers } = await service.onboard()
  for (const path of ['/api/me', '/api/runs', '/api/budgets', '/api/audit', '/api/loops', '/api/runs/run_unknown'])
    expect((await service.get(path, headers)).headers.get('cache-control'), path).toBe('no-store')
  expect((await service.get('/api/admin/tenants', admin)).headers.get('cache-control')).toBe('no-store')
  expect((await service.get('/api/me')).headers.get('cache-control')).toBe('no-store')
  await service.post('/api/policies', { name: 'none', constraints: { denied_agents: ['comedian-v1'] } }, headers)
  const denied = await service.post('/api/run', { task: 'A joke.', agent_id: 'comedian-v1' }, headers)
  expect(denied.status).toBe(429)
  const override = await service.post(
    '/api/authorize',
    {
      agent_id: 'comedian-v1',
      amount_usdc: 0.01,
      merchant: 'countersign',
      reason: 'once',
      denied_decision_id: denied.body.decision_id,
      expires_in_seconds: 60,
    },
    headers,
  )
  expect(override.status, override.text).toBeLessThan(300)
  expect(override.body.token).toBeTruthy()
  expect(override.headers.get('cache-control')).toBe('no-store')
})

test('public answers stay cacheable', async () => {
  for (const path of ['/api/pricing', '/api/receipts', '/openapi.json', '/.well-known/jwks.json'])
    expect((await service.get(path)).headers.get('cache-control'), path).not.toBe('no-store')
})

test('with an https address every answer asks browsers to stay with https, and with http none does', async () => {
  for (const path of ['/api/pricing', '/api/me', '/docs', '/api/no-such-path', '/openapi.json'])
    expect((await service.get(path)).headers.get('strict-transport-security'), path).toBe('max-age=31536000')
  expect(await sendRaw(service.url, 'HELLO\r\n\r\n')).toMatch(/strict-transport-security: max-age=31536000/)
  const plain = await startService()
  try {
    for (const path of ['/api/pricing', '/api/me', '/docs'])
      expect((await plain.get(path)).headers.get('strict-transport-security')).toBeNull()
  } finally {
    await plain.close()
  }
})

/** Without the decoding that `fetch` does. */
const getRaw = (path: string, headers: Record<string, string>) =>
  new Promise<{ status: number; headers: Record<string, unknown>; body: Buffer }>((resolve, reject) => {
    httpRequest(`${service.url}${path}`, { headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
      .on('error', reject)
      .end()
  })

test.each(['/openapi.json', '/docs', '/docs/operations/run', '/docs/guides/money', '/docs/search.json'])(
  '%s is sent as prepared compressed bytes with an ETag for each form',
  async (path) => {
    const plain = await getRaw(path, {})
    const gzip = await getRaw(path, { 'accept-encoding': 'gzip, br;q=0' })
    const brotli = await getRaw(path, { 'accept-encoding': 'gzip, deflate, br' })
    expect([plain, gzip, brotli].map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'gzip', 'br'])
    for (const { headers } of [plain, gzip, brotli]) expect(headers.vary).toMatch(/accept-encoding/i)
    expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true)
    expect(brotli.body.length).toBeLessThan(plain.body.length / 2)
    expect(new Set([plain, gzip, brotli].map(({ headers }) => headers.etag)).size).toBe(3)
    for (const [answer, encoding] of [
      [plain, 'identity'],
      [gzip, 'gzip'],
      [brotli, 'br'],
    ] as const) {
      const again = await getRaw(path, { 'accept-encoding': encoding, 'if-none-match': String(answer.headers.etag) })
      expect([again.status, again.body.length]).toEqual([304, 0])
    }
  },
)

test('pipelined requests are answered in order, and others are answered between them', async () => {
  const request = (path: string, close = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${close}\r\n`
  const order: string[] = []
  const pipelined = sendRaw(
    service.url,
    request('/openapi.json').repeat(400) + request('/api/no-such-path', 'connection: close\r\n'),
  ).then((reply) => {
    order.push('pipelined')
    return reply
  })
  const health = await service.get('/api/health')
  order.push('health')
  expect(health.status).toBe(200)
  const reply = await pipelined
  expect(order).toEqual(['health', 'pipelined'])
  expect(reply.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(400)
  expect(reply.match(/HTTP\/1\.1 404 Not Found/g)).toHaveLength(1)
})

test('a connection that pipelines without end is closed', async () => {
  const reply = await sendRaw(service.url, 'GET /api/pricing?a HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_200)).catch(
    () => '',
  )
  expect(reply.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0).toBeLessThan(1_200)
})

test('a stored answer has the same payment headers from every process, whatever its own address', async () => {
  const env = {
    SIGNING_KEY: 'one-signing-key-for-both-processes',
    ENCRYPTION_KEY: 'one-key-for-both-of-these-processes',
  }
  const first = await startService({ env })
  const second = await startService({ env, databaseUrl: first.service.config.DATABASE_URL! })
  try {
    const payer = await first.payer(1)
    const task = { task: 'A joke, please.', agent_id: 'comedian-v1' }
    const challenge = await first.post('/api/run', task)
    const payment = await signPayment(payer, readChallenge(challenge.headers))
    const answer = await first.post('/api/run', task, payment)
    expect(answer.status, answer.text).toBe(200)
    const replay = await second.post('/api/run', task, payment)
    expect(replay.headers.get('idempotent-replayed')).toBe('true')
    expect(replay.text).toBe(answer.text)
    for (const name of ['payment-response', 'x-payment-response', 'cache-control'])
      expect(replay.headers.get(name)).toBe(answer.headers.get(name))
    expect(answer.headers.get('payment-response')).toBeTruthy()
  } finally {
    await second.close()
    await first.close()
  }
})
