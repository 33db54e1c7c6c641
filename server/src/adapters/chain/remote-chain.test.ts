import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { generatePrivateKey } from 'viem/accounts'
import { afterEach, expect, test } from 'vitest'
import { createTestClock } from '../../../test/clock.ts'
import { createMemoryJournal } from '../../../test/contract/memory-journal.ts'
import { createPayer, createTerms, NETWORK, signPayment } from '../../../test/contract/payments.ts'
import { createLocalFacilitator } from '../facilitators/local-facilitator.ts'
import { createChainReader } from './chain-reader.ts'
import { USDC } from './edr.ts'
import { createEmbeddedChain } from './embedded-chain.ts'
import { createPublicRpc } from './public-rpc.ts'
import { createRemoteChain } from './remote-chain.ts'
import { ChainUnreachable, RpcError } from './rpc.ts'

const closers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

async function serve(listener: RequestListener) {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a second process settles on the chain that the first process owns', async () => {
  const clock = createTestClock()
  const chain = await createEmbeddedChain({ journal: createMemoryJournal(), clock, log: { info() {}, warn() {} } })
  closers.push(chain.close)
  const rpc = createPublicRpc(chain.request)
  const url = await serve(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    response.end(JSON.stringify(await rpc(JSON.parse(Buffer.concat(chunks).toString()))))
  })
  const remote = createRemoteChain({ url })
  const privateKeys = [generatePrivateKey()]
  const facilitator = createLocalFacilitator({ ...remote, network: NETWORK, asset: USDC, privateKeys, clock })
  const payer = createPayer()
  await chain.mint(payer.address, 50_000n)
  const terms = createTerms()
  const payment = await signPayment(payer, terms, { clock })
  expect(await facilitator.verify(payment, terms)).toMatchObject({ valid: true })
  const settled = await facilitator.settle(payment, terms)
  expect(settled).toMatchObject({ state: 'settled' })
  for (const reader of [createChainReader(chain), createChainReader(remote)]) {
    expect(await reader.balanceOf(USDC, payer.address)).toBe(40_000n)
    expect(await reader.authorization(USDC, payer.address, payment.authorization.nonce)).toMatchObject({ used: true })
  }
  await expect(remote.request('evm_mine')).rejects.toBeInstanceOf(RpcError)
})

test('an error returned by the node is distinguished from a missing or unusable response', async () => {
  const responses: Record<string, [number, string]> = {
    error: [200, '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"nonce too low"}}'],
    'error under 400': [400, '{"error":{"code":3,"message":"execution reverted","data":"0x"}}'],
    page: [502, '<html></html>'],
    status: [503, '{"message":"busy"}'],
    nothing: [200, '{"jsonrpc":"2.0","id":1}'],
    text: [200, '"text"'],
  }
  const url = await serve((request, response) => {
    const [status, body] = responses[decodeURIComponent(request.url!.slice(1))]!
    response.writeHead(status).end(body)
  })
  const request = (path: string) =>
    createRemoteChain({ url: `${url}/${encodeURIComponent(path)}` }).request('eth_chainId')
  await expect(request('error')).rejects.toMatchObject({ name: 'RpcError', code: -32000, message: 'nonce too low' })
  await expect(request('error under 400')).rejects.toMatchObject({ name: 'RpcError', code: 3 })
  for (const unusable of ['page', 'status', 'nothing', 'text'])
    await expect(request(unusable)).rejects.toBeInstanceOf(ChainUnreachable)
  const silentUrl = await serve(() => undefined)
  await expect(createRemoteChain({ url: silentUrl, timeoutMs: 100 }).request('eth_chainId')).rejects.toBeInstanceOf(
    ChainUnreachable,
  )
})
