import type { App } from './http.ts'

/** Knows which methods each address answers, so that a wrong method is a 405 that names the right ones, not a 404. */
export function createMethodGuard(app: App) {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  app.addHook('onRoute', ({ url, method }) => {
    const known = routes.get(url) ?? { pattern: pattern(url), methods: new Set<string>() }
    for (const one of [method].flat()) known.methods.add(one)
    routes.set(url, known)
  })
  return {
    allowed(path: string): string[] {
      const found = new Set<string>()
      for (const route of routes.values())
        if (route.pattern.test(path)) for (const method of route.methods) found.add(method)
      return [...found].sort()
    },
  }
}

const pattern = (url: string) =>
  new RegExp(
    `^${url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[^/]+/g, '[^/]+')
      .replace(/\*/g, '.*')}/?$`,
  )
