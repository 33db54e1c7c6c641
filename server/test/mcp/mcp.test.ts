import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startService, type TestService } from '../harness.ts'

const TOOLS = [
  'route',
  'run',
  'pre_authorize',
  'close',
  'approve',
  'spend',
  'receipts',
  'verify',
  'basis_quote',
  'basis_attestation',
]

let service: TestService
let tenant: Awaited<ReturnType<TestService['onboard']>>
beforeAll(async () => {
  service = await startService()
  tenant = await service.onboard()
})
afterAll(() => service.close())

const opened: Client[] = []
afterAll(() => Promise.all(opened.map((client) => client.close())))

async function connect(
  headers: Record<string, string> = {},
  options: ClientOptions = { versionNegotiation: { mode: 'auto' } },
  url = service.url,
) {
  const client = new Client({ name: 'test', version: '1.0.0' }, options)
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }))
  opened.push(client)
  return client
}

/** The payment of an official x402 client for the terms of a tool result. */
// biome-ignore lint/suspicious/noExplicitAny: the result is what the test is about
async function signPayment(payer: Awaited<ReturnType<TestService['payer']>>, required: any) {
  const x402 = new x402Client().register('eip155:8453', new ExactEvmScheme(payer))
  return x402.createPaymentPayload(required)
}

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the answer
type Result = { isError?: boolean; structuredContent?: any; content: any[]; _meta?: Record<string, any> }
const call = async (client: Client, name: string, args: object, meta?: object): Promise<Result> =>
  client.callTool({ name, arguments: args as Record<string, unknown>, ...(meta && { _meta: meta }) } as never) as never

const keyWith = async (scopes: string[]) => {
  const { body } = await service.post('/api/keys', { name: scopes.join(), scopes }, tenant.headers)
  return { 'x-api-key': body.api_key as string }
}

