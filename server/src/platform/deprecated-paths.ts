import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from './http-app.ts'

/**
 * Redirects deprecated paths with a 308, which preserves method and body; the query is preserved too.
 * Register it after the canonical routes: only the methods they support are described in the API document.
 */
export function aliasRoutes(app: App, aliases: Record<string, string>) {
  for (const [alias, canonical] of Object.entries(aliases)) {
    const redirect = async (request: FastifyRequest, reply: FastifyReply) =>
      reply.header('deprecation', 'true').redirect(`${canonical}${request.url.slice(alias.length)}`, 308)
    // Redirected before the body is read: validating it is left to the canonical path.
    const options = { config: { unmetered: true }, onRequest: redirect }
    // Fastify adds HEAD with GET.
    for (const method of app.supportedMethods.filter((name) => name !== 'HEAD')) {
      const schema = app.hasRoute({ method, url: canonical }) ? describeRedirect(method, alias, canonical) : undefined
      app.route({ ...options, method, url: alias, handler: redirect, schema })
      app.route({ ...options, method, url: `${alias}/*`, handler: redirect })
    }
  }
}

const describeRedirect = (method: string, alias: string, canonical: string) => ({
  operationId: `${method.toLowerCase()}_${alias.slice('/api/'.length)}_deprecated`,
  tags: ['Deprecated'],
  deprecated: true,
  summary: `Moved to ${canonical}`,
  response: {
    308: Type.Null({ description: `The same request, with its method, body and query, belongs to ${canonical}.` }),
  },
})
