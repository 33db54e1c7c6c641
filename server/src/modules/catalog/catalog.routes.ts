import { Type } from 'typebox'
import type { Clock } from '../../platform/clock.ts'
import type { App } from '../../platform/http-app.ts'
import { ErrorResponse } from '../../platform/http-openapi.ts'
import { microFromUsdc } from '../../platform/money.ts'
import { createPreparedJson, sendPrepared } from '../../platform/prepared-responses.ts'
import { invalid } from '../../platform/problem.ts'
import {
  AgentsResponse,
  CapabilitiesResponse,
  Lane,
  LaneCreate,
  LanesResponse,
  LaneUpdate,
  PricingSurfaceResponse,
  ProvidersQuery,
  ProvidersResponse,
} from './catalog.schema.ts'
import type { Catalog } from './catalog.ts'
import { capabilities, pricingSurface } from './pricing.ts'

const LaneParams = Type.Object({ agent_id: Type.String() })

/** How old the statistics of `/api/agents` may be. */
const AGENTS_MAX_AGE_MS = 1_000

export function catalogRoutes(app: App, catalog: Catalog, clock: Clock) {
  const pricing = createPreparedJson({
    clock,
    source: catalog.all,
    build: () => pricingSurface(catalog.version(), catalog.all(), catalog.fallback()),
  })
  const agents = createPreparedJson({
    clock,
    source: catalog.all,
    build: async () => ({ agents: await catalog.agents() }),
    maxAgeMs: AGENTS_MAX_AGE_MS,
  })
  app.get(
    '/api/capabilities',
    {
      schema: {
        operationId: 'getCapabilities',
        tags: ['Discovery'],
        summary: 'What the service offers',
        response: { 200: CapabilitiesResponse },
      },
    },
    async () => capabilities(),
  )
  app.get(
    '/api/pricing',
    {
      schema: {
        operationId: 'getPricing',
        tags: ['Discovery'],
        summary: 'Every lane with its price',
        response: { 200: PricingSurfaceResponse },
      },
    },
    async (request, reply) =>
      sendPrepared(request, reply, await pricing.read((value) => String(reply.serialize(value)))),
  )
  app.prepareResponse('/api/pricing', { route: '/api/pricing', find: pricing.find })
  app.get(
    '/api/providers',
    {
      schema: {
        operationId: 'listProviders',
        tags: ['Discovery'],
        summary: 'Providers with trust and pricing hints',
        querystring: ProvidersQuery,
        response: { 200: ProvidersResponse },
      },
    },
    async (request) => ({ providers: await catalog.providers(request.query) }),
  )
  app.get(
    '/api/agents',
    {
      schema: {
        operationId: 'listAgents',
        tags: ['Discovery'],
        summary: 'Agent lanes with live pricing and statistics',
        response: { 200: AgentsResponse },
      },
    },
    async (request, reply) =>
      sendPrepared(request, reply, await agents.read((value) => String(reply.serialize(value)))),
  )
  app.prepareResponse('/api/agents', { route: '/api/agents', find: agents.find })
  app.get(
    '/api/lanes',
    {
      schema: {
        operationId: 'listLanes',
        tags: ['Lanes'],
        summary: 'The read-only lane catalogue',
        response: { 200: LanesResponse },
      },
    },
    async () => ({ lanes: catalog.lanes() }),
  )
  app.get(
    '/api/lane',
    {
      schema: {
        operationId: 'manageLanes',
        tags: ['Lanes'],
        summary: 'Lanes under management',
        response: { 200: LanesResponse },
      },
    },
    async () => ({ lanes: catalog.lanes() }),
  )
  app.get(
    '/api/lane/:agent_id',
    {
      schema: {
        operationId: 'getLane',
        tags: ['Lanes'],
        summary: 'One lane',
        params: LaneParams,
        response: { 200: Lane },
      },
    },
    async (request) => catalog.lane(request.params.agent_id),
  )
  app.post(
    '/api/lane',
    {
      schema: {
        operationId: 'createLane',
        tags: ['Lanes'],
        summary: 'Add a lane',
        body: LaneCreate,
        response: { 201: Lane, 409: ErrorResponse },
      },
      config: { auth: 'admin' },
    },
    async (request, reply) => {
      const { base_price_usdc, ...lane } = request.body
      const defaults = {
        description: lane.display_name,
        tier: 'standard',
        recommended_use: lane.display_name,
        estimated_cost_usd: 0,
      }
      reply.code(201)
      return catalog.createLane({ ...defaults, ...lane, base_price_micro: parsePriceMicro(base_price_usdc) })
    },
  )
  app.patch(
    '/api/lane/:agent_id',
    {
      schema: {
        operationId: 'updateLane',
        tags: ['Lanes'],
        summary: 'Change price, model or status of a lane',
        params: LaneParams,
        body: LaneUpdate,
        response: { 200: Lane },
      },
      config: { auth: 'admin' },
    },
    async (request) => {
      const { base_price_usdc, ...change } = request.body
      const price = base_price_usdc === undefined ? {} : { base_price_micro: parsePriceMicro(base_price_usdc) }
      return catalog.updateLane(request.params.agent_id, { ...change, ...price })
    },
  )
}

function parsePriceMicro(usdc: number): number {
  const micro = microFromUsdc(usdc)
  if (micro === undefined) throw invalid('base_price_usdc has more than six decimals.')
  return Number(micro)
}
