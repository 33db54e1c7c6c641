import { createHash, randomBytes } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signAuthorization, startService, type TestService } from '../harness.ts'
import { frozenClock } from './frozen-clock.ts'

const PER_MINUTE = 12
const PAYER_PER_MINUTE = 8

let service: TestService
beforeAll(async () => {
  service = await startService({
    clock: frozenClock,
    env: {
      RATE_LIMIT_ANON_PER_MINUTE: String(PER_MINUTE),
      RATE_LIMIT_KEY_PER_MINUTE: String(PAYER_PER_MINUTE),
      RATE_LIMIT_ONBOARD_PER_HOUR: '10',
      // Each test comes from addresses of its own.
      TRUST_PROXY: '127.0.0.1',
    },
  })
})
afterAll(() => service.close())

const from = (address: string, headers: Record<string, string> = {}) => ({ 'x-forwarded-for': address, ...headers })

/** The statuses of `count` requests, one after another. */
const statusesOf = async (count: number, send: (index: number) => Promise<{ status: number }>) => {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) statuses.push((await send(index)).status)
  return statuses
}
const countOf = (statuses: number[], status: number) => statuses.filter((item) => item === status).length

const task = { task: 'Revenue was 120, 135, 128 and 190. What stands out?' }
const signPayment = async (address: string, overrides: { signature?: string } = {}): Promise<string> => {
  const account = privateKeyToAccount(generatePrivateKey())
  const challenge = await service.post('/api/run', task, from(address))
  expect(challenge.status).toBe(402)
  const terms = readChallenge(challenge.headers).accepts[0]
  const { authorization, signature } = await signAuthorization(account, terms)
  const payload = { authorization, signature: overrides.signature ?? signature }
  return Buffer.from(JSON.stringify({ x402Version: 2, accepted: terms, payload })).toString('base64')
}

test.each([
  ['junk', async (): Promise<string> => 'junk'],
  ['a payment without a signature', async () => signPayment('10.1.9.1', { signature: '0x' })],
  [
    'a payment with an invented signature',
    async () => signPayment('10.1.9.2', { signature: `0x${'11'.repeat(64)}1b` }),
  ],
] as const)('%s in the payment header is counted against the address like no payment', async (name, makeHeader) => {
  const address = `10.1.0.${name.length}`
  const header = await makeHeader()
  const statuses = await statusesOf(PER_MINUTE + 5, () =>
    service.post('/api/run', task, from(address, { 'payment-signature': header })),
  )
  expect(countOf(statuses, 429)).toBe(5)
  expect(statuses.slice(PER_MINUTE)).toEqual([429, 429, 429, 429, 429])
})

test('a payment with its payer’s signature is limited by payer, and its address may be full', async () => {
  const header = await signPayment('10.2.0.2')
  await statusesOf(PER_MINUTE, () => service.get('/api/pricing', from('10.2.0.1')))
  expect((await service.get('/api/pricing', from('10.2.0.1'))).status).toBe(429)
  const paid = await service.post('/api/run', task, from('10.2.0.1', { 'payment-signature': header }))
  // The payer has no money: the refused payment is counted against the full address, after it was checked.
  expect(paid.status).toBe(429)
  const statuses = await statusesOf(PAYER_PER_MINUTE + 3, () =>
    service.post('/api/run', task, from('10.2.0.2', { 'payment-signature': header })),
  )
  expect(statuses.slice(PAYER_PER_MINUTE)).toEqual([429, 429, 429])
  expect(countOf(statuses, 402)).toBe(PAYER_PER_MINUTE)
})

test('a request without a valid credential is counted against the address, whether it sends a credential or none', async () => {
  const none = await statusesOf(PER_MINUTE + 2, () => service.get('/api/runs', from('10.3.0.1')))
  expect([countOf(none, 401), countOf(none, 429)]).toEqual([PER_MINUTE, 2])
  const invented = await statusesOf(PER_MINUTE + 2, () =>
    service.get('/api/runs', from('10.3.0.2', { 'x-api-key': 'cs_invented' })),
  )
  expect([countOf(invented, 401), countOf(invented, 429)]).toEqual([PER_MINUTE, 2])
  expect((await service.get('/api/pricing', from('10.3.0.1'))).status).toBe(429)
})

