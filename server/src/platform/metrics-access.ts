import { createHash, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Metrics } from './metrics.ts'
import { formatMetrics, type Supervised } from './supervised.ts'

/** Who may read the metrics, and where. */
export type MetricsAccess = {
  /** `Authorization: Bearer <token>` is required when it is set. */
  token: string | undefined
  /** Metrics are served on a port of their own when it is set, and not with the API. */
  port: number | undefined
  isProduction: boolean
}

/** In production metrics are not public: without a token the port of the API does not have them. */
export const areServedWithApi = ({ token, port, isProduction }: MetricsAccess) =>
  port === undefined && (token !== undefined || !isProduction)

export function isMetricsReader(token: string | undefined, authorization: string | undefined): boolean {
  if (token === undefined) return true
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`))
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** The metrics of all processes in Prometheus format. Requests that come while they are collected share the result. */
export function createMetricsReader(metrics: Metrics, supervised?: Supervised): () => Promise<string> {
  supervised?.onReadMetrics(() => metrics.registry.getMetricsAsJSON())
  const readProcesses = async () =>
    supervised ? formatMetrics(await supervised.collectMetrics()) : metrics.registry.metrics()
  let current: Promise<string> | undefined
  return () => {
    current ??= Promise.all([readProcesses(), metrics.databaseRegistry.metrics()])
      .then((texts) => texts.join('\n'))
      .finally(() => {
        current = undefined
      })
    return current
  }
}

/** Serves `GET /metrics` and nothing else. With `serve --workers` all processes share the port, and each knows the metrics of all. */
export async function serveMetrics(options: {
  host: string
  port: number
  token: string | undefined
  contentType: string
  read: () => Promise<string>
}): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: 10_000 }, async (request, reply) => {
    if (request.method !== 'GET' || request.url !== '/metrics') return void reply.writeHead(404).end()
    if (!isMetricsReader(options.token, request.headers.authorization)) return void reply.writeHead(401).end()
    try {
      const text = await options.read()
      reply.writeHead(200, { 'content-type': options.contentType, 'cache-control': 'no-store' }).end(text)
    } catch {
      reply.writeHead(503).end()
    }
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://${options.host}:${port}/metrics`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
