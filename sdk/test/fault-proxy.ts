import { createServer, type IncomingMessage, type ServerResponse, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * What the proxy does with one request. `…-before`: the service does not see it; `…-after`: the service has answered, and
 * the client does not see the answer.
 */
export type Fault =
  | 'none'
  | 'drop-before'
  | 'drop-after'
  | 'cut-after'
  | '503-before'
  | '503-after'
  | { delayMs: number }
  | { status: number; headers?: Record<string, string>; body: unknown }
  | { rewrite: (body: string, headers: Record<string, unknown>) => string }

export type ProxiedRequest = {
  method: string
  path: string
  body: string
  headers: IncomingMessage['headers']
  /** Whether it carries an x402 payment. */
  paid: boolean
}

const UNAVAILABLE = JSON.stringify({ error: 'error', code: 'unavailable', message: 'Try again.', retryable: true })

/** A proxy in front of a real service that loses, delays or changes answers as `chooseFault` says. */
export async function startFaultProxy(target: string) {
  const requests: ProxiedRequest[] = []
  let chooseFault: (request: ProxiedRequest, index: number) => Fault | Promise<Fault> = () => 'none'
  let upstream = new URL(target)

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const proxied: ProxiedRequest = {
      method: request.method!,
      path: request.url!,
      body: Buffer.concat(chunks).toString(),
      headers: request.headers,
      paid: request.headers['payment-signature'] !== undefined,
    }
    requests.push(proxied)
    const fault = await chooseFault(proxied, requests.length - 1)
    if (fault === 'drop-before') return void request.socket.destroy()
    if (fault === '503-before') return void answer(response, 503, { 'retry-after': '0' }, UNAVAILABLE)
    if (typeof fault === 'object' && 'status' in fault)
      return void answer(response, fault.status, fault.headers ?? {}, JSON.stringify(fault.body))
    if (typeof fault === 'object' && 'delayMs' in fault) await new Promise((go) => setTimeout(go, fault.delayMs))
    forward(upstream, proxied).then(
      ({ status, headers, body }) => {
        if (fault === 'drop-after') return void request.socket.destroy()
        if (fault === '503-after') return answer(response, 503, { 'retry-after': '0' }, UNAVAILABLE)
        if (fault === 'cut-after') {
          response.writeHead(status, { ...headers, 'content-length': String(Buffer.byteLength(body)) })
          response.write(body.slice(0, body.length / 2), () => request.socket.destroy())
          return
        }
        const text = typeof fault === 'object' && 'rewrite' in fault ? fault.rewrite(body, headers) : body
        answer(response, status, headers, text)
      },
      // The service is down: so is the connection.
      () => request.socket.destroy(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    setFault(next: typeof chooseFault) {
      requests.length = 0
      chooseFault = next
    },
    setTarget(url: string) {
      upstream = new URL(url)
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export type FaultProxy = Awaited<ReturnType<typeof startFaultProxy>>

const HOP_HEADERS = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host']

function answer(response: ServerResponse, status: number, headers: Record<string, unknown>, body: string) {
  // Node takes the time of its own from elsewhere, where a test that changes the clock does not reach.
  const date = headers['x-test-date'] ?? new Date().toUTCString()
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers, date: String(date) } as Record<string, string>)
    .end(body)
}

function forward(upstream: URL, { method, path, body, headers }: ProxiedRequest) {
  const forwarded = Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_HEADERS.includes(name)))
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const outgoing = sendRequest(
      {
        host: upstream.hostname,
        port: upstream.port,
        method,
        path,
        agent: false,
        headers: { ...forwarded, host: upstream.host, 'content-length': Buffer.byteLength(body) },
      },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () => {
          const kept = Object.entries(incoming.headers).filter(([name]) => !HOP_HEADERS.includes(name))
          const text = Buffer.concat(chunks).toString()
          resolve({ status: incoming.statusCode!, headers: Object.fromEntries(kept), body: text })
        })
      },
    )
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
