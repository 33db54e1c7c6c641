import { decodePaymentRequiredHeader, encodePaymentSignatureHeader } from '@x402/core/http'
import {
  extractDiscoveryInfo,
  extractDiscoveryInfoV1,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
} from '@x402/extensions/bazaar'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

const MAX_HEADER_BYTES = 4_096

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const paidPaths = ['/api/run', '/api/loop'] as const
const probe = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${service.url}${path}`, { method: 'POST', headers })
const readRequirements = (response: { headers: { get(name: string): string | null } }) =>
  decodePaymentRequiredHeader(response.headers.get('payment-required')!)
const headerBytes = (response: { headers: Iterable<[string, string]> }) =>
  [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)

type Properties = Record<string, { type?: string; $ref?: string }>
/** A named schema is a reference in OpenAPI; all of those are objects. */
const pickTypes = (properties: Properties, names: string[]) =>
  Object.fromEntries(names.map((name) => [name, { type: properties[name]!.type ?? 'object' }]))

async function signedPayment(task: string) {
  const payer = await service.payer()
  let header = ''
  const { wrapFetchWithPaymentFromConfig } = await import('@x402/fetch')
  const { ExactEvmScheme } = await import('@x402/evm')
  const pay = wrapFetchWithPaymentFromConfig(
    async (input, init) => {
      const request = new Request(input, init)
      const payment = request.headers.get('payment-signature')
      if (payment === null) return fetch(request)
      header = payment
      return new Response('{}')
    },
    { schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(payer) }] },
  )
  await pay(`${service.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task }),
  })
  expect(header).not.toBe('')
  return { header, payer }
}

describe('what is no probe', () => {
  test.each(paidPaths)('%s: an empty body called JSON, a wrong one and an empty object stay 400', async (path) => {
    const json = { 'content-type': 'application/json' }
    expect((await probe(path, json)).status).toBe(400)
    for (const body of ['{}', '[]', '{"tusk":"x"}', '{not json'])
      expect((await service.call('POST', path, body, json)).status, body).toBe(400)
  })

  test.each(paidPaths)('%s: text/plain stays refused, with a body and without', async (path) => {
    const text = { 'content-type': 'text/plain' }
    expect((await service.call('POST', path, 'Tell me a joke.', text)).status).toBe(415)
    expect((await probe(path, text)).status).toBe(415)
  })

  test.each(paidPaths)('%s: another method is 405 and names POST', async (path) => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH']) {
      const response = await fetch(`${service.url}${path}`, { method })
      expect([response.status, response.headers.get('allow')], method).toEqual([405, 'POST'])
    }
  })

  test('a payment without a body is refused: nothing is charged, and it still pays for its own request', async () => {
    const { header, payer } = await signedPayment('Tell me a joke.')
    for (const path of paidPaths) {
      const refused = await probe(path, { 'payment-signature': header })
      expect([refused.status, await refused.json()]).toEqual([
        400,
        expect.objectContaining({ error: 'invalid_request', message: expect.stringContaining('not used') }),
      ])
    }
    const v1 = Buffer.from(JSON.stringify({ x402Version: 1 })).toString('base64')
    expect((await probe('/api/run', { 'x-payment': v1 })).status).toBe(400)
    expect(await service.db.selectFrom('settlements').selectAll().execute()).toEqual([])
    const paid = await service.post('/api/run', { task: 'Tell me a joke.' }, { 'payment-signature': header })
    expect(paid.body).toMatchObject({ status: 'completed', settlement: { payer: payer.address.toLowerCase() } })
  })

  test('an invalid key is 401 and a key without the scope run is 403', async () => {
    expect((await probe('/api/run', { 'x-api-key': 'csk_nobody' })).status).toBe(401)
    const { headers } = await service.onboard()
    const { body } = await service.post('/api/keys', { name: 'reader', scopes: ['read'] }, headers)
    expect((await probe('/api/run', { 'x-api-key': body.api_key })).status).toBe(403)
  })
})

test('a probe writes no row to any table', async () => {
  // Without background work, which moves rows of its own.
  const quiet = await startService({ env: { BACKGROUND_WORK: 'off' } })
  const countRows = async () => {
    const { rows } = await quiet.service.database.pool.query<{ name: string; rows: string }>(
      `select relname as name, (xpath('/row/c/text()', query_to_xml(format('select count(*) as c from %I.%I',
        nspname, relname), false, true, '')))[1]::text as rows
       from pg_class join pg_namespace on pg_namespace.oid = relnamespace
       where relkind = 'r' and nspname = 'public' order by relname`,
    )
    return rows
  }
  try {
    const before = await countRows()
    expect(before.length).toBeGreaterThan(20)
    for (const path of paidPaths) expect((await fetch(`${quiet.url}${path}`, { method: 'POST' })).status).toBe(402)
    expect(await countRows()).toEqual(before)
  } finally {
    await quiet.close()
  }
})

