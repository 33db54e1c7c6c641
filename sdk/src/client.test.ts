import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseCheckpoint, verifyReceipt } from '@countersign/proof'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startService, type TestService } from '../../server/test/harness.ts'
import { type Client, CountersignError, createClient, type Lists } from './client.ts'
import {
  accountFromKey,
  createDevelopmentAccount,
  DevelopmentChainRefused,
  type PayingAccount,
  PaymentRefused,
  payingFetch,
} from './pay.ts'

let service: TestService
let guest: Client
beforeAll(async () => {
  service = await startService()
  guest = createClient({ baseUrl: service.url })
})
afterAll(() => service.close())

const expectError = async (call: Promise<unknown>): Promise<CountersignError> => {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof CountersignError)) throw new Error(`Expected a CountersignError, got ${String(error)}`)
  return error
}

async function fundedAccount(usdc: number): Promise<PayingAccount> {
  const account = await createDevelopmentAccount()
  await guest.post('/api/dev/faucet', { body: { address: account.address, amount_usdc: usdc } })
  return account
}

test('responses have the types of openapi.json', async () => {
  const { agents } = await guest.get('/api/agents')
  expect(agents.find(({ agent_id }) => agent_id === 'comedian-v1')?.price_usdc).toBe(0.01)
  const lane = await guest.get('/api/lane/{agent_id}', { path: { agent_id: 'writer-v1' } })
  expect(lane.agent_id).toBe('writer-v1')
  const { receipts, has_more } = await guest.get('/api/receipts', { query: { limit: 1 } })
  expect({ receipts: Array.isArray(receipts), has_more }).toEqual({ receipts: true, has_more: false })
})

test('a call that does not match openapi.json does not compile', () => {
  const invalidCalls = () => [
    // @ts-expect-error no such path
    guest.get('/api/nothing'),
    // @ts-expect-error the path has a parameter
    guest.get('/api/lane/{agent_id}'),
    // @ts-expect-error a body is required
    guest.post('/api/onboard'),
    // @ts-expect-error the body lacks its e-mail address
    guest.post('/api/onboard', { body: { org_name: 'Acme' } }),
  ]
  expect(invalidCalls).toBeTypeOf('function')
})

test('every list has the type of its items, and pages through all of them', async () => {
  // Does not compile when the items of a list have no type.
  const types: { [N in keyof Lists]: 'typed' } = {} as {
    [N in keyof Lists]: ReturnType<Lists[N]['list']> extends AsyncGenerator<infer T, void, undefined>
      ? [T] extends [never]
        ? 'untyped'
        : 'typed'
      : 'untyped'
  }
  expect(types).toEqual({})
  const { api_key } = await guest.post('/api/onboard', { body: { org_name: 'Lists', email: 'l@example.com' } })
  const client = createClient({ baseUrl: service.url, apiKey: api_key })
  for (const name of ['a', 'b', 'c', 'd', 'e']) await client.post('/api/wallets', { body: { name } })
  const names: string[] = []
  for await (const wallet of client.wallets.list({ limit: 2 })) names.push(wallet.name)
  expect(names.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e'])
  for (const name of Object.keys(client) as (keyof Lists)[]) {
    if (!('list' in client[name]) || name === 'alerts') continue
    for await (const item of client[name].list({ limit: 1 })) expect(item).toBeTypeOf('object')
  }
})

test('a base address may end in a slash, and one without a scheme or with another says what to write', async () => {
  expect(await createClient({ baseUrl: ` ${service.url}//\n` }).get('/api/health')).toMatchObject({ status: 'ok' })
  expect(() => createClient({ baseUrl: 'localhost:4020' })).toThrow('write http://localhost:4020')
  expect(() => createClient({ baseUrl: 'ftp://example.com' })).toThrow('begins with ftp://')
  expect(() => createClient({ baseUrl: service.url, apiKey: 'csk_a\ncsk_b' })).toThrow('apiKey has a character')
})

test('every error response is a CountersignError with the stable code and the message', async () => {
  expect(await expectError(guest.get('/api/receipts/{id}', { path: { id: 'rcpt_none' } }))).toMatchObject({
    status: 404,
    error: 'error',
    code: 'not_found',
    requestId: expect.any(String),
  })
  expect(await expectError(guest.get('/api/runs'))).toMatchObject({ status: 401, code: 'unauthorized' })
  const invalidBody = await expectError(guest.post('/api/onboard', { body: { org_name: '', email: 'x' } }))
  expect(invalidBody).toMatchObject({ status: 400, error: 'invalid_request' })
  expect(invalidBody.message).toContain('body/')
  const unpaidRun = await expectError(guest.post('/api/run', { body: { task: 'hello' } }))
  expect(unpaidRun).toMatchObject({ status: 402, error: 'payment_required' })
  expect(unpaidRun.body.price_usdc).toBe(0.01)
})

test('a path parameter cannot change the rest of the path', async () => {
  const error = await expectError(guest.get('/api/lane/{agent_id}', { path: { agent_id: '../health' } }))
  expect(error.status).toBe(404)
  await expect(guest.get('/api/lane/{agent_id}', { path: { agent_id: '' } })).rejects.toThrow("needs 'agent_id'")
})

test('an export of one JSON value a line is answered as text', async () => {
  const lines = '{"seq":1}\n{"seq":2}\n'
  const server = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(lines),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const client = createClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
    expect(await client.get('/api/audit', { query: { format: 'ndjson' } })).toBe(lines)
  } finally {
    server.close()
  }
})

