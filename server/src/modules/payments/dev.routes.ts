import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { microFromUsdc, usdcFromMicro } from '../../platform/money.ts'
import { invalid } from '../../platform/problem.ts'
import type { Hex } from './facilitator.ts'

/** Only with the embedded chain: the faucet, the chain's JSON-RPC, and the facilitator API for other x402 servers. */
export type DevDeps = {
  /** Absent in production: there is no faucet there. */
  mint: ((to: Hex, amountMicro: bigint) => Promise<Hex>) | undefined
  rpc(body: unknown): Promise<unknown>
  facilitator: {
    verify(body: unknown): Promise<unknown>
    settle(body: unknown): Promise<unknown>
    supported(): Promise<unknown>
  }
  asset: Hex
  network: string
}

const MAX_USDC = 1_000_000

const FaucetRequest = Type.Object(
  {
    address: Type.String({ pattern: '^0x[0-9a-fA-F]{40}$' }),
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

export function devRoutes(app: App, deps: DevDeps) {
  if (deps.mint) faucetRoute(app, deps, deps.mint)
  chainRoutes(app, deps)
}

function faucetRoute(app: App, deps: DevDeps, mint: NonNullable<DevDeps['mint']>) {
  app.post(
    '/api/dev/faucet',
    {
      schema: {
        operationId: 'devFaucet',
        tags: ['Development'],
        summary: 'Test USDC on the embedded chain',
        body: FaucetRequest,
        response: { 200: FaucetResponse },
      },
      config: { unmetered: true },
    },
    async (request) => {
      const amountMicro = microFromUsdc(request.body.amount_usdc)
      if (amountMicro === undefined) throw invalid('amount_usdc has more than six decimals.')
      const transaction = await mint(request.body.address as Hex, amountMicro)
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
}

/** The other processes on this database reach the chain here, so it stays in production too. */
function chainRoutes(app: App, deps: DevDeps) {
  app.post(
    '/api/dev/rpc',
    {
      schema: {
        operationId: 'devRpc',
        tags: ['Development'],
        summary: 'JSON-RPC of the embedded chain',
        body: AnyJson,
        response: { 200: AnyJson },
      },
      config: { unmetered: true },
    },
    async (request, reply) =>
      reply.header('content-type', 'application/json').send(JSON.stringify(await deps.rpc(request.body))),
  )
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
        config: { unmetered: true },
      },
      async (request, reply) =>
        reply
          .header('content-type', 'application/json')
          .send(JSON.stringify(await deps.facilitator[name](request.body))),
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
      config: { unmetered: true },
    },
    async (_request, reply) =>
      reply.header('content-type', 'application/json').send(JSON.stringify(await deps.facilitator.supported())),
  )
}
