import { Type } from 'typebox'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { hashBody, readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse } from '../../platform/stored-response.ts'
import { amountFields, readAmount } from '../ledger/ledger.ts'
import { paymentInfo, readPayment } from '../payments/x402.ts'
import { hashRequest } from './paid-request.ts'
import type { RunResponse } from './paid-unit.ts'
import { GovernanceRefusal, PaymentRequiredResponse, RunFailure, TopUpResponse } from './runs.schema.ts'
import type { TopUpRequest } from './top-up.ts'

/** The limit of `amountFields`. */
const MAX_TOP_UP_MICRO = 1_000_000_000_000n

const TopUpBody = Type.Object(
  { ...amountFields, idempotency_key: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })) },
  { title: 'TopUpRequest', additionalProperties: false },
)

export function topUpRoutes(app: App, topUp: (request: TopUpRequest) => Promise<RunResponse>) {
  app.post(
    '/api/wallets/:id/topup',
    {
      schema: {
        operationId: 'topUpWallet',
        tags: ['Wallets'],
        summary: 'Pay USDC into a wallet by x402',
        description:
          'Itself a paid call: without payment the answer is 402 for the amount; with it, the money is in the wallet when the answer is 200. Unmodified x402 clients pay up to their own cap in one call (1 USDC unless set otherwise).',
        params: Type.Object({ id: Type.String({ minLength: 1, maxLength: 80 }) }),
        body: TopUpBody,
        response: { 200: TopUpResponse, 402: PaymentRequiredResponse, 409: GovernanceRefusal, 500: RunFailure },
        ...paymentInfo({ minMicro: 1n, maxMicro: MAX_TOP_UP_MICRO }),
      },
      config: { auth: 'tenant', scope: 'run', paid: true, slow: true },
    },
    async (request, reply) => {
      const route = `/api/wallets/${request.params.id}/topup`
      const answer = await topUp({
        route,
        caller: requireTenant(request.caller),
        walletId: request.params.id,
        amountMicro: readAmount(request.body),
        requestHash: hashRequest(route, request.body),
        bodyHash: hashBody(request.body),
        idempotencyKey: readIdempotencyKey(request.headers['idempotency-key'], request.body),
        paid: readPayment(request.headers),
        requestId: request.id,
      })
      return sendStoredResponse(reply, answer)
    },
  )
}
