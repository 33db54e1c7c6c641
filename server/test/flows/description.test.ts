import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Payer, startService, type TestService } from '../harness.ts'
import { createResponseChecker, type OpenApiDocument } from '../openapi-responses.ts'

// Every response must have a status, a media type and a shape that openapi.json describes.
const admin = { 'x-admin-key': 'an-admin-key-for-this-test-only' }
let service: TestService
let description: OpenApiDocument
let payer: Payer
let tenant: Record<string, string>
let tenantId: string
let findFaults: (method: string, path: string, answer: Awaited<ReturnType<TestService['call']>>) => string[]

beforeAll(async () => {
  service = await startService({ env: { ADMIN_KEY: admin['x-admin-key'] } })
  description = (await service.get('/openapi.json')).body
  findFaults = createResponseChecker(description).findDeviations
  payer = await service.payer(1)
  const onboarded = await service.onboard()
  tenant = onboarded.headers
  tenantId = onboarded.tenantId
})
afterAll(() => service?.close())

/** Sends a request and compares the response with openapi.json. */
async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = tenant) {
  const answer = await service.call(method, path, body, headers)
  expect.soft(findFaults(method, path, answer)).toEqual([])
  return answer
}

async function pay(path: string, body: unknown, headers: Record<string, string> = tenant) {
  const response = await payer.fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const answer = { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
  expect.soft(findFaults('POST', path, answer)).toEqual([])
  expect(answer.status, text).toBe(200)
  return answer
}

test('every operation has a unique operationId and a response below 400, and all share one error schema', () => {
  const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method} ${path}`, ...operation })),
  ) as { name: string; operationId: string; responses: Record<string, unknown> }[]
  const ids = operations.map((operation) => operation.operationId)
  expect(ids.filter((id, index) => !id || ids.indexOf(id) !== index)).toEqual([])
  const withoutSuccess = operations.filter(
    ({ responses }) => !Object.keys(responses).some((status) => Number(status) < 400),
  )
  expect(withoutSuccess.map(({ name }) => name)).toEqual(['post /api/route-intent'])
  expect(description.components.schemas.ErrorResponse).toMatchObject({ required: ['error', 'message'] })
  expect(Object.keys(description.paths['/api/settlement']!)).toEqual(['post'])
  expect(Object.keys(description.paths['/api/onboarding']!).sort()).toEqual(['get', 'post'])
})

test('discovery, keys and lanes answer as described', async () => {
  for (const path of ['health', 'env-check', 'capabilities', 'pricing', 'providers', 'agents', 'lanes', 'lane'])
    await call('GET', `/api/${path}`, undefined, {})
  for (const path of ['lane/coder-v1', 'lane/nobody', 'providers?limit=0', 'onboard', 'onboarding', 'me', 'me/plan'])
    await call('GET', `/api/${path}`)
  await call('POST', '/api/onboard', { org_name: 'Other', email: 'other@example.com' }, {})
  await call('POST', '/api/onboard', {}, {})
  const lane = { agent_id: 'painter-v1', display_name: 'Painter', category: 'art', base_price_usdc: 0.01 }
  for (const headers of [{}, admin, admin]) await call('POST', '/api/lane', lane, headers as Record<string, string>)
  await call('PATCH', '/api/lane/painter-v1', { status: 'paused' }, admin)
  await call('GET', '/api/admin/tenants?limit=1', undefined, admin)
  await call('PATCH', `/api/admin/tenants/${tenantId}`, { plan: 'team' }, admin)
  const { body: key } = await call('POST', `/api/admin/tenants/${tenantId}/keys`, { scopes: ['read'] }, admin)
  const reader = { 'x-api-key': key.api_key }
  await call('POST', '/api/run', { task: 'x' }, reader)
  await call('POST', `/api/admin/keys/${key.key_id}/rotate`, {}, admin)
  await call('GET', `/api/admin/tenants/${tenantId}/keys`, undefined, admin)
  await call('DELETE', `/api/admin/keys/${key.key_id}`, undefined, admin)
  await call('GET', '/api/me', undefined, reader)
  const { body: suspended } = await call('POST', '/api/onboard', { org_name: 'Gone', email: 'gone@example.com' }, {})
  await call('PATCH', `/api/admin/tenants/${suspended.tenant_id}`, { status: 'suspended' }, admin)
  const suspendedHeaders = { 'x-api-key': suspended.api_key }
  for (const path of ['/api/me', '/api/loops', '/api/log/tile/0/000'])
    expect((await call('GET', path, undefined, suspendedHeaders)).status).toBe(403)
})

test('paid calls and everything that reports on them answer as described', async () => {
  const run = { task: 'Revenue was 3, 4 and 5.', agent_id: 'analyst-v1' }
  for (const body of [run, {}, { ...run, agent_id: 'nobody' }, { ...run, budget: { max_price_usdc: 0.001 } }])
    await call('POST', '/api/run', body)
  const { body: completedRun } = await pay('/api/run', run)
  await pay('/api/loop', { input: 'Say hello.', proposed_actions: [{ type: 'greet' }] }, {})
  const { body: wallet } = await call('POST', '/api/wallets', {})
  await call('POST', '/api/run', { ...run, payment: { wallet_id: wallet.wallet_id } })
  await pay(`/api/wallets/${wallet.wallet_id}/topup`, { amount_usdc: 0.1 })
  await call('POST', '/api/run', { ...run, payment: { wallet_id: wallet.wallet_id } })
  for (const path of ['runs', 'loops', 'settlements', 'ledger', 'wallets', 'analytics', 'control-tower', 'benchmark'])
    await call('GET', `/api/${path}`)
  const { settlement_id } = completedRun.settlement
  await call('GET', `/api/settle/${settlement_id}`)
  await call('POST', '/api/settle', { settlement_id })
  expect((await call('POST', '/api/settle', { settlement_id: 'stl_none' })).status).toBe(404)
  const payment_payload = {
    x402Version: 1,
    scheme: 'exact',
    network: 'base',
    payload: {
      signature: '0x00',
      authorization: {
        from: payer.address,
        to: payer.address,
        value: '1',
        validAfter: '0',
        validBefore: '1',
        nonce: `0x${'0'.repeat(64)}`,
      },
    },
  }
  expect((await call('POST', '/api/settle', { settlement_id, payment_payload })).status).toBe(409)
  expect((await call('POST', '/api/settlement?now=1', { settlement_id })).status).toBe(308)
  await call('GET', '/api/receipts?limit=2', undefined, {})
  await call('GET', completedRun.receipt_url)
  await call('GET', `${completedRun.receipt_url}/proof`)
  await call('GET', '/api/receipts/rcpt_none')
  for (const body of [{ receipt: completedRun.receipt }, { receipt: {} }, { receipt_id: 'rcpt_none' }, {}])
    await call('POST', '/api/receipts/verify', body)
})

test('the log, the keys and the audit trail answer as described', async () => {
  await expect.poll(async () => (await service.get('/api/log/checkpoint')).text).not.toMatch(/^[^\n]*\n0\n/)
  for (const path of [
    '/api/log/checkpoint',
    '/api/log/checkpoint?witnessed=true',
    '/api/log/checkpoint?witnessed=perhaps',
    '/api/log/tile/0/000.p/1',
    '/api/log/tile/entries/000.p/1',
    '/api/log/tile/0/nowhere',
    '/api/log/consistency?from=1',
    '/api/log/consistency?from=9',
    '/.well-known/jwks.json',
    '/.well-known/did.json',
    '/api/audit',
    '/api/audit?format=ndjson',
    '/api/audit?cursor=aud_none',
  ])
    await call('GET', path)
  await call('POST', '/api/log/witness', { checkpoint: 'none' })
})

test('the basis API answers as described', async () => {
  for (const path of ['', '/symbols', '/board', '/board?chain=nowhere', '/quote/TSLAx', '/quote/none'])
    await call('GET', `/api/basis/v1${path}`, undefined, {})
  const { body } = await call('GET', '/api/basis/v1/attestation/TSLAx', undefined, {})
  await call('GET', `/api/basis/v1/evidence/${body.backing.evidence.hash}`, undefined, {})
  await call('GET', '/api/basis/v1/history/TSLAx', undefined, {})
  await call('GET', '/api/basis/v1/stream?symbols=none', undefined, {})
  expect((await call('GET', '/api/basis/v1', undefined, { authorization: 'Bearer nobody' })).status).toBe(401)
})

type Parameter = { name: string; in: string; schema: { type?: string } }

const readOperations = () =>
  Object.entries(description.paths).flatMap(([path, methods]) => {
    const operation = methods.get as { parameters?: Parameter[]; security?: Record<string, unknown>[] } | undefined
    // A stream does not end.
    if (!operation || path.endsWith('/stream')) return []
    const headers = operation.security?.some((scheme) => 'adminKey' in scheme) ? admin : tenant
    return [{ path, headers, parameters: operation.parameters ?? [] }]
  })

test('every list refuses an invalid cursor', async () => {
  const lists = readOperations().flatMap(({ path, headers, parameters }) =>
    parameters.filter(({ name }) => name === 'cursor' || name === 'after').map(({ name }) => ({ path, headers, name })),
  )
  expect(lists.length).toBeGreaterThan(15)
  for (const { path, headers, name } of lists)
    for (const cursor of ['', 'zzz', 'zzz_01a1de22-2381-770e-b99a-abc7cd767945', '%00', '1e300', 'a&cursor=b']) {
      const { status } = await call('GET', `${path.replace(/\{[^}]+\}/g, 'x')}?${name}=${cursor}`, undefined, headers)
      expect.soft(status, `${path} ${cursor}`).toBe(400)
    }
})

test('no odd parameter makes a GET route answer 500', async () => {
  const oddValues = [
    '',
    '0',
    '-1',
    '1e300',
    'NaN',
    '9'.repeat(40),
    'x'.repeat(4_000),
    '%00',
    '%F0%9F%A6%8A',
    '%27%22%3B--',
  ]
  for (const { path, headers, parameters } of readOperations())
    for (const { name, in: location } of parameters.filter((parameter) => parameter.in !== 'header'))
      for (const value of location === 'path' ? oddValues.slice(1) : [...oddValues, `a&${name}=b`]) {
        const url = path.replace(`{${name}}`, location === 'path' ? value : 'x').replace(/\{[^}]+\}/g, 'x')
        const { status } = await call('GET', location === 'path' ? url : `${url}?${name}=${value}`, undefined, headers)
        expect.soft(status, `${path} ${name}=${value.slice(0, 40)}`).not.toBe(500)
      }
})
