import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'
import { richTenant } from '../governance/world.ts'
import { readChallenge, signPayment, startService, type TestService } from '../harness.ts'

/** What a lane plainly cannot do is refused before anything is paid, at every door, and nothing else is. */
let service: TestService
let hasModel = false
beforeAll(async () => {
  const offline = createOfflineLane()
  const lane: Lane = { ...offline, findObstacle: (task) => (hasModel ? undefined : offline.findObstacle!(task)) }
  service = await startService({ lane, env: { BACKGROUND_WORK: 'off' } })
})
afterAll(() => service.close())

const TRANSLATION = 'Translate this into French: Good morning.'
const IMAGE = 'Draw a picture of a cat.'

describe.each([
  ['/api/run', (task: string) => ({ task })],
  ['/api/loop', (task: string) => ({ input: task })],
])('%s', (path, body) => {
  test.each([TRANSLATION, IMAGE])('%s: 400 with what would be needed, and no price', async (task) => {
    const answer = await service.post(path, body(task))
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: 'invalid_request', code: 'lane_cannot', lane_mode: 'offline' })
    expect(answer.body.needed).toMatch(/service/)
    expect(answer.body.message).toContain(answer.body.needed)
    expect(answer.headers.get('payment-required')).toBeNull()
  })

  test('a payment that comes with it is not used and pays for another request', async () => {
    const payer = await service.payer(1)
    const own = body('Tell me a joke about lighthouses.')
    const unpaid = await service.post(path, own)
    const payment = await signPayment(payer, readChallenge(unpaid.headers))
    const refused = await service.post(path, body(TRANSLATION), payment)
    expect([refused.status, refused.body.code]).toEqual([400, 'lane_cannot'])
    expect(await service.balance(payer.address)).toBe(1_000_000n)
    expect((await service.post(path, own, payment)).status).toBe(200)
  })

  test('a wallet is not charged, and an early answer is not promised', async () => {
    const { headers, walletId } = await richTenant(service, 1)
    const request = { ...body(TRANSLATION), payment: { wallet_id: walletId } }
    for (const extra of [{}, { prefer: 'respond-async' }] as Record<string, string>[])
      expect((await service.post(path, request, { ...headers, ...extra })).body.code).toBe('lane_cannot')
    const { body: wallet } = await service.get(`/api/wallets/${walletId}`, headers)
    expect(wallet.balance_usdc).toMatchObject({ available: 1, reserved: 0 })
    expect((await service.get('/api/runs', headers)).body.runs).toEqual([])
  })
})

test('route and routing-intel answer 200 and say how the lanes work; the quote does not make a refused run payable', async () => {
  const route = await service.post('/api/route', { task: TRANSLATION })
  expect(route.status).toBe(200)
  expect(route.body).toMatchObject({ lane_mode: 'offline' })
  const intel = await service.post('/api/routing-intel', { task: IMAGE })
  expect([intel.status, intel.body.lane_mode]).toEqual([200, 'offline'])
  const run = await service.post('/api/run', { task: TRANSLATION, quote: route.body.quote })
  expect([run.status, run.body.code]).toEqual([400, 'lane_cannot'])
})

test('the 402 says how the lanes work, in body and header, also to a probe', async () => {
  for (const answer of [
    await service.post('/api/run', { task: 'Tell me a joke.' }),
    await service.post('/api/loop', { input: 'Tell me a joke.' }),
    await service.call('POST', '/api/run'),
  ]) {
    expect(answer.status).toBe(402)
    expect(answer.body.lane_mode).toBe('offline')
    expect(readChallenge(answer.headers).accepts[0].extra.lane_mode).toBe('offline')
  }
})

test('MCP: the tool says that the lane cannot, and asks for no payment', async () => {
  const client = new Client({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)))
  try {
    const result = (await client.callTool({ name: 'run', arguments: { task: TRANSLATION } })) as {
      isError?: boolean
      content: unknown
    }
    expect(result.isError).toBe(true)
    const text = JSON.stringify(result)
    expect(text).toContain('lane_cannot')
    expect(text).not.toContain('accepts')
  } finally {
    await client.close()
  }
})

test('an approved run that a model would have done is not started, nor charged, once the lanes have none', async () => {
  const { headers, walletId } = await richTenant(service, 1)
  await service.post(
    '/api/policies',
    { name: 'People first', rules: [{ field: 'amount_usdc', op: '>', value: 0, effect: 'review' }] },
    headers,
  )
  hasModel = true
  const asked = await service.post('/api/run', { task: TRANSLATION, payment: { wallet_id: walletId } }, headers)
  hasModel = false
  expect(asked.status).toBe(429)
  const { approval_id, run_id } = asked.body
  expect((await service.post('/api/approvals', { approval_id, decision: 'approve' }, headers)).status).toBe(200)
  expect(await service.service.startApprovedRuns.sweep()).toBe(1)
  await service.service.startApprovedRuns.idle()
  expect((await service.get(`/api/runs/${run_id}`, headers)).body.outcome).toBe('blocked')
  const { body: wallet } = await service.get(`/api/wallets/${walletId}`, headers)
  expect(wallet.balance_usdc).toMatchObject({ available: 1, reserved: 0 })
  expect(await service.service.startApprovedRuns.sweep()).toBe(0)
})

test('with a model the same task has a price', async () => {
  const { findObstacle: _obstacle, ...lane } = createOfflineLane()
  const live = await startService({ lane: { ...lane, mode: 'live' } })
  try {
    const answer = await live.post('/api/run', { task: TRANSLATION })
    expect([answer.status, answer.body.lane_mode]).toEqual([402, 'live'])
    expect((await live.post('/api/route', { task: TRANSLATION })).body.lane_mode).toBe('live')
  } finally {
    await live.close()
  }
})

test.each(['x', 'hello', 'test task', 'Write a post about our translation service', 'Review this image-resize code'])(
  '%s is attempted: it has a price',
  async (task) => {
    for (const [path, body] of [
      ['/api/run', { task }],
      ['/api/loop', { input: task }],
    ] as const)
      expect((await service.post(path, body)).status).toBe(402)
  },
)
