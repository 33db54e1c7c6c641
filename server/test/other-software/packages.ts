/**
 * Software of other people, unmodified, installed from npm on demand into a temporary folder: none of it is in the lockfile.
 * Each script makes one paid call, or what its software is for, and prints one line of JSON: `{ status, body, … }`.
 */
export type ForeignSoftware = {
  name: string
  packages: string[]
  /** A module that runs beside the installed packages, with URL, KEY (a funded EVM key) and ADDRESS in its environment. */
  script: string
}

const request = `
const url = process.env.URL + '/api/run'
const body = { task: 'Tell me a joke about clocks.', agent_id: 'comedian-v1' }
const init = { method: 'POST', headers: { 'content-type': 'application/json', 'idempotency-key': 'key-' + process.pid }, body: JSON.stringify(body) }
const print = async (response) => console.log('RESULT ' + JSON.stringify({ status: response.status, body: await response.json() }))
`
const account = `
import { privateKeyToAccount } from 'viem/accounts'
const account = privateKeyToAccount(process.env.KEY)
`

export const clients: ForeignSoftware[] = [
  {
    name: '@x402/fetch 2.27.0',
    packages: ['@x402/fetch@2.27.0', '@x402/evm@2.27.0', 'viem@2.57.0'],
    script: `${account}
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { ExactEvmScheme } from '@x402/evm'
${request}
const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }] })
await print(await pay(url, init))`,
  },
  {
    name: '@x402/axios 2.11.0',
    packages: ['@x402/axios@2.11.0', '@x402/evm@2.11.0', 'axios@1.21.1', 'viem@2.57.0'],
    script: `${account}
import axios from 'axios'
import { wrapAxiosWithPaymentFromConfig } from '@x402/axios'
import { ExactEvmScheme } from '@x402/evm'
${request}
const api = wrapAxiosWithPaymentFromConfig(axios.create(), { schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }] })
const { status, data } = await api.post(url, body, { headers: init.headers })
console.log('RESULT ' + JSON.stringify({ status, body: data }))`,
  },
  {
    name: 'x402-fetch 1.2.0 (version 1)',
    packages: ['x402-fetch@1.2.0', 'viem@2.57.0'],
    script: `${account}
import { wrapFetchWithPayment } from 'x402-fetch'
import { createWalletClient, http } from 'viem'
import { base } from 'viem/chains'
${request}
const wallet = createWalletClient({ account, chain: base, transport: http(process.env.URL + '/api/dev/rpc') })
await print(await wrapFetchWithPayment(fetch, wallet)(url, init))`,
  },
  {
    name: 'x402-axios 0.7.2 (version 1)',
    packages: ['x402-axios@0.7.2', 'axios@1.21.1', 'viem@2.57.0'],
    script: `${account}
import axios from 'axios'
import { withPaymentInterceptor } from 'x402-axios'
import { createWalletClient, http } from 'viem'
import { base } from 'viem/chains'
${request}
const wallet = createWalletClient({ account, chain: base, transport: http(process.env.URL + '/api/dev/rpc') })
const { status, data } = await withPaymentInterceptor(axios.create(), wallet).post(url, body, { headers: init.headers })
console.log('RESULT ' + JSON.stringify({ status, body: data }))`,
  },
  {
    name: '@dexterai/x402 2.0.0',
    packages: ['@dexterai/x402@2.0.0', 'viem@2.57.0'],
    script: `
import { wrapFetch, createEvmKeypairWallet } from '@dexterai/x402/client'
${request}
const pay = wrapFetch(fetch, { evmPrivateKey: process.env.KEY, preferredNetwork: 'eip155:8453', rpcUrls: { 'eip155:8453': process.env.URL + '/api/dev/rpc' } })
await print(await pay(url, init))`,
  },
  {
    name: '@faremeter/fetch 0.22.0',
    packages: ['@faremeter/fetch@0.22.0', '@faremeter/payment-evm@0.22.0', '@faremeter/wallet-evm@0.22.0'],
    script: `
import { wrap } from '@faremeter/fetch'
import { createPaymentHandler } from '@faremeter/payment-evm/exact'
import { createLocalWallet } from '@faremeter/wallet-evm'
${request}
const wallet = await createLocalWallet({ id: 8453, name: 'Base' }, process.env.KEY)
await print(await wrap(fetch, { handlers: [createPaymentHandler(wallet)] })(url, init))`,
  },
  {
    name: '@lucid-agents/payments 2.5.0',
    packages: ['@lucid-agents/payments@2.5.0'],
    // It is made for Bun: its store of payments imports bun:sqlite, which this script does not use.
    script: `
import { registerHooks } from 'node:module'
registerHooks({ resolve: (name, context, next) => name.startsWith('bun:') ? { url: 'data:text/javascript,export class Database {}', shortCircuit: true } : next(name, context) })
const { accountFromPrivateKey, createX402Fetch } = await import('@lucid-agents/payments')
${request}
const pay = createX402Fetch({ account: accountFromPrivateKey(process.env.KEY) })
await print(await pay(url, init))`,
  },
  {
    name: '@coinbase/agentkit 0.10.4, x402 action',
    packages: ['@coinbase/agentkit@0.10.4', 'viem@2.57.0'],
    // It reports its use to its maker, which fails without a way to the internet and is not part of the action.
    script: `${account}
process.on('unhandledRejection', (error) => { if (error?.cause?.hostname !== 'cca-lite.coinbase.com') throw error })
import { ViemWalletProvider, x402ActionProvider } from '@coinbase/agentkit'
import { createWalletClient, http } from 'viem'
import { base } from 'viem/chains'
${request}
const wallet = new ViemWalletProvider(createWalletClient({ account, chain: base, transport: http(process.env.URL + '/api/dev/rpc') }))
const provider = x402ActionProvider({ registeredServices: [process.env.URL], allowDynamicServiceRegistration: true, maxPaymentUsdc: 1 })
const answer = await provider.makeHttpRequestWithX402(wallet, { url, method: 'POST', headers: null, queryParams: null, body })
const parsed = JSON.parse(answer)
console.log('RESULT ' + JSON.stringify({ status: parsed.status ?? (parsed.success ? 200 : 0), body: parsed.data ?? parsed }))`,
  },
]

