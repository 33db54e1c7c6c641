import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../sdk/test/fault-proxy.ts'
import { type Payer, startService, type TestService } from '../../../server/test/harness.ts'
import { launchBrowser } from './browser.ts'

/**
 * A page of another site pays in a real Chromium. Its account is injected, as a wallet extension does it: the page has no
 * key and asks for signatures. The service is behind a proxy that changes nothing and records what the browser sent.
 */
const root = resolve(import.meta.dirname, '../../..')
const PRICE = 10_000n

const pageScript = `
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { ExactEvmScheme } from '@x402/evm'
import { createClient } from '@countersign/sdk'

const account = () => ({ address: globalThis.walletAddress, signTypedData: (message) => globalThis.signWithWallet(message) })
const request = (init = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'idempotency-key': crypto.randomUUID() },
  body: JSON.stringify({ task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }),
  ...init,
})
const read = async (response) => ({
  status: response.status,
  body: await response.json(),
  headers: Object.fromEntries(response.headers),
})
globalThis.call = async (url, init) => {
  try {
    return await read(await fetch(url, { ...request(), ...init }))
  } catch (error) {
    return { error: String(error) }
  }
}
globalThis.payWithX402 = async (url) => {
  const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account()) }] })
  return read(await pay(url + '/api/run', request()))
}
globalThis.payWithSdk = async (url) => {
  const client = createClient({ baseUrl: url, account: account(), allowDevelopmentChain: true, maxUsdc: 0.05 })
  const { output, run, receipt } = await client.run({ task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' })
  return { output, status: run.status, verified: receipt.verified }
}
globalThis.startWithSdk = async (url) => {
  const client = createClient({ baseUrl: url, account: account(), allowDevelopmentChain: true, maxUsdc: 0.05 })
  const started = await client.startRun({ task: 'Tell me a joke about long clocks.', agent_id: 'comedian-v1' })
  const statuses = []
  for await (const { status } of started.events()) statuses.push(status)
  const { output, receipt } = await started.result()
  const late = await started.cancel().catch((error) => error.status)
  return { runId: started.runId, statuses, output, verified: receipt.verified, late }
}
`

let service: TestService
let proxy: FaultProxy
let site: Server
let folder: string
let browser: Browser
let page: Page
let payer: Payer

beforeAll(async () => {
  service = await startService()
  proxy = await startFaultProxy(service.url)
  // Inside the repository, so that the imports resolve to its packages.
  folder = mkdtempSync(join(root, 'node_modules', '.paying-page-'))
  writeFileSync(join(folder, 'page.js'), pageScript)
  await build({
    root: folder,
    configFile: false,
    logLevel: 'error',
    build: { target: 'es2022', lib: { entry: 'page.js', formats: ['es'], fileName: 'bundle' } },
  })
  site = await serveFolder(join(folder, 'dist'))
  browser = await launchBrowser()
}, 180_000)
afterAll(async () => {
  await browser?.close()
  site?.close()
  await proxy?.close()
  await service?.close()
  rmSync(folder, { recursive: true, force: true })
})

