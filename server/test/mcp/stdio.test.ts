import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Client, type ClientOptions } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startService, type TestService } from '../harness.ts'

const root = resolve(import.meta.dirname, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'countersign-mcp-'))
const opened: Client[] = []

let service: TestService
beforeAll(async () => {
  service = await startService()
})
afterAll(async () => {
  await Promise.all(opened.map((client) => client.close()))
  await service.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Starts `countersign mcp` and connects to it as a host does. */
async function connect(
  options: ClientOptions = { versionNegotiation: { mode: 'auto' } },
  { args = [], env = {}, url = service.url }: { args?: string[]; env?: Record<string, string>; url?: string } = {},
) {
  const client = new Client({ name: 'test', version: '1.0.0' }, options)
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(root, 'cli/src/main.ts'), 'mcp', '--url', url, ...args],
    env: { PATH: process.env.PATH!, ...env },
    stderr: 'ignore',
  })
  opened.push(client)
  await client.connect(transport)
  return client
}

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the answer
const call = (client: Client, name: string, args: object, meta?: object): Promise<any> =>
  client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) } as never)

describe('what is refused', () => {
  test('without a key the tools of a tenant are refused, and approve is not listed', async () => {
    const client = await connect()
    expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain('approve')
    const refused = await call(client, 'spend', {})
    expect([refused.isError, refused.structuredContent.code]).toEqual([true, 'unauthorized'])
  })

  test('a policy of the tenant binds', async () => {
    const { headers, apiKey } = await service.onboard()
    await service.post('/api/policies', { name: 'No', constraints: { denied_agents: ['writer-v1'] } }, headers)
    const client = await connect(undefined, { env: { COUNTERSIGN_API_KEY: apiKey } })
    const refused = await call(client, 'run', { task: 'Write a haiku.', agent_id: 'writer-v1' })
    expect([refused.isError, refused.structuredContent.error]).toEqual([true, 'policy_blocked'])
  })

  test('an invalid key and a service that is not there are errors that say so', async () => {
    const wrong = await connect(undefined, { env: { COUNTERSIGN_API_KEY: 'csk_nobody' } })
    await expect(wrong.listTools()).rejects.toThrow('This API key is not valid.')
    const nowhere = await connect(undefined, { url: 'http://127.0.0.1:1' })
    await expect(nowhere.listTools()).rejects.toThrow('cannot be reached')
  })
})

test.each([
  ['2026-07-28', { versionNegotiation: { mode: { pin: '2026-07-28' } } } as ClientOptions],
  ['2025-11-25', { versionNegotiation: { mode: 'legacy' } } as ClientOptions],
])(
  'revision %s: the tools of the service, a run that asks for payment and is paid by x402',
  async (revision, options) => {
    const { apiKey } = await service.onboard()
    const keyFile = join(folder, 'api.key')
    writeFileSync(keyFile, `${apiKey}\n`)
    const client = await connect(options, { args: ['--key-file', keyFile] })
    expect(client.getNegotiatedProtocolVersion()).toBe(revision)
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('approve')
    const pricing = await client.readResource({ uri: 'countersign://pricing' })
    expect(JSON.parse((pricing.contents[0] as { text: string }).text)).toEqual((await service.get('/api/pricing')).body)

    const args = { task: `Joke ${revision}.`, agent_id: 'comedian-v1' }
    const required = await call(client, 'run', args)
    expect([required.isError, required.structuredContent.x402Version]).toEqual([true, 2])
    const payer = await service.payer(1)
    const x402 = new x402Client().register('eip155:8453', new ExactEvmScheme(payer))
    const payment = await x402.createPaymentPayload(required.structuredContent)
    const done = await call(client, 'run', args, { 'x402/payment': payment })
    expect(done.isError, done.content[0].text).not.toBe(true)
    expect(done.structuredContent.status).toBe('completed')
    expect(done._meta['x402/payment-response']).toMatchObject({ success: true, payer: payer.address.toLowerCase() })
    expect(await service.balance(payer.address)).toBe(990_000n)
  },
)

test.each([
  ['2026-07-28', { mode: { pin: '2026-07-28' } }],
  ['2025-11-25', { mode: 'legacy' }],
] as const)(
  'revision %s: a person is asked for an approval, and the run is done once it is given',
  async (_revision, versionNegotiation) => {
    const { headers } = await service.onboard()
    const policy = { name: 'Ask first', constraints: { require_approval_above_usdc: 0 } }
    await service.post('/api/policies', policy, headers)
    const { body: wallet } = await service.post('/api/wallets', { name: 'W' }, headers)
    const payer = await service.payer()
    await payer.fetch(`${service.url}/api/wallets/${wallet.wallet_id}/topup`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{"amount_usdc":1}',
    })
    const { body: key } = await service.post('/api/keys', { name: 'agent', scopes: ['run'] }, headers)
    const client = await connect(
      { versionNegotiation, capabilities: { elicitation: { form: {} } } },
      { env: { COUNTERSIGN_API_KEY: key.api_key } },
    )
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      const approval_id = /apr_[\w-]+/.exec(params.message)![0]
      const { status } = await service.post('/api/approvals', { approval_id, decision: 'approve' }, headers)
      expect(status).toBe(200)
      return { action: 'accept', content: {} }
    })
    const done = await call(client, 'run', { task: 'Joke.', payment: { wallet_id: wallet.wallet_id } })
    expect(done.structuredContent, done.content[0].text).toMatchObject({ status: 'completed' })
  },
)
