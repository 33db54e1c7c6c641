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

    /** A sentence about what somebody probably looked for: what another interface calls it, a route with as many segments, or where all are listed. */
    suggestPath(path: string): string {
      const segments = path.replace(/^\/+(api\/)?/i, '').split(/\/+/)
      const shapes = [...routes.keys()]
        .filter((url) => !url.includes('*'))
        .map((url) => ({ url, parts: url.replace(/^\/(api\/)?/, '').split('/') }))
        .filter(({ parts }) => parts.length === segments.length)
        .map(({ url, parts }) => {
          // Only what is fixed in a route is compared: a parameter is equal to anything.
          const isFixed = (_: string, index: number) => !parts[index]!.startsWith(':')
          return { url, fixed: parts.filter(isFixed).join('/'), sent: segments.filter(isFixed).join('/') }
        })
        .filter(({ fixed, sent }) => suggest(sent, [fixed]).length > 0)
      const isSame = shapes.find(({ fixed, sent }) => fixed === sent.toLowerCase())
      const foreign = segments.map((segment) => FOREIGN_PATHS.get(segment.toLowerCase())).find(Boolean)
      if (foreign && !isSame) return foreign
      const [nearest] = suggest(
        segments.join('/'),
        shapes.map(({ fixed }) => fixed),
      )
      const shape = isSame ?? shapes.find(({ fixed }) => fixed === nearest) ?? shapes[0]
      return shape
        ? `Did you mean ${shape.url.replace(/:(\w+)/g, '{$1}')}?`
        : '/docs and /openapi.json list all of them.'
    },

    methodsOf(path: string): string[] {
      const methods = new Set<string>()
      for (const route of routes.values())
        if (route.pattern.test(path)) for (const method of route.methods) methods.add(method)
      return [...methods].sort()
    },
  }
}

const RUN = 'Work is bought with POST /api/run {"task": "…"}.'
/** What other interfaces call things that are here under another name. */
const FOREIGN_PATHS = new Map([
  ...['chat', 'completions', 'messages', 'responses'].map((name) => [name, RUN] as const),
  ...['charges', 'payments', 'payment_intents', 'invoices'].map((name) => [name, RUN] as const),
  ...['balance', 'balances'].map((name) => [name, 'GET /api/wallets lists wallets with their balances.'] as const),
  ...['refund', 'refunds'].map(
    (name) =>
      [
        name,
        'There is nothing to ask for: a failed run is not charged, and a payment that arrives later is returned.',
      ] as const,
  ),
  ['verify', 'Send a receipt to POST /api/receipts/verify, or verify it yourself with `npx countersign verify`.'],
  ['events', 'POST /api/webhooks subscribes to events, and GET /api/audit lists what happened.'],
  ['webhook_endpoints', 'POST /api/webhooks makes a webhook.'],
  ['endpoint', 'POST /api/webhooks makes a webhook.'],
  ['customers', 'POST /api/onboard makes a tenant, and POST /api/keys its keys.'],
  ['api_keys', 'POST /api/keys makes a key.'],
])

const toPattern = (url: string) =>
  new RegExp(
    `^${url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[^/]+/g, '[^/]+')
      .replace(/\*/g, '.*')}/?$`,
  )

const resources: Record<string, { noun: string; path: string }> = {
  run: { noun: 'a run', path: '/api/runs' },
  rcpt: { noun: 'a receipt', path: '/api/receipts' },
  wal: { noun: 'a wallet', path: '/api/wallets' },
  pol: { noun: 'a policy', path: '/api/policies' },
  man: { noun: 'a mandate', path: '/api/mandates' },
}

/** For a 404: that the id in the path is one of another kind of resource, and where that is. */
export function describeForeignId(url: string): string {
  const [, path, prefix] = /^(\/api\/\w+)\/([a-z]+)_[\w-]+/.exec(url) ?? []
  const resource = prefix === undefined || !Object.hasOwn(resources, prefix) ? undefined : resources[prefix]
  return resource && resource.path !== path ? ` This is the id of ${resource.noun}: GET ${resource.path}/{id}.` : ''
}