beforeEach(async () => {
  payer = await service.payer(1)
  const context = await browser.newContext()
  await context.addCookies([
    { name: 'lax', value: '1', url: proxy.url, sameSite: 'Lax' },
    { name: 'none', value: '1', url: proxy.url, sameSite: 'None', secure: true },
  ])
  page = await context.newPage()
  await page.exposeFunction('signWithWallet', (message: Parameters<Payer['signTypedData']>[0]) =>
    payer.signTypedData(message),
  )
  // Another site, not only another port: cookies do not know ports.
  await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`)
  await page.evaluate(`globalThis.walletAddress = ${JSON.stringify(payer.address)}`)
  await page.waitForFunction('typeof payWithX402 === "function"')
  proxy.setFault(() => 'none')
})
afterEach(() => page.context().close())

// biome-ignore lint/suspicious/noExplicitAny: tests assert on the result
const evaluate = (expression: string): Promise<any> => page.evaluate(expression)
const callFromPage = (path: string, init: object = {}) =>
  evaluate(`call(${JSON.stringify(`${proxy.url}${path}`)}, ${JSON.stringify(init)})`)
const decode = (header: string) => JSON.parse(Buffer.from(header, 'base64').toString())
const spent = async () => 1_000_000n - (await service.balance(payer.address))
const sentTo = (path: string) => proxy.requests.filter((request) => request.path === path)

test('@x402/fetch in a page of another site pays once: preflights are answered, both payment headers are readable, no cookie is sent', async () => {
  const unpaid = await callFromPage('/api/run')
  expect([unpaid.status, decode(unpaid.headers['payment-required']).x402Version]).toEqual([402, 2])

  const paid = await evaluate(`payWithX402(${JSON.stringify(proxy.url)})`)
  expect(paid).toMatchObject({ status: 200, body: { status: 'completed', settlement: { status: 'settled' } } })
  const settled = decode(paid.headers['payment-response'])
  expect(settled).toMatchObject({ success: true, transaction: paid.body.settlement.transaction })
  const onChain = await service.rpc('eth_getTransactionReceipt', [settled.transaction])
  expect(onChain.status).toBe('0x1')
  expect(await spent()).toBe(PRICE)

  const requests = sentTo('/api/run')
  expect(requests.filter(({ method }) => method === 'OPTIONS').length).toBeGreaterThan(0)
  expect(requests.filter(({ paid }) => paid)).toHaveLength(1)
  expect(requests.every(({ headers }) => headers.origin?.startsWith('http://localhost:'))).toBe(true)
  expect(requests.filter(({ headers }) => headers.cookie !== undefined)).toEqual([])
})

test('our SDK in a page of another site pays once and verifies the receipt there', async () => {
  const result = await evaluate(`payWithSdk(${JSON.stringify(proxy.url)})`)
  expect(result).toEqual({ output: expect.any(String), status: 'completed', verified: true })
  expect(await spent()).toBe(PRICE)
  expect(proxy.requests.filter(({ headers }) => headers.cookie !== undefined)).toEqual([])
})

test('our SDK in a page of another site starts an asynchronous run, follows its events and verifies the answer; it is paid once', async () => {
  const result = await evaluate(`startWithSdk(${JSON.stringify(proxy.url)})`)
  expect(result).toMatchObject({
    runId: expect.stringMatching(/^run_/),
    output: expect.any(String),
    verified: true,
    late: 409,
  })
  expect([result.statuses[0], result.statuses.at(-1)]).toEqual(['pending', 'completed'])
  const [started] = sentTo('/api/run').filter(({ paid }) => paid)
  expect(started!.headers.prefer).toBe('respond-async')
  expect(await spent()).toBe(PRICE)
  expect(proxy.requests.filter(({ headers }) => headers.cookie !== undefined)).toEqual([])
})

test('a page of another site that sends its cookies along cannot read the answer, and nothing is taken', async () => {
  expect(await callFromPage('/api/run', { credentials: 'include' })).toEqual({
    error: 'TypeError: Failed to fetch',
  })
  // The preflight was not answered for credentials: the call itself was never sent.
  expect(sentTo('/api/run').map(({ method }) => method)).toEqual(['OPTIONS'])
})

test("a page of another site cannot call what takes a tenant's key or session", async () => {
  const { headers } = await service.onboard()
  for (const path of ['/api/keys', '/api/webhooks', '/api/session', '/api/policies'])
    expect(await callFromPage(path, { headers: { ...headers, 'content-type': 'application/json' } })).toEqual({
      error: 'TypeError: Failed to fetch',
    })
  expect(proxy.requests.filter(({ method }) => method !== 'OPTIONS')).toEqual([])
})

async function serveFolder(dist: string): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url === '/')
      return response
        .setHeader('content-type', 'text/html')
        .end('<!doctype html><title>Shop</title><script type="module" src="/bundle.js"></script>')
    try {
      return response.setHeader('content-type', 'text/javascript').end(readFileSync(join(dist, request.url!)))
    } catch {
      return response.writeHead(404).end()
    }
  })
  await new Promise<void>((listening) => server.listen(0, 'localhost', listening))
  return server
}