describe('no way past governance, scopes and limits', () => {
  test('a run that a policy denies over HTTP is denied as a tool: same code, same rule, nothing charged', async () => {
    const { headers } = await service.onboard()
    const policy = { name: 'No writers', constraints: { denied_agents: ['writer-v1'] } }
    expect((await service.post('/api/policies', policy, headers)).status).toBe(201)
    const body = { task: 'Write a haiku.', agent_id: 'writer-v1' }
    const overHttp = await service.post('/api/run', body, headers)
    expect([overHttp.status, overHttp.body.error]).toEqual([429, 'policy_blocked'])
    const refused = await call(await connect(headers), 'run', body)
    expect(refused.isError).toBe(true)
    expect(refused.structuredContent).toMatchObject({
      error: 'policy_blocked',
      policy_results: [expect.objectContaining({ policy_id: overHttp.body.policy_results[0].policy_id })],
    })
    expect(refused._meta ?? {}).not.toHaveProperty('x402/payment-response')
  })

  test('a budget counts runs of both doors together', async () => {
    const { headers } = await service.onboard()
    const wallet = await fundedWallet(headers)
    const budget = { budget_id: 'all', window: 'total', limit_usdc: 0.02 }
    const created = await service.post('/api/budgets', budget, headers)
    expect([200, 201], created.text).toContain(created.status)
    const run = (task: string) => ({ task, agent_id: 'comedian-v1', payment: { wallet_id: wallet } })
    const client = await connect(headers)
    expect((await service.post('/api/run', run('one'), headers)).status).toBe(200)
    expect((await call(client, 'run', run('two'))).structuredContent).toMatchObject({ status: 'completed' })
    expect((await call(client, 'run', run('three'))).structuredContent).toMatchObject({ error: 'budget_exceeded' })
    expect((await service.post('/api/run', run('four'), headers)).body.error).toBe('budget_exceeded')
  })

  test('a key without the scope sees neither the tool nor its result', async () => {
    const reader = await connect(await keyWith(['read']))
    const names = (await reader.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(['route', 'spend', 'receipts', 'verify', 'basis_quote', 'basis_attestation'])
    for (const [name, args] of [
      ['run', { task: 'Tell me a joke.' }],
      ['pre_authorize', {}],
      ['approve', { approval_id: 'apr_1', decision: 'approve' }],
    ] as const) {
      const refused = await call(reader, name, args)
      expect([name, refused.isError, refused.structuredContent.code]).toEqual([name, true, 'forbidden'])
    }
    const runner = await connect(await keyWith(['run']))
    expect((await runner.listTools()).tools.map(({ name }) => name)).not.toContain('approve')
    expect((await call(runner, 'approve', { approval_id: 'apr_1', decision: 'approve' })).isError).toBe(true)
  })

  test('without a key every tool but approve is listed, and those of a tenant are refused', async () => {
    const guest = await connect()
    expect((await guest.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS.filter((name) => name !== 'approve'))
    for (const name of ['spend', 'pre_authorize', 'close', 'approve']) {
      const refused = await call(guest, name, {})
      expect([name, refused.isError, refused.structuredContent.code]).toEqual([name, true, 'unauthorized'])
    }
  })

  test('an invalid key is refused before anything is read, also as a bearer token; two keys are refused', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const json = { accept: 'application/json, text/event-stream' }
    expect((await service.post('/mcp', list, { ...json, 'x-api-key': 'csk_nobody' })).status).toBe(401)
    expect((await service.post('/mcp', list, { ...json, authorization: 'Bearer csk_nobody' })).status).toBe(401)
    const both = { ...json, ...tenant.headers, authorization: 'Bearer csk_other' }
    expect((await service.post('/mcp', list, both)).status).toBe(400)
    const bearer = await connect({ authorization: `Bearer ${tenant.apiKey}` })
    expect((await bearer.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS)
    expect((await call(bearer, 'spend', {})).isError).not.toBe(true)
  })

  test('a session cookie is no credential here', async () => {
    const session = await service.post('/api/session', { api_key: tenant.apiKey })
    const cookie = session.headers.get('set-cookie')!.split(';')[0]!
    const refused = await call(await connect({ cookie, 'x-csrf-token': session.body.csrf_token }), 'spend', {})
    expect(refused.structuredContent.code).toBe('unauthorized')
  })

  test('a page of another origin is refused, whatever host it used; our own and no page are not', async () => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const accept = 'application/json, text/event-stream'
    for (const origin of [
      'http://evil.example',
      'null',
      'https://127.0.0.1',
      service.url.replace('127.0.0.1', 'localhost'),
    ])
      expect((await service.post('/mcp', list, { accept, origin })).status, origin).toBe(403)
    expect((await service.post('/mcp', list, { accept, origin: service.url })).status).toBe(200)
    expect((await service.post('/mcp', list, { accept })).status).toBe(200)
  })

  test('requests and tool calls count once each against the address, as HTTP calls do', async () => {
    const strict = await startService({ env: { RATE_LIMIT_ANON_PER_MINUTE: '6' } })
    try {
      const accept = { accept: 'application/json, text/event-stream' }
      const send = (method: string, params?: object) =>
        strict.post('/mcp', { jsonrpc: '2.0', id: 1, method, ...(params && { params }) }, accept)
      expect((await send('tools/list')).status).toBe(200)
      const route = { name: 'route', arguments: { task: 'Tell me a joke.' } }
      for (let count = 0; count < 4; count++)
        expect((await send('tools/call', route)).text).not.toContain('rate_limited')
      expect((await strict.get('/api/pricing')).status).toBe(200)
      expect((await send('tools/call', route)).text).toContain('rate_limited')
      expect((await send('tools/call', { name: 'nothing', arguments: {} })).status).toBe(429)
      expect((await send('tools/call', { name: 'basis_quote', arguments: { symbol: 'TSLAx' } })).status).toBe(429)
      expect((await send('tools/list')).status).toBe(429)
    } finally {
      await strict.close()
    }
  })

  test('a body that is too large, a batch, another content type and another method are refused', async () => {
    const accept = { accept: 'application/json, text/event-stream' }
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    expect((await service.post('/mcp', { ...list, params: { x: 'x'.repeat(300_000) } }, accept)).status).toBe(413)
    expect((await service.post('/mcp', [list, list], accept)).status).toBe(400)
    for (const body of ['', 'null', '"x"', '{"a":1,"a":2}', '{'])
      expect((await service.call('POST', '/mcp', body, { ...accept, 'content-type': 'application/json' })).status).toBe(
        400,
      )
    expect((await service.call('POST', '/mcp', 'x', { ...accept, 'content-type': 'text/plain' })).status).toBe(415)
    for (const method of ['GET', 'DELETE']) {
      const response = await service.call(method, '/mcp', undefined, accept)
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    }
  })

  test('nobody can hold a stream open', async () => {
    const client = await connect()
    await expect(client.listen({ toolsListChanged: true } as never)).rejects.toThrow()
  })

  test('arguments cannot leave their place: a path, a query or an unknown field is refused', async () => {
    const client = await connect(tenant.headers)
    for (const symbol of [
      '../../../api/keys',
      'TSLAx/../../keys',
      'TSLAx?chain=x',
      '%2e%2e',
      '..',
      '.',
      '',
      'x'.repeat(9_000),
    ]) {
      const refused = await call(client, 'basis_quote', { symbol })
      expect([symbol, refused.isError]).toEqual([symbol, true])
      expect(['not_found', undefined]).toContain(refused.structuredContent.code)
      expect(JSON.stringify(refused)).not.toContain('csk_')
    }
    expect((await call(client, 'basis_quote', {})).structuredContent.error).toBe('invalid_request')
    expect((await call(client, 'spend', { colour: 'red' })).structuredContent.error).toBe('invalid_request')
    expect((await call(client, 'run', { tusk: 'x' })).structuredContent.error).toBe('invalid_request')
    await expect(call(client, 'delete_everything', {})).rejects.toThrow(/unknown tool/i)
  })
})

async function fundedWallet(headers: Record<string, string>, usdc = 1) {
  const payer = await service.payer()
  const { body } = await service.post('/api/wallets', { name: 'Test' }, headers)
  const paid = await payer.fetch(`${service.url}/api/wallets/${body.wallet_id}/topup`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ amount_usdc: usdc }),
  })
  expect(paid.status).toBe(200)
  return body.wallet_id as string
}

