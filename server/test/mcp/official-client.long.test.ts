import { afterAll, beforeAll, expect, test } from 'vitest'
import { richTenant } from '../governance/world.ts'
import { startService, type TestService } from '../harness.ts'
import { INSTALL_LIMIT_MS, installPackages } from '../install-packages.ts'
import { noteRan } from '../other-software/ran.ts'
import { createHeldLane, type HeldLane } from '../runs/held-lane.ts'

/** The official client of the revision before, which knows nothing of the newer one. */
const SDK = '@modelcontextprotocol/sdk@1.32.2'

let service: TestService
let lane: HeldLane
let packages: Awaited<ReturnType<typeof installPackages>>
beforeAll(async () => {
  packages = await installPackages([SDK])
  lane = createHeldLane()
  service = await startService({ lane })
}, INSTALL_LIMIT_MS + 180_000)
afterAll(async () => {
  packages?.remove()
  await service?.close()
})

test(`${SDK} lists the tools, is refused what its key may not do, and pays for a run from a wallet`, async () => {
  const { Client } = await packages.load('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await packages.load('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const { headers } = await service.onboard()
  const { body: wallet } = await service.post('/api/wallets', { name: 'W' }, headers)
  const payer = await service.payer()
  await payer.fetch(`${service.url}/api/wallets/${wallet.wallet_id}/topup`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: '{"amount_usdc":1}',
  })
  const { body: key } = await service.post('/api/keys', { name: 'agent', scopes: ['run'] }, headers)
  const client = new Client({ name: 'test', version: '1.0.0' })
  const requestInit = { headers: { 'x-api-key': key.api_key } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }))
  const { tools } = await client.listTools()
  expect(tools.map(({ name }: { name: string }) => name)).toEqual([
    'route',
    'run',
    'pre_authorize',
    'close',
    'receipts',
    'verify',
    'basis_quote',
    'basis_attestation',
  ])
  const refused = await client.callTool({ name: 'spend', arguments: {} })
  expect([refused.isError, refused.structuredContent.code]).toEqual([true, 'forbidden'])
  const wrong = await client.callTool({ name: 'verify', arguments: { colour: 'red' } })
  expect([wrong.isError, wrong.structuredContent.error]).toEqual([true, 'invalid_request'])
  const unpaid = await client.callTool({ name: 'run', arguments: { task: 'Joke.' } })
  expect([unpaid.isError, unpaid.structuredContent.x402Version]).toEqual([true, 2])
  const done = await client.callTool({
    name: 'run',
    arguments: { task: 'Joke.', payment: { wallet_id: wallet.wallet_id } },
  })
  expect(done.structuredContent).toMatchObject({ status: 'completed', settlement: { method: 'wallet' } })
  await client.close()
  noteRan(SDK)
})

test(`${SDK} pays for a long run as a task, follows it to its result, and cancels another one in time`, async () => {
  const { Client } = await packages.load('@modelcontextprotocol/sdk/client/index.js')
  const { StreamableHTTPClientTransport } = await packages.load('@modelcontextprotocol/sdk/client/streamableHttp.js')
  const { CallToolResultSchema } = await packages.load('@modelcontextprotocol/sdk/types.js')
  const tenant = await richTenant(service, 1)
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit: { headers: tenant.headers } }),
  )
  await client.listTools()
  const callAsTask = (task: string) =>
    client.experimental.tasks.callToolStream(
      { name: 'run', arguments: { task, agent_id: 'comedian-v1', payment: { wallet_id: tenant.walletId } } },
      CallToolResultSchema,
      { task: { ttl: 60_000 } },
    )

  const seen: string[] = []
  for await (const message of callAsTask('A slow joke about tasks.')) {
    seen.push(message.type)
    if (message.type === 'taskStatus') lane.letGo()
    if (message.type === 'error') throw message.error
    if (message.type === 'result') expect(message.result.structuredContent).toMatchObject({ status: 'completed' })
  }
  expect([seen[0], seen.at(-1)]).toEqual(['taskCreated', 'result'])
  expect(seen).toContain('taskStatus')

  for await (const message of callAsTask('A slow joke that is cancelled.')) {
    if (message.type !== 'taskCreated') continue
    const cancelled = await client.experimental.tasks.cancelTask(message.task.taskId)
    expect(cancelled.status).toBe('cancelled')
    break
  }
  const { body } = await service.get(`/api/wallets/${tenant.walletId}`, tenant.headers)
  expect(body.balance).toMatchObject({ available: '990000', reserved: '0' })
  await client.close()
})
