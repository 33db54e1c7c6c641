import type { App } from './http-app.ts'
import { suggest } from './suggest.ts'

/** Knows which methods each path supports, so that a wrong method gets a 405 with `allow` instead of a 404. */
export function createMethodIndex(app: App) {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string>; isOpen: boolean }>()
  app.addHook('onRoute', ({ url, method, config }) => {
    const route = routes.get(url) ?? { pattern: toPattern(url), methods: new Set<string>(), isOpen: false }
    route.isOpen ||= config?.paid === true || config?.fromAnyOrigin === true
    for (const name of [method].flat()) route.methods.add(name)
    routes.set(url, route)
  })
  return {
    /** Whether pages of any origin may call this path, which browsers ask with OPTIONS first. */
    isFromAnyOrigin: (path: string): boolean =>
      [...routes.values()].some(({ isOpen, pattern }) => isOpen && pattern.test(path)),

    /** ` Did you mean …?` with the path of a route that has the same number of segments, or nothing. */
    suggestPath(path: string): string {
      const segments = path.split('/')
      const shapes = [...routes.keys()]
        .filter((url) => !url.includes('*') && url.split('/').length === segments.length)
        .map((url) => {
          const parts = url.split('/')
          const fixed = parts.map((part, index) => (part.startsWith(':') ? segments[index]! : part)).join('/')
          return { fixed, shown: url.replace(/:(\w+)/g, '{$1}') }
        })
      const [nearest] = suggest(
        path,
        shapes.map(({ fixed }) => fixed),
      )
      const shape = shapes.find(({ fixed }) => fixed === nearest)
      return shape ? ` Did you mean ${shape.shown}?` : ''
    },

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
