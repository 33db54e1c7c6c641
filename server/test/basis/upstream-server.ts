import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A third-party service on the loopback address: replies in its recorded format, or fails as a test demands. */
export type UpstreamReply = {
  status?: number
  json?: unknown
  text?: string
  raw?: (request: IncomingMessage, response: ServerResponse) => void
}
export type UpstreamHandler = (request: {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  body: string
}) => UpstreamReply

export type Upstream = {
  url: string
  /** `METHOD /path` of every request so far. */
  requests: string[]
  close(): Promise<void>
}

export async function startUpstream(handle: UpstreamHandler): Promise<Upstream> {
  const requests: string[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const url = new URL(request.url!, 'http://upstream')
    requests.push(`${request.method} ${url.pathname}`)
    const { method = 'GET', headers } = request
    const reply = handle({ method, path: url.pathname, query: url.searchParams, headers, body })
    if (reply.raw) return reply.raw(request, response)
    response.writeHead(reply.status ?? 200, { 'content-type': 'application/json' })
    response.end(reply.text ?? JSON.stringify(reply.json))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Replies to a JSON-RPC batch with the result of `call` for each entry. */
export function replyToRpcBatch(body: string, call: (method: string, params: unknown[]) => unknown): UpstreamReply {
  const batch = JSON.parse(body) as { id: number; method: string; params: unknown[] }[]
  return { json: batch.map(({ id, method, params }) => ({ jsonrpc: '2.0', id, result: call(method, params) })) }
}
