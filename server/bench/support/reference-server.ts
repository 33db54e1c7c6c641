/**
 * The bare reference: x402's own resource server on node:http with x402's own facilitator in the same process, which
 * sends one transaction at a time, on an EVM of its own that keeps nothing. It does no work and keeps no books.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { x402Facilitator } from '@x402/core/facilitator'
import { type HTTPAdapter, x402HTTPResourceServer, x402ResourceServer } from '@x402/core/server'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { generatePrivateKey } from 'viem/accounts'
import { createChainReader } from '../../src/adapters/chain/chain-reader.ts'
import { USDC } from '../../src/adapters/chain/edr.ts'
import { createEmbeddedChain } from '../../src/adapters/chain/embedded-chain.ts'
import type { Hex } from '../../src/modules/payments/facilitator.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createMemoryJournal } from '../../test/contract/memory-journal.ts'
import { NETWORK, PAY_TO } from '../../test/contract/payments.ts'
import { createReferenceSigner } from '../../test/contract/reference-facilitator.ts'
import { answerParent } from './child.ts'

type Start = { payers: Hex[]; usdc: number; priceMicro: string; body: string }
type ReadBalance = { balanceOfPayTo: true }

const chain = await createEmbeddedChain({
  journal: createMemoryJournal(),
  clock: systemClock,
  log: { info() {}, warn() {} },
})

answerParent(async (message: Start | ReadBalance) =>
  'payers' in message ? start(message) : `${await createChainReader(chain).balanceOf(USDC, PAY_TO)}`,
)

async function start({ payers, usdc, priceMicro, body }: Start) {
  for (const payer of payers) await chain.mint(payer, BigInt(usdc) * 1_000_000n)
  const facilitator = new x402Facilitator().register(
    NETWORK,
    new FacilitatorScheme(createReferenceSigner(chain.request, generatePrivateKey())),
  )
  const resourceServer = new x402ResourceServer({
    verify: (payload, requirements) => facilitator.verify(payload, requirements),
    settle: (payload, requirements) => facilitator.settle(payload, requirements),
    getSupported: async () => facilitator.getSupported() as never,
  }).register(NETWORK, new ServerScheme())
  const http = new x402HTTPResourceServer(resourceServer, {
    'POST /api/run': {
      accepts: {
        scheme: 'exact',
        network: NETWORK,
        payTo: PAY_TO,
        price: { asset: USDC, amount: priceMicro, extra: { name: 'USD Coin', version: '2' } },
        maxTimeoutSeconds: 300,
      },
      description: 'A run',
      mimeType: 'application/json',
    },
  })
  await http.initialize()
  const server = createServer((request, response) => {
    respond(http, request, response, body).catch((error: Error) =>
      send(response, 500, {}, error.stack ?? String(error)),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port }
}

async function respond(
  http: x402HTTPResourceServer,
  request: IncomingMessage,
  response: ServerResponse,
  body: string,
): Promise<void> {
  const requestBody: unknown = JSON.parse(await readText(request))
  const header = (name: string) => request.headers[name.toLowerCase()] as string | undefined
  const adapter: HTTPAdapter = {
    getHeader: header,
    getMethod: () => request.method!,
    getPath: () => request.url!,
    getUrl: () => `http://${request.headers.host}${request.url}`,
    getAcceptHeader: () => header('accept') ?? '',
    getUserAgent: () => header('user-agent') ?? '',
    getBody: () => requestBody,
  }
  const context = { adapter, path: request.url!, method: request.method!, paymentHeader: header('payment-signature') }
  const result = await http.processHTTPRequest(context)
  if (result.type === 'payment-error') {
    const { status, headers, body: problem } = result.response
    return send(response, status, headers, JSON.stringify(problem ?? {}))
  }
  if (result.type !== 'payment-verified') return send(response, 404, {}, '{}')
  const settlement = await http.processSettlement(
    result.paymentPayload,
    result.paymentRequirements,
    result.declaredExtensions,
    { request: context, responseBody: Buffer.from(body) },
  )
  if (!settlement.success)
    return send(response, 402, settlement.headers, JSON.stringify({ error: settlement.errorReason }))
  send(response, 200, settlement.headers, body)
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function send(response: ServerResponse, status: number, headers: Record<string, string>, body: string) {
  response
    .writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body)
}