test('an unreachable, slow or broken service is a CountersignError; the caller’s own abort is not', async () => {
  const unreachable = createClient({ baseUrl: 'http://127.0.0.1:1' })
  expect(await expectError(unreachable.get('/api/health'))).toMatchObject({
    status: 0,
    code: 'unavailable',
    retryable: true,
  })

  const brokenServer = createServer((request, response) => {
    if (request.url === '/api/health') return
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"half":')
  })
  await new Promise<void>((resolve) => brokenServer.listen(0, '127.0.0.1', resolve))
  try {
    const client = createClient({
      baseUrl: `http://127.0.0.1:${(brokenServer.address() as AddressInfo).port}`,
      timeoutMs: 1_000,
    })
    expect(await expectError(client.get('/api/health'))).toMatchObject({ status: 0, code: 'unavailable' })
    expect((await expectError(client.get('/api/pricing'))).message).toContain('not valid JSON')
    await expect(client.get('/api/health', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: 'AbortError',
    })
  } finally {
    brokenServer.closeAllConnections()
    await new Promise((resolve) => brokenServer.close(resolve))
  }
})

test('writes of a session carry its CSRF token', async () => {
  const { api_key } = await guest.post('/api/onboard', { body: { org_name: 'Session Org', email: 's@example.com' } })
  let cookie = ''
  const browser: typeof fetch = async (input, init) => {
    const response = await fetch(input, { ...init, headers: { ...init?.headers, cookie } as Record<string, string> })
    cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? cookie
    return response
  }
  let token: string | undefined
  const client = createClient({ baseUrl: service.url, fetch: browser, csrfToken: () => token })
  const session = await client.post('/api/session', { body: { api_key } })
  expect(await client.get('/api/me')).toMatchObject({ orgId: expect.any(String) })
  expect(await expectError(client.delete('/api/session'))).toMatchObject({ status: 403 })
  token = session.csrf_token
  expect(await client.delete('/api/session')).toEqual({ ended: true })
})

test('the paying fetch pays for a run, and its receipt verifies', async () => {
  const account = await fundedAccount(1)
  const { api_key } = await guest.post('/api/onboard', { body: { org_name: 'Payer Org', email: 'p@example.com' } })
  const client = createClient({ baseUrl: service.url, apiKey: api_key, fetch: await payingFetch(account) })
  const run = await client.post('/api/run', { body: { task: 'Say hello.', agent_id: 'comedian-v1' } })
  expect(run).toMatchObject({ status: 'completed', price_usdc: 0.01 })
  expect(await service.balance(account.address)).toBe(990_000n)
  const jwks = await guest.get('/.well-known/jwks.json')
  expect(verifyReceipt(run.receipt, { jwks })).toMatchObject({ ok: true })
  const { runs } = await client.get('/api/runs', { query: { outcome: 'completed' } })
  expect(runs.map(({ run_id }) => run_id)).toEqual([run.run_id])
})

test('text and binary responses are returned as string and bytes', async () => {
  const size = await vi.waitFor(async () => {
    const head = parseCheckpoint(await guest.get('/api/log/checkpoint'))
    expect(head?.size).toBeGreaterThan(0)
    return head!.size
  }, 20_000)
  const tile = await guest.get('/api/log/tile/{tile}', { path: { tile: `0/000.p/${size}` } })
  expect(tile).toBeInstanceOf(Uint8Array)
  expect(tile).toHaveLength(32 * size)
})

test('it signs nothing for a development chain with a key that it did not make, unless that is allowed', async () => {
  const account = await accountFromKey(generatePrivateKey())
  await guest.post('/api/dev/faucet', { body: { address: account.address, amount_usdc: 1 } })
  let signatures = 0
  const counting: PayingAccount = {
    address: account.address,
    signTypedData: (message) => {
      signatures += 1
      return account.signTypedData(message)
    },
  }
  const body = { task: 'Say hello.', agent_id: 'comedian-v1' }
  const refusing = createClient({ baseUrl: service.url, fetch: await payingFetch(counting) })
  await expect(refusing.post('/api/run', { body })).rejects.toThrow(DevelopmentChainRefused)
  expect([signatures, await service.balance(account.address)]).toEqual([0, 1_000_000n])
  const allowing = createClient({
    baseUrl: service.url,
    fetch: await payingFetch(counting, { allowDevelopmentChain: true }),
  })
  expect(await allowing.post('/api/run', { body })).toMatchObject({ status: 'completed' })
  expect(signatures).toBe(1)
})

test('it never pays more than maxUsdc', async () => {
  const account = await fundedAccount(1)
  const client = createClient({ baseUrl: service.url, fetch: await payingFetch(account, { maxUsdc: 0.009 }) })
  await expect(client.post('/api/run', { body: { task: 'Say hello.' } })).rejects.toThrow(PaymentRefused)
  expect(await service.balance(account.address)).toBe(1_000_000n)
})