describe.each([
  ['2026-07-28', { versionNegotiation: { mode: { pin: '2026-07-28' } } } as ClientOptions],
  ['2025-11-25', { versionNegotiation: { mode: 'legacy' } } as ClientOptions],
])('revision %s', (revision, options) => {
  test('is negotiated, with tools that have annotations and schemas of input and output', async () => {
    const client = await connect(tenant.headers, options)
    expect(client.getNegotiatedProtocolVersion()).toBe(revision)
    expect(client.getServerVersion()).toMatchObject({ name: 'countersign', version: '1.7.0' })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(TOOLS)
    for (const tool of tools) {
      expect(tool, tool.name).toMatchObject({
        title: expect.any(String),
        description: expect.stringMatching(/\.$/),
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: expect.any(Boolean), openWorldHint: expect.any(Boolean) },
      })
      const isReadOnly = !['run', 'pre_authorize', 'close', 'approve'].includes(tool.name)
      expect([tool.name, tool.annotations!.readOnlyHint]).toEqual([tool.name, isReadOnly])
    }
  })

  test('an unpaid run is a tool error with x402 terms; paid in _meta it is done, and settled on the chain', async () => {
    const client = await connect({}, options)
    await client.listTools()
    const payer = await service.payer(1)
    const args = { task: `Tell me a joke, revision ${revision}.`, agent_id: 'comedian-v1' }
    const required = await call(client, 'run', args)
    expect(required.isError).toBe(true)
    expect(required.structuredContent).toMatchObject({
      x402Version: 2,
      error: 'payment_required',
      resource: { url: `${service.url}/api/run` },
      accepts: [{ scheme: 'exact', network: 'eip155:8453', amount: '10000' }],
    })
    expect(JSON.parse(required.content[0].text)).toEqual(required.structuredContent)

    const payment = await signPayment(payer, required.structuredContent)
    const done = await call(client, 'run', args, { 'x402/payment': payment })
    expect(done.isError).not.toBe(true)
    expect(done.structuredContent).toMatchObject({ status: 'completed', price_usdc: 0.01 })
    expect(JSON.parse(done.content[0].text)).toEqual(done.structuredContent)
    const settled = done._meta!['x402/payment-response']
    expect(settled).toMatchObject({ success: true, network: 'eip155:8453', payer: payer.address.toLowerCase() })
    const receipt = await service.rpc('eth_getTransactionReceipt', [settled.transaction])
    expect(receipt.status).toBe('0x1')
    expect(await service.balance(payer.address)).toBe(990_000n)

    // The same payment again is the same answer, and for another task it is refused.
    const again = await call(client, 'run', args, { 'x402/payment': payment })
    expect(again.structuredContent).toEqual(done.structuredContent)
    const other = await call(client, 'run', { ...args, task: 'Another.' }, { 'x402/payment': payment })
    expect(other.isError).toBe(true)
    expect(await service.balance(payer.address)).toBe(990_000n)
  })

  test('a payment of somebody without money, and one that is no payment, are refused', async () => {
    const client = await connect({}, options)
    const args = { task: 'Tell me a joke.', agent_id: 'comedian-v1' }
    const required = await call(client, 'run', args)
    const payment = await signPayment(await service.payer(0), required.structuredContent)
    const refused = await call(client, 'run', args, { 'x402/payment': payment })
    expect(refused.isError).toBe(true)
    expect(refused.structuredContent).toMatchObject({
      x402Version: 2,
      error: expect.stringContaining('insufficient'),
      accepts: [{ amount: '10000' }],
    })
    for (const nonsense of ['x', 7, {}, { x402Version: 9 }, { x402Version: 2, blob: 'x'.repeat(20_000) }]) {
      const response = await call(client, 'run', args, { 'x402/payment': nonsense })
      expect(response.structuredContent, JSON.stringify(nonsense).slice(0, 40)).toMatchObject({
        error: 'invalid_request',
      })
    }
  })

  test('resources: the price list, and a receipt by its id', async () => {
    const client = await connect({}, options)
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(['countersign://pricing'])
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual(['countersign://receipts/{id}'])
    const read = async (uri: string) => {
      const { contents } = await client.readResource({ uri })
      return JSON.parse((contents[0] as { text: string }).text)
    }
    expect(await read('countersign://pricing')).toEqual((await service.get('/api/pricing')).body)
    const wallet = await fundedWallet(tenant.headers)
    const run = await service.post('/api/run', { task: 'Joke.', payment: { wallet_id: wallet } }, tenant.headers)
    const id = run.body.receipt.receipt_id ?? run.body.receipt.id
    // Between the two reads the receipt may get its place in the log.
    await vi.waitFor(async () => {
      expect(await read(`countersign://receipts/${id}`)).toEqual((await service.get(`/api/receipts/${id}`)).body)
    }, 20_000)
    for (const uri of [
      'countersign://receipts/rcpt_0',
      'countersign://receipts/../keys',
      'countersign://x',
      'http://x',
    ])
      await expect(client.readResource({ uri }), uri).rejects.toThrow()
  })
})

