import type { FastifyRequest } from 'fastify'
import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse } from '../../platform/stored-response.ts'
import { readAmount } from './amounts.ts'
import type { Escrow } from './escrow.ts'
import * as schema from './ledger.schema.ts'
import type { Ledger } from './ledger.ts'
import type { Payouts } from './payouts.ts'
import type { Wallets } from './wallets.ts'

export type LedgerRoutesDeps = { ledger: Ledger; wallets: Wallets; escrow: Escrow; payouts: Payouts }

const reads = { auth: 'tenant', scope: 'read' } as const
const writes = { auth: 'tenant', scope: 'control' } as const
const operates = { auth: 'admin' } as const
const params = schema.IdParams

export function ledgerRoutes(app: App, deps: LedgerRoutesDeps) {
  app.get(
    '/api/ledger',
    {
      schema: {
        operationId: 'getLedger',
        tags: ['Observability'],
        summary: "The tenant's double-entry ledger, newest first, with running balances",
        querystring: schema.LedgerQuery,
        response: { 200: schema.LedgerResponse },
      },
      config: reads,
    },
    async (request) => deps.ledger.read(requireTenant(request.caller), request.query),
  )
  walletRoutes(app, deps)
  escrowRoutes(app, deps.escrow)
  payoutRoutes(app, deps.payouts)
}

