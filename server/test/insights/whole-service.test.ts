import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { openReceiver, type Receiver } from '../webhooks/receiver.ts'

let service: TestService
let receiver: Receiver

beforeAll(async () => {
  service = await startService()
  receiver = await openReceiver()
})
afterAll(async () => {
  await service?.close()
  await receiver?.close()
})

test('a paid run sends its webhook and appears in analytics, and runs of a frozen agent are refused', async () => {
  const tenant = await service.onboard()
  const subscription = await service.post(
    '/api/webhooks',
    { url: receiver.url, events: ['run.completed'] },
    tenant.headers,
  )
  const payer = await service.payer()
  const run = () =>
    payer.fetch(`${service.url}/api/run`, {
      method: 'POST',
      headers: { ...tenant.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ task: 'Tell me a joke about ledgers.', agent_id: 'comedian-v1' }),
    })
  const first = await run()
  expect(first.status).toBe(200)
  const { run_id } = (await first.json()) as { run_id: string }
  const analytics = await service.get('/api/analytics?window=24h', tenant.headers)
  expect(analytics.body.totals).toMatchObject({
    runs: 1,
    completed: 1,
    spend_usdc: 0.01,
    cost_usd: 0,
    margin_usd: 0.01,
  })
  await expect.poll(() => receiver.received.length).toBe(1)
  const [{ body, headers }] = receiver.received as [Receiver['received'][number]]
  expect(new Webhook(subscription.body.signingSecret).verify(body, headers)).toMatchObject({
    type: 'run.completed',
    data: { run_id },
    seq: 1,
  })
  const after = await service.get('/api/analytics?window=24h', tenant.headers)
  expect(after.body.totals).toEqual(analytics.body.totals)

  const freeze = { action: 'freeze', agent_id: 'comedian-v1', reason: 'No more jokes.' }
  expect((await service.post('/api/control-tower', freeze, tenant.headers)).status).toBe(200)
  const second = await run()
  expect(second.status).toBe(429)
  expect(await second.json()).toMatchObject({ error: 'policy_blocked' })
  const tower = await service.get('/api/control-tower', tenant.headers)
  expect(tower.body).toMatchObject({ runs: { today: 2, completed_today: 1, blocked_today: 1 } })
  expect(tower.body.frozen_agents).toMatchObject([{ agent_id: 'comedian-v1' }])
  expect(tower.body.log_checkpoint).toContain('\n')
})

test('freezing an agent that nothing names says so, and still freezes it', async () => {
  const tenant = await service.onboard()
  const freeze = async (agent_id: string) => {
    const { status, body } = await service.post(
      '/api/control-tower',
      { action: 'freeze', agent_id, reason: 'test' },
      tenant.headers,
    )
    expect(status).toBe(200)
    expect(body.frozen_agents.map((agent: { agent_id: string }) => agent.agent_id)).toContain(agent_id)
    return body.known
  }
  expect(await freeze('writter-v1')).toBe(false)
  expect(await freeze('writer-v1')).toBe(true)
  await service.post('/api/mandates', { name: 'M', agent_id: 'fleet-1', constraints: [] }, tenant.headers)
  await service.post('/api/pre-auth', { agent_id: 'fleet-2', merchant: { id: 'm' }, amount: '1' }, tenant.headers)
  expect([await freeze('fleet-1'), await freeze('fleet-2')]).toEqual([true, true])
  const stranger = await service.onboard()
  await service.post('/api/pre-auth', { agent_id: 'fleet-3', merchant: { id: 'm' }, amount: '1' }, stranger.headers)
  expect(await freeze('fleet-3')).toBe(false)
  const unfreeze = { action: 'unfreeze', agent_id: 'writter-v1' }
  expect((await service.post('/api/control-tower', unfreeze, tenant.headers)).body).not.toHaveProperty('known')
})