describe('approvals', () => {
  const startApproval = async () => {
    const owner = await service.onboard()
    const wallet = await fundedWallet(owner.headers)
    const policy = { name: 'Ask first', constraints: { require_approval_above_usdc: 0 } }
    const created = await service.post('/api/policies', policy, owner.headers)
    expect(created.status, created.text).toBe(201)
    const { body } = await service.post('/api/keys', { name: 'agent', scopes: ['run'] }, owner.headers)
    return { owner, args: { task: 'Joke.', payment: { wallet_id: wallet } }, agent: { 'x-api-key': body.api_key } }
  }

  test('a run that needs approval asks for it as input; accepted and approved by a person, it is done', async () => {
    const { owner, agent, args } = await startApproval()
    const client = await connect(agent, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      capabilities: { elicitation: { form: {} } },
    })
    const messages: string[] = []
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      messages.push(params.message)
      const approvalId = /apr_[\w-]+/.exec(params.message)![0]
      const approval = { approval_id: approvalId, decision: 'approve' }
      const { status, text } = await service.post('/api/approvals', approval, owner.headers)
      expect(status, text).toBe(200)
      return { action: 'accept', content: {} }
    })
    const done = await call(client, 'run', args)
    expect(messages).toHaveLength(1)
    expect(done.structuredContent).toMatchObject({ status: 'completed' })
  })

  test('accepting without approving approves nothing, and declining is the refusal', async () => {
    const { agent, args } = await startApproval()
    const client = await connect(agent, {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      capabilities: { elicitation: { form: {} } },
    })
    const answers = ['accept', 'accept', 'decline'] as const
    let asked = 0
    client.setRequestHandler('elicitation/create', async () => {
      const action = answers[asked++]!
      return action === 'accept' ? { action, content: {} } : { action }
    })
    const refused = await call(client, 'run', args)
    expect(asked).toBe(3)
    expect(refused.isError).toBe(true)
    expect(refused.structuredContent).toMatchObject({ error: 'policy_blocked', approval_id: expect.any(String) })
  })

  test('a client that cannot ask a person, and one of the revision before, get the refusal with its approval', async () => {
    const { owner, agent, args } = await startApproval()
    for (const mode of [{ pin: '2026-07-28' }, 'legacy'] as const) {
      const refused = await call(await connect(agent, { versionNegotiation: { mode } }), 'run', args)
      expect(refused.structuredContent).toMatchObject({ outcome: 'review_required', approval_id: expect.any(String) })
    }
    // The approver decides with the tool `approve`.
    const approver = await connect(owner.headers)
    const pending = (await service.get('/api/approvals?status=pending', owner.headers)).body.approvals
    expect(pending).toHaveLength(1)
    const approval_id = pending[0].approval_id ?? pending[0].id
    const decided = await call(approver, 'approve', { approval_id, decision: 'approve' })
    expect(decided.isError, decided.content[0].text).not.toBe(true)
    const done = await call(await connect(agent), 'run', { ...args, approval_id })
    expect(done.structuredContent).toMatchObject({ status: 'completed' })
  })
})

