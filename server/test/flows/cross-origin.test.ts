import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const origin = 'https://agent.example'
const joke = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const paidPaths = ['/api/run', '/api/loop', '/api/wallets/wal_1/topup']

const preflight = (path: string, headers = 'content-type,payment-signature,access-control-expose-headers') =>
  fetch(`${service.url}${path}`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers },
  })

test.each(paidPaths)('a preflight of %s is answered without credentials', async (path) => {
  const response = await preflight(path)
  expect(response.status).toBe(204)
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(response.headers.get('access-control-allow-credentials')).toBeNull()
  expect(response.headers.get('access-control-allow-methods')).toBe('POST')
  const allowed = response.headers.get('access-control-allow-headers')!.toLowerCase().split(', ')
  for (const name of [
    'payment-signature',
    'x-payment',
    'idempotency-key',
    'content-type',
    'access-control-expose-headers',
  ])
    expect(allowed).toContain(name)
})

test('no other route answers one, and a wrong method of a paid route names POST alone', async () => {
  for (const path of ['/api/session', '/api/keys', '/api/policies', '/api/nothing']) {
    const response = await preflight(path)
    expect([404, 405]).toContain(response.status)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  }
  const wrong = await service.get('/api/run')
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'POST'])
})

test('the 402, the paid answer and every refusal show their payment headers to pages of any origin', async () => {
  const challenge = await service.post('/api/run', joke, { origin })
  const payment = await signPayment(await service.payer(1), readChallenge(challenge.headers))
  const answers = [
    [402, challenge],
    [200, await service.post('/api/run', joke, { origin, ...payment })],
    [400, await service.post('/api/run', {}, { origin })],
    [400, await service.post('/api/run', joke, { origin, 'payment-signature': 'x' })],
    [401, await service.post('/api/run', joke, { origin, 'x-api-key': 'wrong' })],
    [409, await service.post('/api/run', { ...joke, task: 'Another.' }, { origin, ...payment })],
    [415, await service.post('/api/run', 'hello', { origin, 'content-type': 'text/plain' })],
  ] as const
  for (const [status, { headers, ...answer }] of answers) {
    expect(answer.status, answer.text).toBe(status)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    const exposed = headers.get('access-control-expose-headers')!
    for (const name of ['PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE']) expect(exposed).toContain(name)
    expect(headers.get('access-control-allow-credentials')).toBeNull()
  }
})

test('a JSON body without a content type is read on paid routes, and nowhere else', async () => {
  const send = (path: string, body: string, headers: Record<string, string> = {}) =>
    fetch(`${service.url}${path}`, { method: 'POST', body: Buffer.from(body), headers })
  expect((await send('/api/run', JSON.stringify(joke))).status).toBe(402)
  expect((await send('/api/run', '{"task": ')).status).toBe(400)
  expect((await send('/api/run', JSON.stringify(joke), { 'content-type': 'text/plain' })).status).toBe(415)
  expect((await send('/api/route', JSON.stringify({ task: 'hello' }))).status).toBe(415)
  const tenant = await service.onboard()
  expect((await send('/api/webhooks', '{}', tenant.headers)).status).toBe(415)
})

test('the headers of a 402 stay under 4 kB with everything in them', async () => {
  const tenant = await service.onboard()
  const long = { task: 'Explain '.repeat(500), session_id: 's'.repeat(60), constraints: { max_cost_usdc: 1 } }
  for (const body of [joke, long]) {
    const { headers, status } = await service.post('/api/run', body, { ...tenant.headers, origin })
    expect(status).toBe(402)
    const size = [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0)
    expect(size).toBeLessThan(4_096)
  }
})
