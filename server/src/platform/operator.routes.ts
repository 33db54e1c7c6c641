import type { App } from './http-app.ts'
import { describeApi } from './http-openapi.ts'
import type { Metrics } from './metrics.ts'
import { type PreparedResponse, prepareResponse, sendPrepared } from './prepared-responses.ts'
import { formatMetrics, type Supervised } from './supervised.ts'

/** `/metrics` in Prometheus format, and the OpenAPI document of the running service. */
export function operatorRoutes(app: App, metrics: Metrics, supervised?: Supervised) {
  supervised?.onReadMetrics(() => metrics.registry.getMetricsAsJSON())
  const readProcesses = async () =>
    supervised ? formatMetrics(await supervised.collectMetrics()) : metrics.registry.metrics()
  app.get('/metrics', { config: { unmetered: true } }, async (_request, reply) => {
    const texts = await Promise.all([readProcesses(), metrics.databaseRegistry.metrics()])
    return reply.header('content-type', metrics.registry.contentType).send(texts.join('\n'))
  })
  let description: PreparedResponse | undefined
  app.get('/openapi.json', { config: { unmetered: true } }, async (request, reply) => {
    description ??= prepareResponse(JSON.stringify(describeApi(app)))
    return sendPrepared(request, reply, description)
  })
  app.prepareResponse('/openapi.json', { route: '/openapi.json', unmetered: true, find: () => description })
}
