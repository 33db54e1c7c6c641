import type { App } from './http.ts'

/** Deprecated paths answer every method with a 308, which keeps method and body; the query is kept too. */
export function aliasRoutes(app: App, aliases: Record<string, string>) {
  for (const [alias, canonical] of Object.entries(aliases)) {
    for (const url of [alias, `${alias}/*`]) {
      app.all(url, { config: { unmetered: true } }, async (request, reply) => {
        const rest = request.url.slice(alias.length)
        return reply.header('deprecation', 'true').redirect(`${canonical}${rest}`, 308)
      })
    }
  }
}
