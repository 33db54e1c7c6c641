import type { App } from './http-app.ts'
import { describeApi } from './http-openapi.ts'
import type { Metrics } from './metrics.ts'
import { areServedWithApi, isMetricsReader, type MetricsAccess } from './metrics-access.ts'
import { compressResponse, type PreparedResponse, prepareResponse, sendPrepared } from './prepared-responses.ts'
import { unauthorized } from './problem.ts'

/** `/metrics` in Prometheus format, and the OpenAPI document of the running service. */
export function operatorRoutes(app: App, metrics: Metrics, readMetrics: () => Promise<string>, access: MetricsAccess) {
  if (areServedWithApi(access))
    // A scraper with the token is not limited; without a token anybody may read, as often as any anonymous caller.
    app.get('/metrics', { config: { unmetered: access.token !== undefined } }, async (request, reply) => {
      if (!isMetricsReader(access.token, request.headers.authorization)) {
        await request.countAddress()
        throw unauthorized('The metrics take the METRICS_TOKEN as Authorization: Bearer.')
      }
      reply.header('content-type', metrics.registry.contentType).header('cache-control', 'no-store')
      return reply.send(await readMetrics())
    })

  let description: PreparedResponse | undefined
  let preparation: Promise<PreparedResponse> | undefined
  const prepareDescription = () => {
    preparation ??= compressResponse(prepareResponse(JSON.stringify(describeApi(app)))).then((response) => {
      description = response
      return response
    })
    return preparation
  }
  // Once the service listens, so that its start does not wait and the first caller does not either.
  app.addHook('onListen', async () => void setImmediate(() => prepareDescription().catch(() => {})))
  app.get('/openapi.json', async (request, reply) => sendPrepared(request, reply, await prepareDescription()))
  app.prepareResponse('/openapi.json', { route: '/openapi.json', find: () => description })
}