test('every tool works: route, pre-authorise and close, spend, receipts, verify, basis', async () => {
  const client = await connect(tenant.headers)
  await client.listTools()
  const ask = async (name: string, args: object) => {
    const result = await call(client, name, args)
    expect(result.isError, `${name}: ${result.content[0]?.text}`).not.toBe(true)
    return result.structuredContent
  }
  expect(await ask('route', { task: 'Tell me a joke.' })).toMatchObject({ recommended_agent_id: 'comedian-v1' })
  const preauth = await ask('pre_authorize', { agent_id: 'shopper', merchant: { id: 'shop.example' }, amount_usdc: 1 })
  expect(await ask('close', { preauth_id: preauth.preauth_id, outcome: 'failed' })).toMatchObject({ status: 'closed' })
  const period = {
    group_by: 'day',
    from: new Date(Date.now() - 86_400_000).toISOString(),
    to: new Date().toISOString(),
  }
  expect(await ask('spend', period)).toEqual(
    (await service.get(`/api/spend?${new URLSearchParams(period)}`, tenant.headers)).body,
  )
  const { receipts } = await ask('receipts', { limit: 1 })
  expect(receipts).toHaveLength(1)
  const receiptId = receipts[0].receipt_id ?? receipts[0].id
  expect(await ask('verify', { receipt_id: receiptId })).toMatchObject({ ok: true })
  const quote = await ask('basis_quote', { symbol: 'TSLAx' })
  expect(quote.symbol).toBe('TSLAx')
  expect(await ask('basis_attestation', { symbol: 'TSLAx' })).toMatchObject({ symbol: 'TSLAx' })
})
