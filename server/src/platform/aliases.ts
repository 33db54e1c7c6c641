import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { App } from './http.ts'

/**
 * Deprecated paths answer every method with a 308, which keeps method and body; the query is kept too.
 * Comes after the canonical routes: a method is described where they offer it.
 */
export function aliasRoutes(app: App, aliases: Record<string, string>) {
  for (const [alias, canonical] of Object.entries(aliases)) {
    const move = async (request: FastifyRequest, reply: FastifyReply) =>
      reply.header('deprecation', 'true').redirect(`${canonical}${request.url.slice(alias.length)}`, 308)
    // Before the body is read: whether it is any good is for the canonical path to say.
    const options = { config: { unmetered: true }, onRequest: move }
    // HEAD comes with GET.
    for (const method of app.supportedMethods.filter((name) => name !== 'HEAD')) {
      const schema = app.hasRoute({ method, url: canonical }) ? moved(method, alias, canonical) : undefined
      app.route({ ...options, method, url: alias, handler: move, schema })
      app.route({ ...options, method, url: `${alias}/*`, handler: move })
    }
  }
}

const moved = (method: string, alias: string, canonical: string) => ({
  operationId: `${method.toLowerCase()}_${alias.slice('/api/'.length)}_deprecated`,
  tags: ['Deprecated'],
  deprecated: true,
  summary: `Moved to ${canonical}`,
  response: {
    308: Type.Null({ description: `The same request, with its method, body and query, belongs to ${canonical}.` }),
  },
})
