import type { App } from './http-app.ts'

/** Knows which methods each path supports, so that a wrong method gets a 405 with `allow` instead of a 404. */
export function createMethodIndex(app: App) {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string>; isPaid: boolean }>()
  app.addHook('onRoute', ({ url, method, config }) => {
    const route = routes.get(url) ?? { pattern: toPattern(url), methods: new Set<string>(), isPaid: false }
    route.isPaid ||= config?.paid === true
    for (const name of [method].flat()) route.methods.add(name)
    routes.set(url, route)
  })
  return {
    /** Whether a payment may be sent to this path, which browsers ask for with OPTIONS first. */
    isPaid: (path: string): boolean => [...routes.values()].some(({ isPaid, pattern }) => isPaid && pattern.test(path)),

    methodsOf(path: string): string[] {
      const methods = new Set<string>()
      for (const route of routes.values())
        if (route.pattern.test(path)) for (const method of route.methods) methods.add(method)
      return [...methods].sort()
    },
  }
}

const toPattern = (url: string) =>
  new RegExp(
    `^${url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[^/]+/g, '[^/]+')
      .replace(/\*/g, '.*')}/?$`,
  )
