import type { paths } from './generated/api.ts'
import { type ApiRequest, type ApiResponse, isObject, type PathsWith, type Transport } from './http.ts'

/** Where each list is, and the field of its response that has the items. */
const LISTS = {
  runs: { path: '/api/runs', items: 'runs' },
  receipts: { path: '/api/receipts', items: 'receipts' },
  settlements: { path: '/api/settlements', items: 'settlements' },
  ledger: { path: '/api/ledger', items: 'entries' },
  wallets: { path: '/api/wallets', items: 'wallets' },
  policies: { path: '/api/policies', items: 'policies' },
  mandates: { path: '/api/mandates', items: 'mandates' },
  preauths: { path: '/api/pre-auth', items: 'preauths' },
  approvals: { path: '/api/approvals', items: 'approvals' },
  approvalChannels: { path: '/api/approval-channels', items: 'channels' },
  decisions: { path: '/api/decisions', items: 'decisions' },
  webhooks: { path: '/api/webhooks', items: 'subscriptions' },
  alerts: { path: '/api/predictive/alerts', items: 'alerts' },
  memories: { path: '/api/memory', items: 'memories' },
  audit: { path: '/api/audit', items: 'events' },
  keys: { path: '/api/keys', items: 'keys' },
} as const satisfies { [name: string]: { path: PathsWith<'get'>; items: string } }

type Item<P extends keyof paths, K extends string> =
  ApiResponse<P, 'get'> extends { [name in K]: readonly (infer T)[] } ? T : never

/** Everything, page after page, newest first where the service says so: `for await (const receipt of client.receipts.list())`. */
export type Lists = {
  [N in keyof typeof LISTS]: {
    list(
      query?: NonNullable<ApiRequest<(typeof LISTS)[N]['path'], 'get'>['query']>,
      options?: { signal?: AbortSignal },
    ): AsyncGenerator<Item<(typeof LISTS)[N]['path'], (typeof LISTS)[N]['items']>, void, undefined>
  }
}

export function createLists(transport: Transport): Lists {
  const createList = ({ path, items }: { path: string; items: string }) => ({
    async *list(query: Record<string, unknown> = {}, { signal }: { signal?: AbortSignal } = {}) {
      let page: Record<string, unknown> = {}
      do {
        const response = await transport.request('get', path, { query: { ...query, ...page }, signal })
        if (!isObject(response) || !Array.isArray(response[items]))
          throw new TypeError(`The response of ${path} has no list '${items}'.`)
        yield* response[items]
        page = nextPage(response)
      } while (Object.keys(page).length > 0)
    },
  })
  return Object.fromEntries(Object.entries(LISTS).map(([name, list]) => [name, createList(list)])) as unknown as Lists
}

/** Runs are paged by the last run, everything else by an opaque cursor. */
function nextPage(response: Record<string, unknown>): Record<string, unknown> {
  if (response.has_more !== true) return {}
  if (typeof response.next_cursor === 'string') return { cursor: response.next_cursor }
  if (typeof response.next_after === 'string') return { after: response.next_after }
  return {}
}