function walletRoutes(app: App, { wallets, escrow }: LedgerRoutesDeps) {
  const tags = ['Wallets']
  app.get(
    '/api/wallets',
    {
      schema: {
        operationId: 'listWallets',
        tags,
        summary: "The tenant's wallets, newest first",
        querystring: schema.WalletsQuery,
        response: { 200: schema.WalletsResponse },
      },
      config: reads,
    },
    async (request) => wallets.list(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/wallets',
    {
      schema: {
        operationId: 'createWallet',
        tags,
        summary: 'Open a wallet',
        body: schema.WalletCreate,
        response: { 201: schema.Wallet, 409: ErrorResponse },
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(reply, await wallets.create(requireTenant(request.caller), keyOf(request), request.body)),
  )
  app.get(
    '/api/wallets/:id',
    {
      schema: {
        operationId: 'getWallet',
        tags,
        summary: 'One wallet with its balances',
        params,
        response: { 200: schema.Wallet },
      },
      config: reads,
    },
    async (request) => wallets.get(requireTenant(request.caller), request.params.id),
  )
  app.get(
    '/api/wallets/:id/escrow',
    {
      schema: {
        operationId: 'listEscrows',
        tags,
        summary: 'What a wallet has put in escrow, newest first',
        params,
        querystring: schema.EscrowsQuery,
        response: { 200: schema.EscrowsResponse },
      },
      config: reads,
    },
    async (request) => escrow.list(requireTenant(request.caller), request.params.id, request.query),
  )
  app.post(
    '/api/wallets/:id/escrow',
    {
      schema: {
        operationId: 'holdEscrow',
        tags,
        summary: 'Put money of a wallet in escrow',
        description:
          'The sender can release it, the receiver can refund it, and either can dispute it; an undisputed escrow is refunded at `expires_at`.',
        params,
        body: schema.EscrowCreate,
        response: { 201: schema.Escrow, 409: ErrorResponse },
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await escrow.hold(requireTenant(request.caller), request.params.id, keyOf(request), request.body, {
          ...request.body,
          amountMicro: readAmount(request.body),
        }),
      ),
  )
}

function escrowRoutes(app: App, escrow: Escrow) {
  const tags = ['Wallets']
  const ended = { 200: schema.Escrow, 409: ErrorResponse, 410: ErrorResponse }
  app.get(
    '/api/escrow',
    {
      schema: {
        operationId: 'listTenantEscrows',
        tags,
        summary: 'The escrows of the tenant on either side, newest first',
        querystring: schema.TenantEscrowsQuery,
        response: { 200: schema.EscrowsResponse },
      },
      config: reads,
    },
    async (request) => escrow.listAll(requireTenant(request.caller), request.query),
  )
  app.get(
    '/api/escrow/:id',
    {
      schema: {
        operationId: 'getEscrow',
        tags,
        summary: 'One escrow, for either side of it',
        params,
        response: { 200: schema.Escrow },
      },
      config: reads,
    },
    async (request) => escrow.get(requireTenant(request.caller), request.params.id),
  )
  app.post(
    '/api/escrow/:id/release',
    {
      schema: {
        operationId: 'releaseEscrow',
        tags,
        summary: 'Give the money to whom it was held for',
        params,
        body: schema.EscrowEnd,
        response: ended,
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await escrow.release(requireTenant(request.caller), request.params.id, keyOf(request), request.body),
      ),
  )
  app.post(
    '/api/escrow/:id/refund',
    {
      schema: {
        operationId: 'refundEscrow',
        tags,
        summary: 'Give the money back',
        params,
        body: schema.EscrowEnd,
        response: ended,
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await escrow.refund(requireTenant(request.caller), request.params.id, keyOf(request), request.body),
      ),
  )
  app.post(
    '/api/escrow/:id/dispute',
    {
      schema: {
        operationId: 'disputeEscrow',
        tags,
        summary: 'Stop the clock until the other side gives way or the operator decides',
        params,
        body: schema.EscrowDispute,
        response: ended,
      },
      config: writes,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await escrow.dispute(requireTenant(request.caller), request.params.id, keyOf(request), request.body),
      ),
  )
  app.post(
    '/api/admin/escrow/:id/resolve',
    {
      schema: {
        operationId: 'resolveEscrow',
        tags: ['Admin'],
        summary: 'Decide a disputed escrow',
        params,
        body: schema.EscrowResolve,
        response: { 200: schema.Escrow, 409: ErrorResponse },
      },
      config: operates,
    },
    async (request, reply) =>
      sendStoredResponse(
        reply,
        await escrow.resolve(
          request.params.id,
          keyOf(request),
          request.body as { outcome: 'release' | 'refund'; reason: string },
        ),
      ),
  )
}

function payoutRoutes(app: App, payouts: Payouts) {
  const tags = ['Admin']
  app.post(
    '/api/admin/wallets/:id/withdraw',
    {
      schema: {
        operationId: 'withdraw',
        tags,
        summary: 'Pay money of a wallet out to an address',
        description:
          'The amount is set aside at once. Where the key of PAY_TO_ADDRESS is at hand (the embedded chain, or FACILITATOR_PRIVATE_KEY with CHAIN_RPC_URL) it is transferred on the chain, exactly once; elsewhere the payout waits as `manual` until an operator confirms the transaction that paid it.',
        params,
        body: schema.WithdrawRequest,
        response: { 201: schema.Payout, 409: ErrorResponse },
      },
      config: operates,
    },
    async (request, reply) => {
      const { to } = request.body
      return sendStoredResponse(
        reply,
        await payouts.withdraw(request.params.id, keyOf(request), request.body, {
          to,
          amountMicro: readAmount(request.body),
        }),
      )
    },
  )
  app.get(
    '/api/admin/payouts',
    {
      schema: {
        operationId: 'listPayouts',
        tags,
        summary: 'Withdrawals and refunds, newest first',
        querystring: schema.PayoutsQuery,
        response: { 200: schema.PayoutsResponse },
      },
      config: operates,
    },
    async (request) => payouts.list(request.query),
  )
  app.get(
    '/api/admin/payouts/:id',
    {
      schema: { operationId: 'getPayout', tags, summary: 'One payout', params, response: { 200: schema.Payout } },
      config: operates,
    },
    async (request) => payouts.get(request.params.id),
  )
  app.post(
    '/api/admin/payouts/:id/confirm',
    {
      schema: {
        operationId: 'confirmPayout',
        tags,
        summary: 'Say in which transaction a manual payout was made',
        params,
        body: schema.PayoutConfirm,
        response: { 200: schema.Payout, 409: ErrorResponse },
      },
      config: operates,
    },
    async (request) => payouts.confirm(request.params.id, request.body),
  )
  app.post(
    '/api/admin/payouts/:id/cancel',
    {
      schema: {
        operationId: 'cancelPayout',
        tags,
        summary: 'Cancel an unpaid manual withdrawal',
        params,
        body: schema.PayoutCancel,
        response: { 200: schema.Payout, 409: ErrorResponse },
      },
      config: operates,
    },
    async (request) => payouts.cancel(request.params.id),
  )
}

const keyOf = (request: FastifyRequest) => readIdempotencyKey(request.headers['idempotency-key'], request.body)
