import type { App } from '../../platform/http.ts'
import {
  DidResponse,
  JwksResponse,
  ReceiptParams,
  ReceiptRecord,
  ReceiptsQuery,
  ReceiptsResponse,
} from './receipts.schema.ts'
import type { Receipts } from './receipts.ts'

export function receiptsRoutes(app: App, receipts: Receipts) {
  app.get(
    '/api/receipts',
    {
      schema: {
        operationId: 'listReceipts',
        tags: ['Receipts'],
        summary: 'Public receipts, newest first',
        description: 'Heads of audit chains are listed only when asked for by kind.',
        querystring: ReceiptsQuery,
        response: { 200: ReceiptsResponse },
      },
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
        tags: ['Receipts'],
        summary: 'One receipt',
        params: ReceiptParams,
        response: { 200: ReceiptRecord },
      },
    },
    async (request) => receipts.get(request.params.id),
  )
  app.get(
    '/.well-known/jwks.json',
    {
      schema: {
        operationId: 'getJwks',
        tags: ['Receipts'],
        summary: 'Every public key that ever signed',
        response: { 200: JwksResponse },
      },
    },
    async () => receipts.jwks(),
  )
  app.get(
    '/.well-known/did.json',
    {
      schema: {
        operationId: 'getDidDocument',
        tags: ['Receipts'],
        summary: 'The keys as a did:web document',
        response: { 200: DidResponse },
      },
    },
    async () => receipts.did(),
  )
}
