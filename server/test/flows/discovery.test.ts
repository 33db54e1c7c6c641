import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readJson, startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService({ env: { ADMIN_KEY: 'an-admin-key-for-this-test-only' } })
})
afterAll(() => service.close())

const admin = { 'x-admin-key': 'an-admin-key-for-this-test-only' }

// The published price table.
const priceTable: [string, string, string, number, number, number, number][] = [
  ['comedian-v1', 'starter', 'entertainment', 0.005, 0.01, 0.0015, 85],
  ['writer-v1', 'standard', 'content', 0.008, 0.013, 0.002, 84.62],
  ['support-v1', 'standard', 'support', 0.006, 0.011, 0.002, 81.82],
  ['analyst-v1', 'pro', 'analysis', 0.02, 0.025, 0.006, 76],
  ['coder-v1', 'expert', 'code', 0.02, 0.025, 0.007, 72],
  ['strategist-v1', 'expert', 'strategy', 0.02, 0.025, 0.006, 76],
  ['researcher-v2', 'expert', 'research', 0.018, 0.023, 0.009, 60.87],
]

test('pricing shows every field and every number of the price table', async () => {
  const { status, body } = await service.get('/api/pricing')
  expect(status).toBe(200)
  const figures = (record: Record<string, unknown>) => [
    record.agent_id,
    record.tier,
    record.category,
    record.base_price_usdc,
    record.price_usdc,
    record.estimated_cost_usd,
    record.margin_percent,
  ]
  expect(body.agents.map(figures)).toEqual(priceTable)
  expect(body.lanes).toEqual(body.agents)
  expect(figures(body.default)).toEqual(['default', 'starter', 'fallback', 0.005, 0.01, 0.0015, 85])
  for (const record of [...body.agents, body.default]) {
    expect(Object.keys(record).sort()).toEqual(
      [
        'agent_id',
        'display_name',
        'description',
        'tier',
        'category',
        'recommended_use',
        'endpoint',
        'base_price_usdc',
        'orchestration_fee_usdc',
        'price_usdc',
        'estimated_cost_usd',
        'estimated_margin_usd',
        'margin_percent',
      ].sort(),
    )
    expect(record.orchestration_fee_usdc).toBe(0.005)
    expect(record.estimated_margin_usd).toBeCloseTo(record.price_usdc - record.estimated_cost_usd, 9)
  }
  expect(body).toMatchObject({
    currency: 'USDC',
    network: 'eip155:8453',
    settlement_asset: 'USDC',
    orchestration_fee_usdc: 0.005,
    primary_paid_endpoint: 'POST /api/run',
    secondary_paid_endpoint: 'POST /api/loop',
    cheap_test: { agent_id: 'comedian-v1', price_usdc: 0.01 },
    default_router_run: { entry_price_usdc: 0.01, typical_range_usdc: { min: 0.01, max: 0.025 } },
    paid_execution: [
      { pricing_type: 'tiered', from_usdc: 0.01, to_usdc: 0.025 },
      { pricing_type: 'fixed_or_tiered', from_usdc: 0.005 },
    ],
    governance: {
      supported: true,
      outcomes: ['approved', 'rejected', 'review_required', 'pass', 'warning', 'blocked', 'downgrade'],
      stable_error_codes: ['budget_exceeded', 'policy_blocked', 'invalid_request', 'payment_required', 'error'],
    },
    routed_actions: {
      path: 'POST /api/route-intent',
      status: 'planned',
      fee_models: ['flat_fee', 'percentage_of_gmv', 'dynamic_by_route_type'],
    },
  })
  for (const field of [
    'pricing_version',
    'cost_model',
    'product',
    'service',
    'settlement_network_name',
    'price_note',
    'summary',
    'discovery',
    'example_prices',
    'monetization_logic',
    'marketplace_hints',
    'docs',
  ])
    expect(body).toHaveProperty(field)
})

test('capabilities list every free and paid endpoint', async () => {
  const { body } = await service.get('/api/capabilities')
  expect(body.free_endpoints).toEqual([
    '/api/health',
    '/api/env-check',
    '/api/capabilities',
    '/api/pricing',
    '/api/providers',
    '/api/route',
    '/api/routing-intel',
    '/api/agents',
    '/api/receipts',
  ])
  expect(body.paid_endpoints).toEqual(['POST /api/run', 'POST /api/loop'])
  expect(body.product_layers.length).toBeGreaterThan(0)
})

test('providers can be filtered, and a limit out of range is refused', async () => {
  expect((await service.get('/api/providers')).body.providers).toHaveLength(7)
  expect(
    (await service.get('/api/providers?category=code')).body.providers.map((provider: { id: string }) => provider.id),
  ).toEqual(['coder-v1'])
  expect((await service.get('/api/providers?network=eip155:1')).body.providers).toEqual([])
  expect((await service.get('/api/providers?trusted_only=true')).body.providers).toEqual([])
  expect((await service.get('/api/providers?limit=2')).body.providers).toHaveLength(2)
  for (const limit of ['0', '101', 'x', '1.5', '-1'])
    expect((await service.get(`/api/providers?limit=${limit}`)).status).toBe(400)
})

