import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Somebody else's service on the loopback: answers with recorded shapes, or misbehaves as a test tells it to. */
export type Answer = {
  status?: number
  json?: unknown
  text?: string
  raw?: (request: IncomingMessage, response: ServerResponse) => void
}
export type Answerer = (asked: {
  method: string
  path: string
  query: URLSearchParams
  headers: IncomingMessage['headers']
  body: string
}) => Answer

export type Upstream = { url: string; asked: string[]; close(): Promise<void> }

export async function startUpstream(answer: Answerer): Promise<Upstream> {
  const asked: string[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += part
    const url = new URL(request.url!, 'http://upstream')
    asked.push(`${request.method} ${url.pathname}`)
    const { method = 'GET', headers } = request
    const given = answer({ method, path: url.pathname, query: url.searchParams, headers, body })
    if (given.raw) return given.raw(request, response)
    response.writeHead(given.status ?? 200, { 'content-type': 'application/json' })
    response.end(given.text ?? JSON.stringify(given.json))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

/** Speaks JSON-RPC in batches for a function that answers single calls. */
export function answerRpc(body: string, call: (method: string, params: unknown[]) => unknown): Answer {
  const batch = JSON.parse(body) as { id: number; method: string; params: unknown[] }[]
  return { json: batch.map(({ id, method, params }) => ({ jsonrpc: '2.0', id, result: call(method, params) })) }
}