test('a valid key works from an address whose anonymous requests are used up', async () => {
  const { body } = await service.post('/api/onboard', { org_name: 'A', email: 'a@example.com' }, from('10.4.0.9'))
  await statusesOf(PER_MINUTE, () => service.get('/api/pricing', from('10.4.0.1')))
  expect((await service.get('/api/runs', from('10.4.0.1', { 'x-api-key': body.api_key }))).status).toBe(200)
})

test('the addresses of one IPv6 network of 64 bits are one caller', async () => {
  const statuses = await statusesOf(PER_MINUTE + 2, (index) =>
    service.get('/api/pricing', from(`2001:db8:1:1::${index.toString(16)}`)),
  )
  expect(statuses.slice(PER_MINUTE)).toEqual([429, 429])
  expect((await service.get('/api/pricing', from('2001:db8:1:2::1'))).status).toBe(200)
})

test('a refused request is answered before its body is read', async () => {
  await statusesOf(PER_MINUTE, () => service.get('/api/pricing', from('10.5.0.1')))
  const notJson = await service.call('POST', '/api/run', '{not json', from('10.5.0.1'))
  expect(notJson.status).toBe(429)
  expect(Number(notJson.headers.get('retry-after'))).toBeGreaterThan(0)
})

const onboard = (address: string, extra: Record<string, unknown> = {}) =>
  service.post(
    '/api/onboard',
    { org_name: 'Org', email: `${randomBytes(4).toString('hex')}@example.com`, ...extra },
    from(address),
  )

test('an address makes a limited number of tenants an hour, and a network of addresses as well', async () => {
  const first = await statusesOf(11, () => onboard('10.6.0.1'))
  expect([countOf(first, 201), first.at(-1)]).toEqual([10, 429])
  const refused = await onboard('10.6.0.1')
  expect(refused.body).toMatchObject({ error: 'error', code: 'rate_limited', retryable: true })
  expect(refused.body.message).toContain('an hour')
  expect(refused.headers.get('ratelimit-policy')).toMatch(/^"hour";q=10;w=3600$/)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(60)
  const neighbours = await statusesOf(35, (index) => onboard(`10.6.0.${index + 2}`))
  expect(countOf(neighbours, 201)).toBe(30)
  expect((await onboard('10.6.1.1')).status).toBe(201)
  const v6 = await statusesOf(42, (index) => onboard(`2001:db8:77:${index.toString(16)}::1`))
  expect(countOf(v6, 201)).toBe(40)
})

test('an invalid body does not use up the tenants of its address', async () => {
  const invalid = await statusesOf(11, () => service.post('/api/onboard', { org_name: '' }, from('10.7.0.1')))
  expect(countOf(invalid, 400)).toBe(11)
  expect((await onboard('10.7.0.1')).status).toBe(201)
})

test('with an invitation configured, onboarding takes it, and a guess counts', async () => {
  const invited = await startService({
    clock: frozenClock,
    env: {
      ONBOARD_INVITATION: 'our-invitation-2026',
      RATE_LIMIT_ANON_PER_MINUTE: '1000',
      RATE_LIMIT_ONBOARD_PER_HOUR: '10',
      TRUST_PROXY: '127.0.0.1',
    },
  })
  try {
    const request = (invitation?: string) =>
      invited.post('/api/onboard', { org_name: 'Org', email: 'a@example.com', invitation }, from('10.8.0.1'))
    expect(await request()).toMatchObject({ status: 403, body: { error: 'error', code: 'forbidden' } })
    expect((await request('our-invitation-2025')).status).toBe(403)
    expect((await request('our-invitation-2026')).status).toBe(201)
    await statusesOf(7, () => request(createHash('sha256').update('guess').digest('hex')))
    expect((await request('our-invitation-2026')).status).toBe(429)
    expect((await invited.get('/api/onboard')).body.required).toContain('invitation')
  } finally {
    await invited.close()
  }
})

test('no limit applies when RATE_LIMIT_ANON_PER_MINUTE is 0', async () => {
  const open = await startService()
  try {
    const statuses = await statusesOf(60, () =>
      open.post('/api/onboard', { org_name: 'Org', email: 'a@example.com', invitation: 'not needed' }),
    )
    expect(countOf(statuses, 201)).toBe(60)
    const calls = await statusesOf(80, () =>
      open.post('/api/dev/rpc', { jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] }),
    )
    expect(countOf(calls, 200)).toBe(80)
  } finally {
    await open.close()
  }
})