test('a probe counts against the address like any anonymous call', async () => {
  const strict = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '3' } })
  try {
    const statuses: number[] = []
    for (let count = 0; count < 5; count++)
      statuses.push((await fetch(`${strict.url}/api/run`, { method: 'POST' })).status)
    expect(statuses).toEqual([402, 402, 402, 429, 429])
  } finally {
    await strict.close()
  }
})

test.each([
  ['/api/run', 0.01, 0.025],
  ['/api/loop', 0.005, 0.02],
] as const)('an unpaid probe of %s is a 402 with the price range and the input schema', async (path, min, max) => {
  const response = await probe(path)
  const body = (await response.json()) as Record<string, unknown>
  expect(response.status).toBe(402)
  expect(response.headers.get('cache-control')).toBe('no-store')
  const amounts = { min_amount: String(min * 1e6), max_amount: String(max * 1e6) }
  expect(body).toMatchObject({
    error: 'payment_required',
    reason: 'payment_required',
    price_usdc: min,
    amount: amounts.min_amount,
    price_range: { min_usdc: min, max_usdc: max, ...amounts },
    x402Version: 1,
  })
  expect(body.message).toContain(`${min} to ${max} USDC`)
  expect(body).not.toHaveProperty('quote')

  const required = readRequirements(response)
  expect(required).toMatchObject({
    x402Version: 2,
    resource: { url: `${service.url}${path}`, mimeType: 'application/json' },
    accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: amounts.min_amount, extra: { name: 'USD Coin' } }],
  })
  expect(required.accepts[0]!.extra).toMatchObject(amounts)
  expect(required.accepts[0]!.extra).not.toHaveProperty('quote')

  const extension = required.extensions!.bazaar as Parameters<typeof validateDiscoveryExtension>[0]
  expect(validateDiscoveryExtensionSpec(extension as never)).toEqual({ valid: true })
  expect(validateDiscoveryExtension(extension)).toEqual({ valid: true })
  const echoed = { payload: {}, accepted: required.accepts[0]!, ...required }
  expect(extractDiscoveryInfo(echoed as never, required.accepts[0]!)).toMatchObject({
    resourceUrl: `${service.url}${path}`,
    method: 'POST',
    discoveryInfo: { input: { type: 'http', bodyType: 'json' } },
  })
  expect(extractDiscoveryInfoV1((body.accepts as never[])[0]!)).toMatchObject({
    input: { type: 'http', method: 'POST', bodyType: 'json' },
  })
})

test.each(paidPaths)('the schema that a probe of %s shows is the one its bodies are checked against', async (path) => {
  const response = await probe(path)
  const body = (await response.json()) as { input_schema: { properties: object; required?: string[] } }
  const openapi = (await service.get('/openapi.json')).body
  const operation = openapi.paths[path].post
  const { $ref } = operation.requestBody.content['application/json'].schema
  const schema = openapi.components.schemas[$ref.split('/').at(-1)]
  expect(body.input_schema.properties).toMatchObject(pickTypes(schema.properties, Object.keys(schema.properties)))
  const extension = readRequirements(response).extensions!.bazaar as {
    info: { input: { body: object } }
    schema: { properties: { input: { properties: { body: { properties: object } } } } }
  }
  const described = extension.schema.properties.input.properties.body.properties
  expect(Object.keys(described).length).toBeGreaterThan(4)
  expect(described).toEqual(pickTypes(schema.properties, Object.keys(described)))
  // The example in the extension is a request that the route accepts.
  expect((await service.post(path, extension.info.input.body)).status).toBe(402)
})

test('a 402 with a quote, an offer and the input schema has less than 4 kB of headers', async () => {
  const { headers } = await service.onboard()
  const task = 'x'.repeat(2_000)
  const responses = [
    await probe('/api/run'),
    await probe('/api/loop'),
    await service.post('/api/run', { task: 'Summarise the attached report in three sentences.' }),
    await service.post('/api/run', { task, agent_id: 'strategist-v1', session_id: 's'.repeat(120) }, headers),
    await service.post('/api/loop', { input: task, agent_id: 'strategist-v1' }, headers),
  ]
  for (const response of responses) {
    expect(response.status).toBe(402)
    expect(Object.keys(readRequirements(response).extensions!)).toContain('bazaar')
    expect(headerBytes(response as never)).toBeLessThan(MAX_HEADER_BYTES)
  }
  expect(Object.keys(readRequirements(responses[2]!).extensions!)).toContain('offer-receipt')
})

test('an official client can pay for a request whose 402 carries the extension, and sends it back', async () => {
  const { header } = await signedPayment('Another joke, please.')
  const payload = JSON.parse(Buffer.from(header, 'base64').toString())
  expect(payload.extensions).toHaveProperty('bazaar')
  expect(header.length).toBeLessThan(16_384)
  const { body } = await service.post(
    '/api/run',
    { task: 'Another joke, please.' },
    { 'payment-signature': encodePaymentSignatureHeader(payload) },
  )
  expect(body.status).toBe('completed')
})
