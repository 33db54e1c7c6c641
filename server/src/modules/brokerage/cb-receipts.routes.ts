import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import * as schema from './brokerage.schema.ts'
import type { Brokerage } from './brokerage.ts'

/** `/api/cb/receipts`: trades at Coinbase and its paper stand-in, for the operator. */
export function cbReceiptsRoutes(app: App, brokerage: Brokerage) {
  app.get(
    '/api/cb/receipts',
    {
      schema: {
        operationId: 'listCbReceipts',
        tags: ['Admin'],
        summary: 'Trade receipts of the Coinbase integration, or its account snapshot',
        querystring: schema.CbReceiptsQuery,
        response: { 200: Type.Union([Type.Array(schema.RhReceipt), Type.Array(schema.CbAccount)]) },
      },
      config: { auth: 'admin' },
    },
    async (request, reply) => {
      const { status, type, limit = 50 } = request.query
      const rows =
        type === 'accounts'
          ? await brokerage.listCoinbaseAccounts(limit)
          : await brokerage.listCoinbaseReceipts(status, limit)
      return reply.header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(rows))
    },
  )
}
