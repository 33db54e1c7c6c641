import { createRequire } from 'node:module'
import { ProtocolError, Server, type ServerContext } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'

const REVISION = '2026-07-28'
/** A run may take two minutes and some time to settle. */
const REQUEST_TIMEOUT_MS = 180_000
const MAX_MESSAGE_BYTES = 256 * 1024

const forwardedMethods = [
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/templates/list',
  'resources/read',
] as const

/** The Model Context Protocol over stdin and stdout, for hosts that start their servers as processes. */
export function serveMcp(serviceUrl: string, apiKey: string | undefined) {
  const endpoint = new URL('mcp', serviceUrl.endsWith('/') ? serviceUrl : `${serviceUrl}/`)
  const headers: Record<string, string> = apiKey ? { 'x-api-key': apiKey } : {}
  serveStdio(() => createServer((method, params) => send(endpoint, headers, method, params)), {
    maxSubscriptions: 0,
    transport: new StdioServerTransport(undefined, undefined, { maxBufferSize: MAX_MESSAGE_BYTES }),
    onerror: (error) => console.error(error.message),
  })
}

type Params = Record<string, unknown>
type SendRequest = (method: string, params: Params) => Promise<Params>

/** Every request is passed on to the service as it is, and its answer returned, so that there is one set of tools and rules. */
function createServer(sendRequest: SendRequest): Server {
  const { version } = createRequire(import.meta.url)('countersign/package.json') as { version: string }
  const server = new Server(
    { name: 'countersign', title: 'Countersign', version },
    { capabilities: { tools: {}, resources: {} } },
  )
  for (const method of forwardedMethods)
    server.setRequestHandler(
      method,
      ({ params }, { mcpReq }) =>
        // biome-ignore lint/suspicious/noExplicitAny: the answer has the type that the service gave it
        sendRequest(method, { ...params, ...answersToQuestions(mcpReq), _meta: envelope(server, mcpReq) }) as any,
    )
  return server
}

/** What a person answered when the service asked for input. */
const answersToQuestions = ({ inputResponses, requestState }: ServerContext['mcpReq']) => ({
  ...(inputResponses && { inputResponses }),
  ...(requestState() !== undefined && { requestState: requestState() }),
})

/** A payment in `_meta` is passed on. Clients of the revision before say once what they can do, those of this one each time. */
const envelope = (server: Server, { _meta, envelope: given }: ServerContext['mcpReq']) => ({
  ..._meta,
  'io.modelcontextprotocol/clientInfo': server.getClientVersion() ?? { name: 'unknown', version: '0' },
  'io.modelcontextprotocol/clientCapabilities': server.getClientCapabilities() ?? {},
  ...given,
  'io.modelcontextprotocol/protocolVersion': REVISION,
})

async function send(endpoint: URL, headers: Record<string, string>, method: string, params: Params): Promise<Params> {
  const name = params.name ?? params.uri
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': REVISION,
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': encodeHeaderText(name) }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    redirect: 'error',
    signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
  }).catch((error: Error) => {
    throw new Error(`${endpoint.href} cannot be reached: ${error.message}`)
  })
  const answer = (await response.json().catch(() => ({}))) as {
    result?: Params
    error?: { code: number; message: string; data?: unknown }
    message?: string
  }
  if (answer.result) return answer.result
  if (typeof answer.error === 'object')
    throw new ProtocolError(answer.error.code, answer.error.message, answer.error.data)
  throw new Error(answer.message ?? `${endpoint.href} answered ${response.status}.`)
}

/** Header values are ASCII; anything else is marked as base64, as the protocol has it. */
const encodeHeaderText = (text: string) =>
  /^[\x21-\x7e]+$/.test(text) ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
