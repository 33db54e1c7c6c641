import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid, unavailable } from '../../platform/problem.ts'
import { pattern } from '../../platform/schema.ts'
import type { Hex } from './facilitator.ts'

/** Only with the embedded chain and not in production: the faucet and the chain's JSON-RPC. */
export type DevelopmentDeps = {
  mint(to: Hex, amountMicro: bigint): Promise<Hex>
  rpc(body: unknown): Promise<unknown>
  asset: Hex
  network: string
}

/** Only with the embedded chain: the facilitator API for other x402 servers. */
export type FacilitatorApi = {
  verify(body: unknown): Promise<unknown>
  settle(body: unknown): Promise<unknown>
  supported(): Promise<unknown>
}

export const FAUCET_PATH = '/api/dev/faucet'
const MAX_USDC = 1_000_000
const MAX_BATCH = 50

const FaucetRequest = Type.Object(
  {
    address: Type.String(pattern('^0x[0-9a-fA-F]{40}$', "an address: '0x' and 40 hexadecimal digits")),
    amount_usdc: Type.Number({ exclusiveMinimum: 0, maximum: MAX_USDC }),
  },
  { title: 'FaucetRequest', additionalProperties: false },
)
const FaucetResponse = Type.Object(
  {
    address: Type.String(),
    amount: Type.String(),
    amount_usdc: Type.Number(),
    asset: Type.String(),
    network: Type.String(),
    transaction: Type.String(),
  },
  { title: 'FaucetResponse' },
)
const AnyJson = Type.Unknown()

export function developmentRoutes(app: App, deps: DevelopmentDeps) {
  app.post(
    FAUCET_PATH,
    {
      schema: {
        operationId: 'devFaucet',
        tags: ['Development'],
        summary: 'Test USDC on the embedded chain',
        body: FaucetRequest,
        response: { 200: FaucetResponse },
      },
    },
    async (request) => {
      const amountMicro = microFromUsdc(request.body.amount_usdc)
      if (amountMicro === undefined) throw invalid('amount_usdc has more than six decimals.')
      // The token does not mint to it.
      if (BigInt(request.body.address) === 0n) throw invalid('body/address must not be the zero address.')
      const transaction = await deps.mint(request.body.address as Hex, amountMicro).catch((cause: unknown) => {
        throw unavailable('The development chain did not mint; try again in a moment.', 1, cause)
      })
      return {
        address: request.body.address,
        amount: amountMicro.toString(),
        amount_usdc: usdcFromMicro(amountMicro),
        asset: deps.asset,
        network: deps.network,
        transaction,
      }
    },
  )
  app.post(
    '/api/dev/rpc',
    {
      schema: {
        operationId: 'devRpc',
        tags: ['Development'],
        summary: 'JSON-RPC of the embedded chain',
        description:
          'One request or a batch of at most 50, each of which counts against the limit of the address. Unless limits are off, gas is bounded, eth_getLogs takes at most 2,000 blocks, and calls that take long wait for their turn (error -32005). Not in production.',
        body: AnyJson,
        response: { 200: AnyJson },
      },
    },
    async (request, reply) => {
      if (Array.isArray(request.body)) await countBatch(request, request.body.length)
      return reply.header('content-type', 'application/json').send(JSON.stringify(await deps.rpc(request.body)))
    },
  )
}

/** Each request of a batch counts; the first one was counted with the HTTP request. */
async function countBatch(request: FastifyRequest, size: number) {
  for (let index = 1; index < Math.min(size, MAX_BATCH); index++) await request.countAddress({ again: true })
}

export function facilitatorRoutes(app: App, facilitator: FacilitatorApi) {
  const facilitatorRoute = (name: 'verify' | 'settle') =>
    app.post(
      `/facilitator/${name}`,
      {
        schema: {
          operationId: `facilitator_${name}`,
          tags: ['Facilitator'],
          summary: `x402 facilitator: ${name}`,
          body: AnyJson,
          response: { 200: AnyJson },
        },
      },
      async (request, reply) =>
        reply.header('content-type', 'application/json').send(JSON.stringify(await facilitator[name](request.body))),
    )
  facilitatorRoute('verify')
  facilitatorRoute('settle')
  app.get(
    '/facilitator/supported',
    {
      schema: {
        operationId: 'facilitator_supported',
        tags: ['Facilitator'],
        summary: 'x402 facilitator: what it settles',
        response: { 200: AnyJson },
      },
    },
    async (_request, reply) =>
      reply.header('content-type', 'application/json').send(JSON.stringify(await facilitator.supported())),
  )
}
