import { requireTenant } from '../../../platform/auth-context.ts'
import type { App } from '../../../platform/http-app.ts'
import * as schema from './decisions.schema.ts'
import type { Decisions, DecisionsQuery } from './decisions.ts'

const tags = ['Control']

export function decisionsRoutes(app: App, decisions: Decisions) {
  app.get(
    '/api/decisions',
    {
      schema: {
        operationId: 'listDecisions',
        tags,
        summary: 'Refused and review-required requests with their reasons, newest first',
        querystring: schema.DecisionsQuery,
        response: { 200: schema.DecisionsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => decisions.list(requireTenant(request.caller), request.query as DecisionsQuery),
  )
  app.get(
    '/api/decisions/:id',
    {
      schema: {
        operationId: 'getDecision',
        tags,
        summary: 'Why one thing was refused, rule by rule',
        params: schema.DecisionParams,
        response: { 200: schema.Decision },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => decisions.get(requireTenant(request.caller), request.params.id),
  )
}
