import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

let service: TestService
let tenant: Awaited<ReturnType<TestService['onboard']>>
let reader: Record<string, string>
beforeAll(async () => {
  service = await startService({ env: { NODE_ENV: 'test' } })
  tenant = await service.onboard()
  const { body } = await service.post('/api/keys', { name: 'reader', scopes: ['read'] }, tenant.headers)
  reader = { 'x-api-key': body.api_key }
})
afterAll(() => service.close())

type Mistake = {
  name: string
  send: () => Promise<{ status: number; text: string; body: { message: string } }>
  status: number
  /** What the answer has to name. */
  says: RegExp[]
}
const post = (path: string, body: unknown, headers?: Record<string, string>) =>
  service.post(path, body, headers ?? tenant.headers)
const get = (path: string, headers?: Record<string, string>) => service.get(path, headers ?? tenant.headers)
const trade = { instrument_type: 'crypto', side: 'buy', quantity: 0.001 }

const mistakes: Mistake[] = [
  {
    name: 'a misspelt field',
    send: () => post('/api/run', { taks: 'hello' }),
    status: 400,
    says: [/'taks'/, /'task'/],
  },
  {
    name: 'a field of another interface',
    send: () => post('/api/run', { task: 'hello', max_tokens: 5 }),
    status: 400,
    says: [/'max_tokens'/, /constraints/, /budget/],
  },
  {
    name: 'the event run.complete',
    send: () => post('/api/webhooks', { url: 'https://example.com/hook', events: ['run.complete'] }),
    status: 400,
    says: [/run\.complete/, /'run\.completed'/],
  },
  {
    name: 'BTC as a symbol',
    send: () => post('/api/rh/run', { ...trade, tenant_id: tenant.tenantId, symbol: 'BTC' }),
    status: 400,
    says: [/BTC-USD/],
  },
  {
    name: 'TSLA in the basis API',
    send: () => get('/api/basis/v1/quote/TSLA'),
    status: 404,
    says: [/TSLA/, /TSLAX|\/api\/basis\/v1\/coverage/i],
  },
  {
    name: '?status= on runs',
    send: () => get('/api/runs?status=completed'),
    status: 400,
    says: [/'status'/, /outcome/],
  },
  {
    name: 'a bearer token instead of the key',
    send: () => get('/api/runs', { authorization: `Bearer ${tenant.apiKey}` }),
    status: 401,
    says: [/X-API-Key/, /Bearer/],
  },
  {
    name: 'a bearer token instead of the key on a paid call, which would run as a guest outside the rules of its tenant',
    send: () => post('/api/run', { task: 'Tell a joke.' }, { authorization: `Bearer ${tenant.apiKey}` }),
    status: 401,
    says: [/X-API-Key/, /Bearer/],
  },
  { name: 'no key', send: () => get('/api/runs', {}), status: 401, says: [/X-API-Key/, /\/api\/onboard/] },
  { name: 'a wrong key', send: () => get('/api/runs', { 'x-api-key': 'csk_nope' }), status: 401, says: [/API key/] },
  {
    name: 'a key without the scope',
    send: () => post('/api/policies', { name: 'x', constraints: {} }, reader),
    status: 403,
    says: [/control/],
  },
  {
    name: 'a sum of floats as an amount',
    send: () => post('/api/pre-auth', { agent_id: 'buyer', merchant: { id: 'shop' }, amount_usdc: 0.1 + 0.2 }),
    status: 400,
    says: [/amount_usdc/, /six decimals/, /0\.3\b/],
  },
  {
    name: 'an amount as a number',
    send: () => post('/api/pre-auth', { agent_id: 'buyer', merchant: { id: 'shop' }, amount: 25000 }),
    status: 400,
    says: [/amount/, /"1000000"|string/],
  },
  {
    name: 'an amount with decimals as text',
    send: () => post('/api/pre-auth', { agent_id: 'buyer', merchant: { id: 'shop' }, amount: '0.25' }),
    status: 400,
    says: [/amount/, /whole number of/],
  },
  {
    name: 'a private webhook address',
    send: () => post('/api/webhooks', { url: 'https://192.168.1.10/hook', events: ['*'] }),
    status: 400,
    says: [/private|public/],
  },
  {
    name: 'a webhook over plain http',
    send: () => post('/api/webhooks', { url: 'http://example.com/hook', events: ['*'] }),
    status: 400,
    says: [/https/],
  },
  {
    name: 'a lane without its version',
    send: () => post('/api/run', { task: 'hello', agent_id: 'analyst' }),
    status: 400,
    says: [/'analyst'/, /analyst-v1/],
  },
  { name: 'GET for a run', send: () => get('/api/run'), status: 405, says: [/POST/] },
  {
    name: 'a body as text/plain',
    send: () => service.call('POST', '/api/run', 'hello', { 'content-type': 'text/plain' }),
    status: 415,
    says: [/application\/json/],
  },
  {
    name: 'a form',
    send: () => service.call('POST', '/api/run', 'task=hello', { 'content-type': 'application/x-www-form-urlencoded' }),
    status: 415,
    says: [/application\/json/],
  },
  { name: 'a trailing comma', send: () => post('/api/run', '{"task": "hello",}'), status: 400, says: [/JSON/] },
  { name: 'an empty object', send: () => post('/api/run', {}), status: 400, says: [/task/] },
  {
    name: 'a path in the singular',
    send: () => get('/api/receipt/rcpt_1'),
    status: 404,
    says: [/\/api\/receipts\/\{id\}/],
  },
  {
    name: 'a page of a thousand',
    send: () => get('/api/runs?limit=1000'),
    status: 400,
    says: [/limit/, /<= \d+|at most \d+/],
  },
  {
    name: 'seconds since 1970 as a time',
    send: () =>
      post('/api/mandates', {
        name: 'm',
        constraints: [{ type: 'payment.budget', currency: 'USDC', max: 1 }],
        expires_at: 1_790_000_000,
      }),
    status: 400,
    says: [/expires_at/, /string|ISO 8601/],
  },
  {
    name: 'a date in words',
    send: () => post('/api/policies/simulate', { since: 'yesterday' }),
    status: 400,
    says: [/ISO 8601|policy|constraints/],
  },
  {
    name: 'a budget window by another word',
    send: () => post('/api/budgets', { budget_id: 'b', scope: { type: 'tenant' }, window: 'daily', limit_usdc: 1 }),
    status: 400,
    says: [/window/, /'day'/],
  },
  {
    name: 'a constraint without its unit',
    send: () => post('/api/policies', { name: 'p', constraints: { max_per_day: 5 } }),
    status: 400,
    says: [/max_per_day'/, /max_per_day_usdc/],
  },
  {
    name: 'a decision in the past tense',
    send: () => post('/api/approvals', { approval_id: 'apr_1', decision: 'approved' }),
    status: 400,
    says: [/decision/, /'approve'/],
  },
  {
    name: 'both payment headers',
    send: () => post('/api/run', { task: 'hello' }, { 'x-payment': 'e30=', 'payment-signature': 'e30=' }),
    status: 400,
    says: [/PAYMENT-SIGNATURE/, /X-PAYMENT/],
  },
  {
    name: 'a payment as plain JSON',
    send: () => post('/api/run', { task: 'hello' }, { 'payment-signature': '{"x402Version":2}' }),
    status: 400,
    says: [/PAYMENT-SIGNATURE/, /base64/],
  },
  {
    name: 'an idempotency key with spaces',
    send: () => post('/api/run', { task: 'hello' }, { 'idempotency-key': 'order 12' }),
    status: 400,
    says: [/idempotency key/i, /without spaces/],
  },
  {
    name: 'a budget in dollars',
    send: () => post('/api/run', { task: 'hello', budget: { max_price_usdc: 1, currency: 'USD' } }),
    status: 400,
    says: [/USDC/],
  },
  {
    name: 'an EVM address without 0x',
    send: () => post('/api/dev/faucet', { address: 'a1'.repeat(20), amount_usdc: 1 }),
    status: 400,
    says: [/address/, /0x.* and 40 hexadecimal digits/],
  },
  // What people who know Stripe, Svix or OpenAI send.
  {
    name: 'the key as the user of Basic',
    send: () => get('/api/runs', { authorization: `Basic ${Buffer.from(`${tenant.apiKey}:`).toString('base64')}` }),
    status: 401,
    says: [/header X-API-Key/, /Basic/],
  },
  {
    name: 'the key as the user of Basic on a paid call, which would run as a guest',
    send: () =>
      post(
        '/api/run',
        { task: 'Joke.' },
        { authorization: `Basic ${Buffer.from(`${tenant.apiKey}:`).toString('base64')}` },
      ),
    status: 401,
    says: [/header X-API-Key/, /Basic/],
  },
  {
    name: 'the bare key as Authorization on a paid call',
    send: () => post('/api/run', { task: 'Joke.' }, { authorization: tenant.apiKey }),
    status: 401,
    says: [/header X-API-Key/, /not as Authorization/],
  },
  {
    name: 'the key in a header of another name on a paid call',
    send: () => post('/api/run', { task: 'Joke.' }, { 'api-key': tenant.apiKey }),
    status: 401,
    says: [/header X-API-Key/, /not as Api-Key/i],
  },
  {
    name: 'the key in the address of a paid call',
    send: () => post(`/api/run?api_key=${tenant.apiKey}`, { task: 'Joke.' }, {}),
    status: 401,
    says: [/header X-API-Key/, /address/, /logs/],
  },
  {
    name: 'the key in quotation marks',
    send: () => get('/api/runs', { 'x-api-key': `"${tenant.apiKey}"` }),
    status: 401,
    says: [/without quotation marks/],
  },
  { name: 'prompt', send: () => post('/api/run', { prompt: 'Joke.' }), status: 400, says: [/'prompt'/, /'task'/] },
  {
    name: 'messages and a model',
    send: () => post('/api/run', { messages: [{ role: 'user', content: 'Joke.' }], model: 'comedian-v1' }),
    status: 400,
    says: [/'task'|'agent_id'/],
  },
  { name: 'metadata', send: () => post('/api/run', { task: 'Joke.', metadata: {} }), status: 400, says: [/'tags'/] },
  {
    name: 'the wallet beside the task',
    send: () => post('/api/run', { task: 'Joke.', wallet_id: 'wal_1' }),
    status: 400,
    says: [/'wallet_id'/, /'payment\.wallet_id'/],
  },
  { name: 'starting_after', send: () => get('/api/runs?starting_after=run_1'), status: 400, says: [/'after'/] },
  { name: 'created[gte]', send: () => get('/api/runs?created%5Bgte%5D=1'), status: 400, says: [/'since'/] },
  {
    name: 'enabled_events',
    send: () => post('/api/webhooks', { url: 'https://example.com/hook', enabled_events: ['run.completed'] }),
    status: 400,
    says: [/'events'/, /'enabled_events'/],
  },
  {
    name: 'a group of events',
    send: () => post('/api/webhooks', { url: 'https://example.com/hook', events: ['run.*'] }),
    status: 400,
    says: [/'run\.\*'/, /'\*'/],
  },
  {
    name: 'a price as text',
    send: () => post('/api/run', { task: 'Joke.', budget: { max_price_usdc: '0.05' } }),
    status: 400,
    says: [/max_price_usdc/, /number, without quotation marks/],
  },
  {
    name: 'PUT for a change',
    send: () => service.call('PUT', '/api/policies/pol_1', {}, tenant.headers),
    status: 405,
    says: [/PATCH/],
  },
  {
    name: 'the id of a receipt where a run is asked for',
    send: () => get('/api/runs/rcpt_01a1e337-0f86-771c-b637-d486c8836105'),
    status: 404,
    says: [/a receipt/, /\/api\/receipts\/\{id\}/],
  },
  {
    name: 'the id of a run where a receipt is asked for',
    send: () => get('/api/receipts/run_01a1e337-0f86-771c-b637-d486c8836105'),
    status: 404,
    says: [/a run/, /\/api\/runs\/\{id\}/],
  },
  {
    name: '/v1/chat/completions',
    send: () => post('/v1/chat/completions', {}),
    status: 404,
    says: [/POST \/api\/run/],
  },
  { name: '/v1/balance', send: () => get('/v1/balance'), status: 404, says: [/\/api\/wallets/] },
  { name: '/api/refunds', send: () => post('/api/refunds', {}), status: 404, says: [/not charged/] },
  { name: '/api/verify', send: () => post('/api/verify', {}), status: 404, says: [/\/api\/receipts\/verify/] },
  { name: '/v1/events', send: () => get('/v1/events'), status: 404, says: [/\/api\/webhooks/] },
  { name: 'two slashes', send: () => get('//api/pricing'), status: 404, says: [/\/api\/pricing\b/] },
  { name: 'a path that is like none', send: () => get('/v3/zebras/7'), status: 404, says: [/\/docs/] },
]

test('a path that is like none is not called near to one', async () => {
  expect((await get('/v3/zebras/7')).body.message).not.toContain('Did you mean')
})

test('there are at least twenty-five of them', () => expect(mistakes.length).toBeGreaterThanOrEqual(25))

test.each(mistakes)('$name: the answer names the right thing to do', async ({ send, status, says }) => {
  const answer = await send()
  expect(answer.status, answer.text).toBe(status)
  for (const pattern of says) expect(answer.body.message).toMatch(pattern)
  expect(looksLikeRegularExpression(answer.text), answer.text).toBe(false)
})

const looksLikeRegularExpression = (text: string) =>
  /match pattern|\[\^|\{\d+,\d*\}|\\\\[dwSs]|\^\(|\[0-9|\[a-z|\$"/.test(text)

describe('no regular expression is shown to a person', () => {
  type Schema = {
    [key: string]: unknown
    pattern?: string
    properties?: Record<string, Schema>
    items?: Schema
    $ref?: string
  }
  const document = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../openapi.json'), 'utf8'))
  const deref = (schema: Schema): Schema =>
    schema.$ref ? deref(document.components.schemas[schema.$ref.split('/').at(-1)!]) : schema

  /** A body that is valid except for one member with a pattern, for each such member. */
  function* brokenBodies(schema: Schema, example: unknown, path: string[] = []): Generator<unknown> {
    const { properties = {}, items, anyOf, oneOf } = deref(schema) as Schema & { anyOf?: Schema[]; oneOf?: Schema[] }
    for (const [name, member] of Object.entries(properties)) {
      const variants = [member, ...((deref(member).anyOf as Schema[] | undefined) ?? [])].map(deref)
      if (variants.some(({ pattern }) => pattern))
        yield setAt(example, [...path, name], ' ^ not this \u0000'.slice(0, 12))
      yield* brokenBodies(member, example, [...path, name])
    }
    for (const variant of [...(anyOf ?? []), ...(oneOf ?? [])])
      if (variant.properties) yield* brokenBodies(variant, example, path)
    if (items && deref(items).pattern) yield setAt(example, path, [' ^ not this '])
  }
  const setAt = (value: unknown, [head, ...rest]: string[], leaf: unknown): unknown =>
    head === undefined
      ? leaf
      : { ...(value as object), [head]: setAt((value as Record<string, unknown>)?.[head] ?? {}, rest, leaf) }

  type Operation = {
    requestBody?: { content: Record<string, { schema: Schema; example: unknown }> }
    parameters?: { name: string; in: string; schema: Schema; example?: unknown }[]
    security: Record<string, unknown>[]
  }
  const operations = Object.entries(document.paths as Record<string, Record<string, Operation>>).flatMap(
    ([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )

  test('by any operation, for any body, query or path', async () => {
    const shown: string[] = []
    let refusals = 0
    const check = async (method: string, path: string, body?: unknown) => {
      const answer = await service.call(method, path, body, tenant.headers)
      if (answer.status === 400) refusals += 1
      if (looksLikeRegularExpression(answer.text)) shown.push(`${method} ${path}: ${answer.text.slice(0, 200)}`)
    }
    for (const { path, method, operation } of operations) {
      if (path.endsWith('/stream')) continue
      const url = path.replace(/\{(\w+)\}/g, 'x')
      const { schema, example } = operation.requestBody?.content['application/json'] ?? {}
      if (schema) {
        await check(method, url, { '^unknown$': 1 })
        for (const body of brokenBodies(schema, example)) await check(method, url, body)
      }
      const named = (operation.parameters ?? []).filter((parameter) => parameter.schema.pattern)
      for (const parameter of named)
        if (parameter.in === 'query') await check(method, `${url}?${parameter.name}=%5E`)
        else if (parameter.in === 'path') await check(method, path.replace(`{${parameter.name}}`, '%5E'))
    }
    expect(shown).toEqual([])
    expect(refusals).toBeGreaterThan(60)
  })
})
