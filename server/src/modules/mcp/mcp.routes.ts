import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { type Authenticate, type Caller, guest } from '../../platform/auth-context.ts'
import type { App } from '../../platform/http-app.ts'
import { forbidden, invalid, Problem, unauthorized } from '../../platform/problem.ts'
import { asObject } from '../../platform/x402-wire.ts'
import type { Mcp, McpClient } from './mcp.ts'

export type McpRoutesDeps = {
  mcp: Mcp
  authenticate: Authenticate
  publicUrl: () => string
  keyPerMinute: number
}

/** The Model Context Protocol over streamable HTTP: one request, one answer, nothing kept between them. */
export function mcpRoutes(app: App, { mcp, authenticate, publicUrl, keyPerMinute }: McpRoutesDeps) {
  // Loaded with the first request, so that a service nobody speaks MCP to starts without it.
  let handler: Promise<McpHttpHandler> | undefined
  const loadHandler = () => {
    handler ??= import('@modelcontextprotocol/server').then((sdk) =>
      sdk.createMcpHandler(
        (context) => mcp.createServer(sdk, context, context.authInfo!.extra!.client as McpClient),
        // Nothing is pushed to clients, so no stream is kept open for them.
        { maxSubscriptions: 0 },
      ),
    )
    return handler
  }

  const findCaller = async (request: FastifyRequest, apiKey: string | undefined): Promise<Caller> => {
    if (apiKey === undefined) return guest
    const caller = await authenticate.key(apiKey)
    if (caller) return caller
    await request.countAddress()
    throw unauthorized('This API key is not valid.')
  }

  // Without a rate limit or a place in the queue of its own: a tool call is counted and queued as the HTTP call that it makes.
  app.post('/mcp', { config: { unmetered: true } }, async (request, reply) => {
    requireOwnOrigin(request, publicUrl())
    const apiKey = readApiKey(request)
    const caller = await findCaller(request, apiKey)
    const message = asObject(request.body)
    if (!message || !mcp.isCountedByApi(message)) {
      if (caller.kind === 'tenant') await request.limitAs(`key:${caller.keyId}`, keyPerMinute)
      else await request.countAddress()
    }
    if (!message) throw invalid('Send one JSON-RPC message; batches are not part of this protocol any more.')

    const client: McpClient = { apiKey, caller, address: request.ip }
    const { fetch } = await loadHandler()
    const response = await fetch(toWebRequest(request, publicUrl()), {
      parsedBody: message,
      authInfo: { token: '', clientId: '', scopes: [], extra: { client } },
    })
    const body = Buffer.from(await response.arrayBuffer())
    reply.code(response.status).header('cache-control', 'no-store')
    const type = response.headers.get('content-type')
    return type === null ? reply.send() : reply.header('content-type', type).send(body)
  })
}

/** Pages of other origins are refused, so that a name that is pointed at this address (DNS rebinding) reaches nothing. */
function requireOwnOrigin({ headers: { origin } }: FastifyRequest, publicUrl: string) {
  if (origin !== undefined && origin !== new URL(publicUrl).origin)
    throw forbidden('Pages of another origin cannot use the MCP endpoint.')
}

/** Many MCP clients can only send a bearer token. */
function readApiKey({ headers }: FastifyRequest): string | undefined {
  const header = headers['x-api-key']
  const key = typeof header === 'string' ? header : undefined
  const { authorization } = headers
  if (authorization === undefined) return key
  const bearer = /^bearer +(\S+)$/i.exec(authorization)?.[1]
  if (bearer === undefined)
    throw new Problem('error', 'Send the API key as X-API-Key, or as Authorization: Bearer.', {
      status: 401,
      code: 'unauthorized',
    })
  if (key !== undefined && key !== bearer) throw invalid('X-API-Key and Authorization carry different keys; send one.')
  return bearer
}

const toWebRequest = ({ headers, raw }: FastifyRequest, publicUrl: string) =>
  new Request(new URL('/mcp', publicUrl), {
    method: raw.method!,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && name !== 'content-length' ? [[name, value] as [string, string]] : [],
    ),
  })