test('a category that no lane has is refused on /api/route as on /api/run', async () => {
  const body = { task: 'Tell me a joke.', constraints: { category: 'alchemy' } }
  const expected = { error: 'invalid_request', message: "There is no category 'alchemy'. GET /api/agents lists them." }
  for (const path of ['/api/route', '/api/run']) {
    const refusal = await service.post(path, body)
    expect([refusal.status, refusal.body], path).toEqual([400, expect.objectContaining(expected)])
  }
  expect((await service.post('/api/route', { ...body, agent_id: 'comedian-v1' })).status).toBe(400)
  expect((await service.post('/api/route', { ...body, constraints: { category: 'code' } })).status).toBe(200)
})

test('health, env-check, openapi.json, metrics and the docs page answer', async () => {
  expect((await service.get('/api/health')).body).toMatchObject({ status: 'ok', redis: 'not_configured' })
  const { text, body } = await service.get('/api/env-check')
  expect(body.status).toBe('ok')
  expect(body.services.admin.optional.ADMIN_KEY).toBe('[set, 31 chars]')
  expect(text).not.toContain('an-admin-key-for-this-test-only')
  const openapi = (await service.get('/openapi.json')).body
  expect(openapi).toMatchObject({ openapi: '3.1.0', info: { version: '1.7.0' } })
  expect(Object.keys(openapi.paths['/api/run'].post.responses)).toEqual(
    expect.arrayContaining(['200', '400', '402', '409', '413', '415', '429', '500', '503']),
  )
  expect((await service.get('/metrics')).text).toContain('countersign_http_request_seconds_bucket')
  const root = await service.get('/')
  expect([root.status, root.headers.get('location')]).toEqual([302, '/docs'])
  const page = await service.get('/docs')
  expect(page.headers.get('content-security-policy')).toContain("script-src 'self'")
  expect(page.text).not.toMatch(/https?:\/\//)
})

test('only the admin can change lanes, and a new price applies at once', async () => {
  const lane = { agent_id: 'translator-v1', display_name: 'Translator', category: 'language', base_price_usdc: 0.01 }
  expect((await service.post('/api/lane', lane)).status).toBe(401)
  expect((await service.post('/api/lane', lane, admin)).status).toBe(201)
  expect((await service.post('/api/lane', lane, admin)).status).toBe(409)
  expect((await service.get('/api/lanes')).body.lanes).toHaveLength(8)
  const patchResponse = await service.call('PATCH', '/api/lane/translator-v1', { base_price_usdc: 0.02 }, admin)
  expect(patchResponse.body).toMatchObject({ price_usdc: 0.025, status: 'active' })
  const challenge = await service.post('/api/run', { task: 'Translate this.', agent_id: 'translator-v1' })
  expect(challenge.body.amount).toBe('25000')
  await service.call('PATCH', '/api/lane/translator-v1', { status: 'paused' }, admin)
  expect((await service.post('/api/run', { task: 'Translate this.', agent_id: 'translator-v1' })).status).toBe(400)
  expect((await service.call('PATCH', '/api/lane/nobody-v1', { status: 'paused' }, admin)).status).toBe(404)
  expect((await service.call('PATCH', '/api/lane/translator-v1', { colour: 'red' }, admin)).status).toBe(400)
})

test('a rate limit answers with the IETF headers and Retry-After', async () => {
  const strictService = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '3' } })
  try {
    for (let count = 0; count < 3; count++) expect((await strictService.get('/api/pricing')).status).toBe(200)
    const limitedResponse = await strictService.get('/api/pricing')
    expect(limitedResponse.status).toBe(429)
    expect(limitedResponse.body).toMatchObject({ error: 'error', code: 'rate_limited', retryable: true })
    expect(Number(limitedResponse.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(limitedResponse.headers.get('ratelimit-policy')).toBe('"minute";q=3;w=60')
    expect(limitedResponse.headers.get('ratelimit')).toMatch(/^"minute";r=0;t=\d+$/)
  } finally {
    await strictService.close()
  }
})

test('a deprecated path redirects every request without reading its body', async () => {
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const redirect = await service.call(method, '/api/settlement/stl_1?a=1&b=%20')
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, '/api/settle/stl_1?a=1&b=%20'])
  }
  for (const [body, type] of [
    ['{not json', 'application/json'],
    ['plain words', 'text/plain'],
    [`"${'x'.repeat(300 * 1024)}"`, 'application/json'],
  ] as const) {
    const redirect = await service.call('POST', '/api/onboarding', body, { 'content-type': type })
    expect([redirect.status, redirect.headers.get('location')]).toEqual([308, '/api/onboard'])
  }
})

