import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { Settlement, SettlementsQuery, SettlementsResponse, SettleRequest } from './payments.schema.ts'
import type { SettlementsService } from './settlements.ts'

export function paymentsRoutes(app: App, settlements: SettlementsService) {
  app.post(
    '/api/settle',
    {
      schema: {
        operationId: 'settle',
        tags: ['Settlement'],
        summary: 'Drive an unfinished settlement',
        description:
          'Queries the chain and submits the payment again when it is unused. A finished settlement is returned unchanged.',
        body: SettleRequest,
        response: { 200: Settlement, 404: ErrorResponse, 409: ErrorResponse },
      },
      config: { auth: 'optional', scope: 'run', slow: true },
    },
    async (request) => settlements.settle(request.caller, request.body),
  )
  app.get(
    '/api/settle/:id',
    {
      schema: {
        operationId: 'getSettlement',
        tags: ['Settlement'],
        summary: 'One settlement',
        params: Type.Object({ id: Type.String() }),
        response: { 200: Settlement },
      },
      config: { auth: 'optional', scope: 'read' },
    },
    async (request) => settlements.get(request.caller, request.params.id),
  )
  app.get(
    '/api/settlements',
    {
      schema: {
        operationId: 'listSettlements',
        tags: ['Settlement'],
        summary: 'Settlement records of the tenant; guests get an empty list',
        querystring: SettlementsQuery,
        response: { 200: SettlementsResponse },
      },
      config: { auth: 'optional', scope: 'read' },
    },
    async (request) => settlements.list(request.caller, request.query),
  )
}
