import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from '../../platform/http-app.ts'
import { describeNonJsonResponse } from '../../platform/http-openapi.ts'
import { createPreparedJson, JSON_TYPE, prepareResponse, sendPrepared } from '../../platform/prepared-responses.ts'
import { agentCard } from './agent-card.ts'
import type { DiscoveryDeps } from './discovery.ts'
import { llmsFullText, llmsText, robotsText, securityText } from './text-documents.ts'
import { listResources, MAX_RESOURCES, wellKnownX402 } from './x402-resources.ts'

const open = (description: string) => Type.Object({}, { additionalProperties: true, description })
const filterText = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 100, description }))

const ResourcesQuery = Type.Object(
  {
    type: filterText('`http` or `mcp`.'),
    payTo: filterText('The address that is paid.'),
    scheme: filterText('The payment scheme, for example `exact`.'),
    network: filterText('The network, for example `eip155:8453`.'),
    extensions: filterText('An extension that the resource has, for example `bazaar`.'),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_RESOURCES })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  },
  { additionalProperties: false },
)

const ResourcesResponse = Type.Object(
  {
    x402Version: Type.Literal(2),
    items: Type.Array(open('A resource with its payment requirements and how it is called.')),
    pagination: Type.Object({ limit: Type.Integer(), offset: Type.Integer(), total: Type.Integer() }),
  },
  { title: 'DiscoveryResources' },
)

const config = { evidence: true }
/** Clients may keep a document that long; prices in it are for orientation, the 402 has the one that counts. */
const CACHE = 'public, max-age=60'
/** security.txt has a date of expiry. */
const MAX_AGE_MS = 86_400_000
const TEXT_TYPE = 'text/plain; charset=utf-8'

/** What crawlers, indexes and agents read to find the service, made from the routes and the price list. */
export function discoveryRoutes(app: App, deps: DiscoveryDeps) {
  const prepare = (build: () => unknown) =>
    createPreparedJson({ clock: deps.clock, source: deps.lanes, build, maxAgeMs: MAX_AGE_MS })
  const serveJson = (path: string, operationId: string, summary: string, build: () => unknown) => {
    const document = prepare(build)
    app.get(
      path,
      { schema: { operationId, tags: ['Discovery'], summary, response: { 200: open(summary) } }, config },
      async (request, reply) => send(request, reply, await document.read(JSON.stringify), JSON_TYPE),
    )
  }
  const serveText = (path: string, operationId: string, summary: string, build: () => string) => {
    const document = prepare(build)
    app.get(
      path,
      {
        schema: {
          operationId,
          tags: ['Discovery'],
          summary,
          response: { 200: describeNonJsonResponse('text/plain', summary) },
        },
        config,
      },
      async (request, reply) => send(request, reply, await document.read(String), TEXT_TYPE),
    )
  }
  const send = (
    request: FastifyRequest,
    reply: FastifyReply,
    response: ReturnType<typeof prepareResponse>,
    contentType: string,
  ) => sendPrepared(request, reply.header('cache-control', CACHE), response, contentType)

  serveJson('/.well-known/x402', 'getX402Discovery', 'The resources that can be paid for by x402', () =>
    wellKnownX402(deps),
  )
  serveJson('/.well-known/agent-card.json', 'getAgentCard', 'The A2A agent card', () => agentCard(deps))
  app.get(
    '/discovery/resources',
    {
      schema: {
        operationId: 'listDiscoveryResources',
        tags: ['Discovery'],
        summary: 'The paid resources with terms and input, as the discovery API of x402 facilitators',
        querystring: ResourcesQuery,
        response: { 200: ResourcesResponse },
      },
      config,
    },
    async (request, reply) =>
      send(request, reply, prepareResponse(JSON.stringify(listResources(deps, request.query))), JSON_TYPE),
  )
  serveText('/llms.txt', 'getLlmsText', 'What a language model needs to use the service', () => llmsText(deps))
  serveText('/llms-full.txt', 'getLlmsFullText', 'The same with every operation and its fields', () =>
    llmsFullText(deps),
  )
  serveText('/robots.txt', 'getRobotsText', 'What crawlers may read', robotsText)
  serveText('/.well-known/security.txt', 'getSecurityText', 'Whom to tell about a vulnerability', () =>
    securityText(deps),
  )
}
