import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readChallenge, signPayment, startService, type TestService } from '../../../server/test/harness.ts'
import { mustRun, packAll, startProgram } from '../../../server/test/packages/packed.ts'
import { launchBrowser } from './browser.ts'

const examples = resolve(import.meta.dirname, '../../../examples')

let service: TestService
let folder: string

/** The examples in a folder outside the repository, with the packages as npm installs them. */
beforeAll(async () => {
  service = await startService()
  folder = mkdtempSync(join(tmpdir(), 'countersign-examples-'))
  cpSync(examples, folder, { recursive: true })
  const tarballs = (await packAll()).filter((name) => /(proof|sdk)-\d/.test(name))
  await mustRun('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...tarballs], { cwd: folder })
}, 300_000)
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await service.close()
})

const runExample = (name: string, env: Record<string, string> = {}) =>
  mustRun('node', [name], { cwd: folder, env: { COUNTERSIGN_URL: service.url, ...env } })

test('the governed agent buys until its budget refuses, and goes on', async () => {
  const model = await startModel()
  const output = await runExample('governed-agent.mjs', { MODEL_URL: `${urlOf(model)}/v1` })
  model.close()
  expect(output).toMatch(/Bought from comedian-v1 for 0.01 USDC; receipt verified: true/)
  expect(output.match(/^Bought/gm)).toHaveLength(2)
  expect(output.match(/^Refused/gm)).toHaveLength(1)
  expect(output).toContain('I bought two.')
  expect(output).toContain('Spent today: 0.02 USDC')
})

test('the shop is paid through the facilitator, and gives nothing away', async () => {
  const payTo = '0x00000000000000000000000000000000000051e1'
  const env = { COUNTERSIGN_URL: service.url, PORT: '0', PAY_TO_ADDRESS: payTo }
  const shop = await startProgram('node', ['seller.mjs'], { cwd: folder, env })
  try {
    expect((await fetch(`${shop.url}/forecast`)).status).toBe(402)
    expect(await service.balance(payTo)).toBe(0n)
    expect(await runExample('buyer.mjs', { SHOP_URL: shop.url })).toContain('200 {"tomorrow":"clear"}')
    expect(await service.balance(payTo)).toBe(10_000n)
  } finally {
    await shop.stop()
  }
})

test('the webhook receiver refuses a forged delivery and takes the real one', async () => {
  const output = await runExample('webhook-receiver.mjs')
  expect(output).toContain('A delivery without a signature is refused: 400')
  expect(output).toMatch(/^run\.completed run_/m)
})

test('the MCP client lists tools and pays for a run', async () => {
  const output = await runExample('mcp-client.mjs')
  expect(output).toMatch(/^Tools: .*\brun\b/m)
  expect(output).toMatch(/^Lane: comedian-v1$/m)
  expect(output).toMatch(/^Paid 0.01 USDC$/m)
})

test('the page verifies a receipt in a browser and refuses one that was changed', async () => {
  await mustRun('npx', ['vite', 'build', 'browser-verifier', '--outDir', 'dist', '--base', './'], { cwd: folder })
  const server = createServer((request, response) => {
    const path = join(folder, 'browser-verifier/dist', request.url === '/' ? 'index.html' : request.url!)
    if (!existsSync(path)) return response.writeHead(404).end()
    response.setHeader('content-type', path.endsWith('.js') ? 'text/javascript' : 'text/html')
    return response.end(readFileSync(path))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const browser = await launchBrowser()
  try {
    const payer = await service.payer(1)
    const body = { task: 'Tell a joke about clocks.', agent_id: 'comedian-v1' }
    const header = await signPayment(payer, readChallenge((await service.post('/api/run', body)).headers))
    const run = await service.post('/api/run', body, header)
    const { body: receipt } = await service.get(run.body.receipt_url)
    const { text: jwks } = await service.get('/.well-known/jwks.json')
    const page = await browser.newPage()
    await page.goto(urlOf(server))
    const verify = async (value: unknown) => {
      await page.fill('#receipt', JSON.stringify(value))
      await page.fill('#keys', jwks)
      await page.click('#verify')
      return page.textContent('#result')
    }
    expect(await verify(receipt)).toBe('The receipt is valid.')
    expect(await verify({ ...receipt, agent_id: 'coder-v1' })).toBe('The receipt is NOT valid.')
    expect(await verify('nonsense')).toMatch(/NOT valid|Not readable/)
  } finally {
    await browser.close()
    server.close()
  }
})

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

/** A model with the OpenAI wire format that asks for the tool three times and then answers. */
async function startModel(): Promise<Server> {
  const model = createServer(async (request, response) => {
    const { messages } = (await json(request)) as { messages: { role: string }[] }
    const bought = messages.filter(({ role }) => role === 'tool').length
    const call = {
      id: `call_${bought}`,
      type: 'function',
      function: { name: 'buyWork', arguments: JSON.stringify({ task: `Joke ${bought}.`, specialist: 'comedian-v1' }) },
    }
    const message =
      bought < 3
        ? { role: 'assistant', content: null, tool_calls: [call] }
        : { role: 'assistant', content: 'I bought two.' }
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message, finish_reason: bought < 3 ? 'tool_calls' : 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  })
  await new Promise<void>((listening) => model.listen(0, '127.0.0.1', listening))
  return model
}
