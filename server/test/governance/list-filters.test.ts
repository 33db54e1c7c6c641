import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(() => service.close())

const run = (headers: Record<string, string>, body: Record<string, unknown> = {}) =>
  service.post('/api/run', { task: 'Add 1 and 2.', agent_id: 'analyst-v1', ...body }, headers)

test('the decision about a refused run is found by its run, and not by another tenant', async () => {
  const [tenant, other] = [await service.onboard('Acme'), await service.onboard('Other')]
  await service.post('/api/policies', { name: 'Small', constraints: { max_per_run_usdc: 0.02 } }, tenant.headers)
  const [first, second] = [await run(tenant.headers), await run(tenant.headers, { task: 'Add 3 and 4.' })]
  expect([first.status, second.status]).toEqual([429, 429])
  const path = `/api/decisions?run_id=${first.body.run_id}`
  expect((await service.get(path, tenant.headers)).body.decisions).toMatchObject([
    { decision_id: first.body.decision_id, run_id: first.body.run_id },
  ])
  expect((await service.get(path, other.headers)).body.decisions).toEqual([])
  expect((await service.get('/api/decisions?run_id=run_none', tenant.headers)).body.decisions).toEqual([])
})

test('the runs and pre-authorised payments under a mandate are found by it, and not by another tenant', async () => {
  const [tenant, other] = [await service.onboard('Acme'), await service.onboard('Other')]
  const mandate = await service.post(
    '/api/mandates',
    { name: 'All', constraints: [{ type: 'payment.budget', currency: 'USDC', max: 5 }] },
    tenant.headers,
  )
  const payer = await service.payer(1)
  const paid = await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...tenant.headers },
    body: JSON.stringify({ task: 'Add 1 and 2.', agent_id: 'comedian-v1' }),
  })
  const { run_id } = (await paid.json()) as { run_id: string }
  const preauth = await service.post(
    '/api/pre-auth',
    { agent_id: 'buyer', amount: '1000', merchant: { id: 'shop' } },
    tenant.headers,
  )
  expect(preauth.status, preauth.text).toBeLessThan(300)
  const preauthForRun = await service.post(
    '/api/pre-auth',
    { agent_id: 'comedian-v1', amount_usdc: 1, merchant: { id: 'countersign' } },
    tenant.headers,
  )
  const underToken = await payer.fetch(`${service.url}/api/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...tenant.headers },
    body: JSON.stringify({ task: 'Add 1 and 3.', agent_id: 'comedian-v1', preauth_token: preauthForRun.body.token }),
  })
  expect(await underToken.json()).toMatchObject({ run_id: preauthForRun.body.run_id, status: 'completed' })
  await service.post('/api/mandates', { name: 'Another', constraints: [] }, tenant.headers)
  const list = async (id: string, headers: Record<string, string>) =>
    (await service.get(`/api/runs?mandate_id=${id}`, headers)).body.runs.map((item: { run_id: string }) => item.run_id)
  expect(await list(mandate.body.id, tenant.headers)).toEqual([preauthForRun.body.run_id, preauth.body.run_id, run_id])
  expect(await list('man_none', tenant.headers)).toEqual([])
  expect(await list(mandate.body.id, other.headers)).toEqual([])
})

test('a draft that replaces the policy of a key is replayed over the runs of that key alone, without the key being sent', async () => {
  const tenant = await service.onboard('Acme')
  const { body: second } = await service.post('/api/keys', { name: 'second', scopes: ['run', 'read'] }, tenant.headers)
  const { body: policy } = await service.post(
    '/api/policies',
    { identity_type: 'api_key', api_key: second.api_key, constraints: { max_per_run_usdc: 0.02 } },
    tenant.headers,
  )
  expect((await run({ 'x-api-key': second.api_key })).status).toBe(429)
  const simulate = (draft: Record<string, unknown>) =>
    service.post('/api/policies/simulate', { replaces: policy.id, policy: draft }, tenant.headers)
  const raised = await simulate({ identity_type: 'api_key', constraints: { max_per_run_usdc: 1 } })
  expect(raised.body).toMatchObject({ considered: 1, newly_allowed: 1, policy: { key_prefix: policy.key_prefix } })
  const added = await service.post(
    '/api/policies/simulate',
    { policy: { identity_type: 'api_key', constraints: { max_per_run_usdc: 1 } } },
    tenant.headers,
  )
  expect(added.status).toBe(400)
})
