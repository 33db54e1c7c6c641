import type { App } from './http-app.ts'
import { describeApi } from './http-openapi.ts'
import type { Metrics } from './metrics.ts'

/** `/metrics` in Prometheus format, and the OpenAPI document of the running service. */
export function operatorRoutes(app: App, metrics: Metrics) {
  app.get('/metrics', { config: { unmetered: true } }, async (_request, reply) =>
    reply.header('content-type', metrics.registry.contentType).send(await metrics.registry.metrics()),
  )
  let description: string | undefined
  app.get('/openapi.json', { config: { unmetered: true } }, async (_request, reply) => {
    description ??= JSON.stringify(describeApi(app))
    return reply.header('content-type', 'application/json; charset=utf-8').send(description)
  })
}
