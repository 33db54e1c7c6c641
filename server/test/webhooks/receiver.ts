import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type ReceivedRequest = {
  headers: Record<string, string>
  body: string
  json: { type: string; seq: number; data: unknown }
}
export type Receiver = Awaited<ReturnType<typeof openReceiver>>

/** A webhook receiver that records requests; it responds 200 unless `respond` is given. */
export async function openReceiver(
  respond: (received: ReceivedRequest, response: ServerResponse, request: IncomingMessage) => void = (
    _received,
    response,
  ) => response.end(),
  port = 0,
) {
  const received: ReceivedRequest[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const entry = {
      headers: request.headers as Record<string, string>,
      body,
      json: body ? JSON.parse(body) : undefined,
    }
    received.push(entry)
    respond(entry, response, request)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address() as AddressInfo
  return {
    received,
    port: address.port,
    url: `http://127.0.0.1:${address.port}/hook`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
