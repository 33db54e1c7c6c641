import { afterAll, beforeAll, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'
import { INSTALL_LIMIT_MS, installPackages } from '../install-packages.ts'
import { noteRan } from '../other-software/ran.ts'

/** The official client of the revision before, which knows nothing of the newer one. */
const SDK = '@modelcontextprotocol/sdk@1.32.2'

let service: TestService
let packages: Awaited<ReturnType<typeof installPackages>>
beforeAll(async () => {
  packages = await installPackages([SDK])
  service = await startService()
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
