import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import type { Analytics } from './analytics.ts'
import type { ControlTower } from './control-tower.ts'
import * as schema from './insights.schema.ts'

export function insightsRoutes(
  app: App,
  { analytics, controlTower }: { analytics: Analytics; controlTower: ControlTower },
) {
  app.get(
    '/api/analytics',
    {
      schema: {
        operationId: 'getAnalytics',
        tags: ['Observability'],
        summary: "The tenant's runs, spend, cost and latency over a window",
        description:
          'Counts and sums are exact at every moment; latencies come from a histogram whose steps are a tenth wide.',
        querystring: schema.AnalyticsQuery,
        response: { 200: schema.AnalyticsResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => analytics.read(requireTenant(request.caller), request.query.window ?? '7d'),
  )
  app.get(
    '/api/control-tower',
    {
      schema: {
        operationId: 'getControlTower',
        tags: ['Control'],
        summary: 'Current activity, pending decisions and risks',
        response: { 200: schema.ControlTowerResponse },
      },
      config: { auth: 'tenant', scope: 'read' },
    },
    async (request) => controlTower.view(requireTenant(request.caller)),
  )
  app.post(
    '/api/control-tower',
    {
      schema: {
        operationId: 'steerAgent',
        tags: ['Control'],
        summary: 'Freeze an agent everywhere at once, or let it go on',
        description: 'A freeze needs a reason. Freezing twice is the same as once; so is unfreezing.',
        body: schema.ControlTowerAction,
        response: { 200: schema.ControlTowerResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => controlTower.applyAction(requireTenant(request.caller), request.body),
  )
}