test('values that the database cannot store are refused in the address and in the body', async () => {
  const { headers } = await service.onboard()
  const policy = (await service.post('/api/policies', { constraints: {} }, headers)).body.id
  const nulPaths = ['/api/receipts/%00', '/api/receipts?cursor=%00', '/api/runs?after=a%00', '/api/settle/%00']
  const otherPaths = ['/api/pre-auth/%00', '/api/wallets/wal_%00', `/api/policies/${policy}/versions?cursor=2147483648`]
  for (const path of [...nulPaths, ...otherPaths])
    expect(await service.get(path, headers), path).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  // Valid in RFC 3339, but not dates that the service can represent.
  for (const moment of ['2016-12-31T23:59:60Z', '2026-01-01T00:00:00%2B05'])
    for (const path of ['/api/receipts?since=', '/api/runs?until=', '/api/audit?since='])
      expect(await service.get(`${path}${moment}`, headers)).toMatchObject({ status: 400 })
  const mandate = { name: 'm', constraints: [], expires_at: '2030-12-31T23:59:60Z' }
  expect((await service.post('/api/mandates', mandate, headers)).status).toBe(400)
  expect((await service.get('/api/runs?since=2030-12-31T23:59:59.999%2B01:00', headers)).status).toBe(200)
  const invalidUtf8 = Buffer.concat([Buffer.from('{"task":"a'), Buffer.from([0xff]), Buffer.from('"}')])
  const refusedResponse = await fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: invalidUtf8,
  })
  expect([refusedResponse.status, (await readJson(refusedResponse)).message]).toEqual([
    400,
    'The body is not valid UTF-8.',
  ])
})

test('an unknown path is 404, and an unknown method on a known path is 405', async () => {
  expect(await service.get('/api/log/tile/')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  const response = await service.call('DELETE', '/api/log/tile/0/000')
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

test('an unreadable request gets the usual error body, and every request has a timeout', async () => {
  const { hostname, port } = new URL(service.url)
  const sendRaw = (text: string) =>
    new Promise<{ status: number; body: Record<string, unknown> }>((resolve, reject) => {
      let received = ''
      const socket = connect(Number(port), hostname, () => socket.write(text))
      socket.on('data', (chunk) => {
        received += chunk
      })
      socket.on('end', () =>
        resolve({ status: Number(received.slice(9, 12)), body: JSON.parse(received.split('\r\n\r\n')[1]!) }),
      )
      socket.on('error', reject)
    })
  expect(await sendRaw('HELLO\r\n\r\n')).toMatchObject({
    status: 400,
    body: { error: 'invalid_request', message: expect.any(String), request_id: expect.stringMatching(/^req_/) },
  })
  const request = (payment: number) =>
    `POST /api/run HTTP/1.1\r\nhost: x\r\nconnection: close\r\npayment-signature: ${'A'.repeat(payment)}\r\n` +
    'content-type: application/json\r\ncontent-length: 12\r\n\r\n{"task":"x"}'
  expect(await sendRaw(request(40_000))).toMatchObject({ status: 431, body: { error: 'error', code: 'too_large' } })
  expect(await sendRaw(request(16_385))).toMatchObject({
    status: 400,
    body: { message: 'PAYMENT-SIGNATURE is longer than 16384 characters.' },
  })
  expect(service.service.app.server.requestTimeout).toBe(60_000)
})

test('every metric has a finite value', async () => {
  const { text } = await service.get('/metrics')
  const lines = text.split('\n').filter((line: string) => /^countersign_[a-z_]+ /.test(line))
  expect(lines.map((line: string) => line.split(' ')[0])).toContain('countersign_receipts_unsequenced')
  expect(lines.filter((line: string) => !Number.isFinite(Number(line.split(' ')[1])))).toEqual([])
})

test('the faucet refuses the zero address, which the token does not mint to', async () => {
  const address = `0x${'0'.repeat(40)}`
  const refused = await service.post('/api/dev/faucet', { address, amount_usdc: 1 })
  expect([refused.status, refused.body.error]).toEqual([400, 'invalid_request'])
})

test('in production there is neither a faucet nor a chain RPC, and the guide for new tenants names none', async () => {
  expect((await service.get('/api/onboard')).body.faucet).toBe('/api/dev/faucet')
  const strictService = await startService({ env: { NODE_ENV: 'production' } })
  try {
    const address = '0x00000000000000000000000000000000000000aa'
    expect((await strictService.post('/api/dev/faucet', { address, amount_usdc: 1 })).status).toBe(404)
    const call = { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }
    expect(await strictService.post('/api/dev/rpc', call)).toMatchObject({ status: 404, body: { code: 'not_found' } })
    expect((await strictService.get('/api/onboard')).body.faucet).toBeNull()
  } finally {
    await strictService.close()
  }
})
