import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { readIdempotencyKey } from '../../platform/idempotency.ts'
import { sendStoredResponse, withNoStore } from '../../platform/stored-response.ts'
import * as schema from './alerts.schema.ts'
import type { Alerts } from './alerts.ts'

export function alertsRoutes(app: App, alerts: Alerts) {
  const tags = ['Predictive alerts']
  app.get(
    '/api/predictive/alerts',
    {
      schema: {
        operationId: 'listAlerts',
        tags,
        summary: 'Alerts, newest first',
        description: 'A feature of the plans builder and above; 403 on others.',
        querystring: schema.AlertsQuery,
        response: { 200: schema.AlertsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => alerts.list(requireTenant(request.caller), request.query),
  )
  app.post(
    '/api/predictive/alerts',
    {
      schema: {
        operationId: 'createAlert',
        tags,
        summary: 'Write an alert of your own',
        body: schema.AlertCreate,
        response: { 201: schema.Alert, 409: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request, reply) => {
      const key = readIdempotencyKey(request.headers['idempotency-key'], request.body)
      return sendStoredResponse(
        reply,
        withNoStore(await alerts.create(requireTenant(request.caller), key, request.body)),
      )
    },
  )
  app.patch(
    '/api/predictive/alerts',
    {
      schema: {
        operationId: 'readAlert',
        tags,
        summary: 'Mark an alert as read',
        body: schema.AlertRead,
        response: { 200: schema.Alert, 404: ErrorResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => alerts.markRead(requireTenant(request.caller), request.body.id),
  )
}