/** Sellers of other people on our facilitator: a paid route of theirs, paid by the official client. */
const seller = (serve: string) => `${account}
import { wrapFetchWithPaymentFromConfig } from '@x402/fetch'
import { ExactEvmScheme } from '@x402/evm'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { HTTPFacilitatorClient } from '@x402/core/server'
const facilitator = new HTTPFacilitatorClient({ url: process.env.URL + '/facilitator' })
const routes = { 'GET /joke': { accepts: [{ scheme: 'exact', price: '$0.02', network: 'eip155:8453', payTo: process.env.PAY_TO }], description: 'A joke' } }
${serve}
const pay = wrapFetchWithPaymentFromConfig(fetch, { schemes: [{ network: 'eip155:8453', client: new ExactEvmScheme(account) }] })
const response = await pay('http://127.0.0.1:' + port + '/joke')
console.log('RESULT ' + JSON.stringify({ status: response.status, body: await response.json() }))
process.exit(0)`

export const sellers: ForeignSoftware[] = [
  {
    name: '@x402/express 2.27.0 on our facilitator',
    packages: [
      '@x402/express@2.27.0',
      '@x402/fetch@2.27.0',
      '@x402/evm@2.27.0',
      '@x402/core@2.27.0',
      'express@5.1.0',
      'viem@2.57.0',
    ],
    script: seller(`
import express from 'express'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
const app = express()
app.use(paymentMiddleware(routes, new x402ResourceServer(facilitator).register('eip155:8453', new ServerScheme())))
app.get('/joke', (_request, response) => response.json({ joke: 'A clock that lost its face.' }))
const port = await new Promise((done) => { const server = app.listen(0, '127.0.0.1', () => done(server.address().port)) })`),
  },
  {
    name: '@x402/hono 2.27.0 on our facilitator',
    packages: [
      '@x402/hono@2.27.0',
      '@x402/fetch@2.27.0',
      '@x402/evm@2.27.0',
      '@x402/core@2.27.0',
      'hono@4.10.0',
      '@hono/node-server@1.19.0',
      'viem@2.57.0',
    ],
    script: seller(`
import { Hono } from 'hono'
import { serve } from '@hono/node-server'
import { paymentMiddleware, x402ResourceServer } from '@x402/hono'
const app = new Hono()
app.use(paymentMiddleware(routes, new x402ResourceServer(facilitator).register('eip155:8453', new ServerScheme())))
app.get('/joke', (context) => context.json({ joke: 'A clock that lost its face.' }))
const port = await new Promise((done) => serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, (info) => done(info.port)))`),
  },
]

/** Reads our OpenAPI document and probes our paid calls. */
export const discovery: ForeignSoftware = {
  name: '@agentcash/discovery 1.7.5',
  packages: ['@agentcash/discovery@1.7.5'],
  script: `
import { checkL2ForOpenAPI, checkL4ForOpenAPI, discoverOriginSchema, getL3, getOpenAPI, getProbe, getWarningsForL2, getWarningsForL3, getWarningsForL4, getWarningsForOpenAPI } from '@agentcash/discovery'
const origin = process.env.URL
const found = await discoverOriginSchema({ target: origin })
const openApi = (await getOpenAPI(origin))._unsafeUnwrap()
const l2 = checkL2ForOpenAPI(openApi)
const warnings = [...getWarningsForOpenAPI(openApi), ...getWarningsForL2(l2), ...getWarningsForL4(checkL4ForOpenAPI(openApi))]
for (const path of ['/api/run', '/api/loop'])
  warnings.push(...getWarningsForL3(getL3(openApi, (await getProbe(origin + path))._unsafeUnwrap(), path, 'POST')))
const modes = Object.fromEntries(l2.routes.map(({ method, path, authMode }) => [method + ' ' + path, authMode ?? null]))
console.log('RESULT ' + JSON.stringify({ status: found.found ? 200 : 404, body: { warnings, modes } }))`,
}
