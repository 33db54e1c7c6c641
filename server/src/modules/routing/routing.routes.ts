import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { Problem } from '../../platform/problem.ts'
import type { RouteAdvice, RouteBody } from './route-advice.ts'
import {
  RouteIntentRequest,
  RouteRequest,
  RouteResponse,
  RoutingIntelRequest,
  RoutingIntelResponse,
} from './routing.schema.ts'

export function routingRoutes(app: App, advice: RouteAdvice) {
  app.post(
    '/api/route',
    {
      schema: {
        operationId: 'route',
        tags: ['Routing'],
        summary: 'Which lane a run would take, at what price, and why',
        description:
          'Free. The same input and routing_version always give the same lane, with the words that decided it and why not the others. `constraints.priority` chooses among lanes that suit the task: by price, by measured latency or by verified success rate. The quote is a signed promise that POST /api/run honours.',
        body: RouteRequest,
        response: { 200: RouteResponse },
      },
      config: { auth: 'optional' },
    },
    async (request) => advice.adviseRoute(request.caller, request.body as RouteBody),
  )
  app.post(
    '/api/routing-intel',
    {
      schema: {
        operationId: 'routingIntel',
        tags: ['Routing'],
        summary: 'Recommended lane, estimated cost and routing posture of a task',
        body: RoutingIntelRequest,
        response: { 200: RoutingIntelResponse },
      },
    },
    async (request) => advice.adviseLane(request.body.task),
  )
  app.post(
    '/api/route-intent',
    {
      schema: {
        operationId: 'routeIntent',
        tags: ['Routing'],
        summary: 'Planned: actions routed to outside providers',
        body: RouteIntentRequest,
        response: { 501: ErrorResponse },
      },
    },
    async () => {
      throw new Problem(
        'error',
        'Routed actions are planned and not offered yet. GET /api/pricing describes them under routed_actions.',
        { status: 501, code: 'planned', nextAction: '/api/pricing#routed_actions' },
      )
    },
  )
}
