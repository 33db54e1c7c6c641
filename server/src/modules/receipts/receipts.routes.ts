import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { logRoutes } from './log.routes.ts'
import {
  DidResponse,
  JwksResponse,
  ProofQuery,
  ProofResponse,
  Receipt,
  ReceiptParams,
  ReceiptsQuery,
  ReceiptsResponse,
  VerifyRequest,
  VerifyResponse,
} from './receipts.schema.ts'
import type { Receipts } from './receipts.ts'

const tags = ['Receipts']

export function receiptsRoutes(app: App, receipts: Receipts) {
  logRoutes(app, receipts.log)
  app.get(
    '/api/receipts',
    {
      schema: {
        operationId: 'listReceipts',
        tags,
        summary: 'Public receipts, newest first',
        description: 'Heads of audit chains are listed only when asked for by kind.',
        querystring: ReceiptsQuery,
        response: { 200: ReceiptsResponse },
      },
      config: { evidence: true },
    },
    async (request) => {
      const { limit, cursor, ...filter } = request.query
      return receipts.list(filter, { limit, cursor })
    },
  )
  app.get(
    '/api/receipts/:id',
    {
      schema: {
        operationId: 'getReceipt',
        tags,
        summary: 'One receipt',
        params: ReceiptParams,
        response: { 200: Receipt },
      },
      config: { evidence: true },
    },
    async (request) => receipts.get(request.params.id),
  )
  app.get(
    '/api/receipts/:id/proof',
    {
      schema: {
        operationId: 'getReceiptProof',
        tags,
        summary: 'Proof that a receipt is in the public log',
        params: ReceiptParams,
        description:
          'With `format=tlog-proof` it is a file of [C2SP tlog-proof](https://c2sp.org/tlog-proof): the receipt, its inclusion ' +
          'and the checkpoint with its cosignatures, which verifies offline against a policy alone.',
        querystring: ProofQuery,
        response: {
          200: {
            description: 'The proof.',
            content: {
              'application/json': { schema: ProofResponse },
              'text/plain': { schema: Type.String({ description: 'A C2SP tlog-proof file.' }) },
            },
          },
        },
      },
      config: { evidence: true },
    },
    async (request, reply) => {
      const { format, ...options } = request.query
      if (format !== 'tlog-proof') return receipts.proof(request.params.id, options)
      const file = await receipts.proofFile(request.params.id, options)
      reply
        .type('text/plain; charset=utf-8')
        .header('content-disposition', `attachment; filename="${request.params.id}.tlog-proof"`)
      return file as never
    },
  )
  app.post(
    '/api/receipts/verify',
    {
      schema: {
        operationId: 'verifyReceipt',
        tags,
        summary: 'Check a receipt and explain every check',
        description:
          'Anyone can do the same without us: the package that checks is public, and needs the key set alone. ' +
          'A receipt that does not hold is a 200 with `ok: false`.',
        body: VerifyRequest,
        response: { 200: VerifyResponse, 404: ErrorResponse },
      },
    },
    async (request) => receipts.verify(request.body),
  )
  app.get(
    '/.well-known/jwks.json',
    {
      schema: {
        operationId: 'getJwks',
        tags,
        summary: 'Every public key that ever signed',
        response: { 200: JwksResponse },
      },
      config: { evidence: true },
    },
    async () => receipts.jwks(),
  )
  app.get(
    '/.well-known/did.json',
    {
      schema: {
        operationId: 'getDidDocument',
        tags,
        summary: 'The keys as a did:web document',
        response: { 200: DidResponse },
      },
      config: { evidence: true },
    },
    async () => receipts.did(),
  )
}
