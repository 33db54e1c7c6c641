import { requireTenant } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import * as schema from './control-tower.schema.ts'
import type { ControlTower } from './control-tower.ts'
import type { createTowerStreams } from './tower-stream.ts'

const tags = ['Control']
const reads = { auth: 'tenant', scope: 'read' } as const

export function controlTowerRoutes(
  app: App,
  controlTower: ControlTower,
  streams: ReturnType<typeof createTowerStreams>,
) {
  app.addHook('preClose', async () => streams.endAll())

  app.get(
    '/api/control-tower/stream',
    {
      // A HEAD response has no body, so its stream would stay open without sending anything.
      exposeHeadRoute: false,
      schema: {
        operationId: 'streamChanges',
        tags,
        summary: 'Which topics of the tenant changed, as server-sent events',
        description:
          'An event named `ready` once changes are noticed: read everything then, and again after every new connection. Afterwards events named `change`, within a second, whose data names the topics to read again and nothing else. `pulse` every ten seconds; after a quarter of an hour the stream ends and is opened anew. At most 20 a tenant and process.',
        response: {
          200: {
            description: 'Events until the connection ends; the schema is that of the data of a `change`.',
            content: { 'text/event-stream': { schema: schema.TowerChange } },
          },
        },
      },
      config: { ...reads, uncounted: true },
    },
    async (request, reply) => streams.open(reply, requireTenant(request.caller).tenantId),
  )
  app.get(
    '/api/control-tower',
    {
      schema: {
        operationId: 'getControlTower',
        tags,
        summary: 'Current activity, pending decisions and risks',
        response: { 200: schema.ControlTowerResponse },
      },
      config: reads,
    },
    async (request) => controlTower.view(requireTenant(request.caller)),
  )
  app.post(
    '/api/control-tower',
    {
      schema: {
        operationId: 'steerAgent',
        tags,
        summary: 'Freeze an agent everywhere at once, or let it go on',
        description: 'A freeze needs a reason. Freezing twice is the same as once; so is unfreezing.',
        body: schema.ControlTowerAction,
        response: { 200: schema.ControlTowerResponse },
      },
      config: { auth: 'tenant', scope: 'control' },
    },
    async (request) => controlTower.applyAction(requireTenant(request.caller), request.body),
  )
  app.get(
    '/api/control-tower/budgets',
    {
      schema: {
        operationId: 'listBudgetOutlooks',
        tags,
        summary: 'Every budget with a window, what is left of it, and a forecast with its interval',
        querystring: schema.OutlooksQuery,
        response: { 200: schema.OutlooksResponse },
      },
      config: reads,
    },
    async (request) => controlTower.listOutlooks(requireTenant(request.caller), request.query),
  )
  app.get(
    '/api/control-tower/self-approved',
    {
      schema: {
        operationId: 'listSelfApproved',
        tags,
        summary: 'What was decided by the identity that had asked for it, newest first',
        querystring: schema.SelfApprovedQuery,
        response: { 200: schema.SelfApprovedResponse },
      },
      config: reads,
    },
    async (request) => controlTower.listSelfApproved(requireTenant(request.caller), request.query),
  )
  app.get(
    '/api/control-tower/agents',
    {
      schema: {
        operationId: 'listSeenAgents',
        tags,
        summary: 'Agents and spenders that can be frozen: those seen last, and the lanes',
        description:
          'At most 200 names of the newest activity, of mandates and of keys; other names can be frozen, too.',
        response: { 200: schema.SeenNamesResponse },
      },
      config: reads,
    },
    async (request) => controlTower.listNames(requireTenant(request.caller)),
  )
}
