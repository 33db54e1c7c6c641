import type { SendRequest } from '../modules/mcp/call-operation.ts'
import { mcpRoutes } from '../modules/mcp/mcp.routes.ts'
import { createMcp } from '../modules/mcp/mcp.ts'
import type { Operation } from '../modules/mcp/tools.ts'
import type { Authenticate } from '../platform/auth-context.ts'
import type { App } from '../platform/http-app.ts'
import { describeApi } from '../platform/http-openapi.ts'
import type { AppContext } from './context.ts'

/** Remembers the routes by operation id; called before any is registered. */
export function indexOperations(app: App): Map<string, Operation> {
  const operations = new Map<string, Operation>()
  app.addHook('onRoute', ({ method, url, schema = {}, config = {} }) => {
    const { operationId } = schema as { operationId?: string }
    if (operationId !== undefined && typeof method === 'string' && method !== 'HEAD')
      operations.set(operationId, { method, url, schema, config })
  })
  return operations
}

/** MCP calls the API of this process from within, with the address, key and payment of its client. */
export function composeMcp(
  { clock, config, publicUrl }: AppContext,
  parts: { app: App; operations: Map<string, Operation>; authenticate: Authenticate },
) {
  const { app, operations, authenticate } = parts
  const send: SendRequest = async ({ method, path, headers, body, address }) => {
    const response = await app.inject({
      method: method as 'GET',
      url: path,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      remoteAddress: address,
      ...(body !== undefined && { payload: JSON.stringify(body) }),
    })
    const isJson = String(response.headers['content-type']).startsWith('application/json')
    return {
      status: response.statusCode,
      headers: response.headers as Record<string, string | undefined>,
      body: isJson ? JSON.parse(response.body) : { message: response.body },
    }
  }
  let version: string | undefined
  const readVersion = () => {
    version ??= (describeApi(app) as { info: { version: string } }).info.version
    return version
  }
  const mcp = createMcp({ operations, send, clock, version: readVersion, publicUrl })
  mcpRoutes(app, {
    mcp,
    authenticate,
    publicUrl,
    keyPerMinute: config.RATE_LIMIT_KEY_PER_MINUTE,
  })
  return { tools: mcp.tools }
}
