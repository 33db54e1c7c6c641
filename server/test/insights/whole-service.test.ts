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
  await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(1)
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
