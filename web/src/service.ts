import { CountersignError, createClient } from '@countersign/sdk'
import { QueryCache, QueryClient, useQuery } from '@tanstack/react-query'
import { dropSession, readCsrfToken } from './session.ts'

/** The dashboard reaches the server only through the SDK, on the address it was served from. */
export const service = createClient({ baseUrl: '', csrfToken: readCsrfToken, timeoutMs: 20_000 })

export const isStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof CountersignError && statuses.includes(error.status)

/** Everything of a tenant stands under this key, so that signing out forgets all of it. */
export const ACCOUNT = 'account'

export const queries = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (query.queryKey[0] === ACCOUNT && isStatus(error, 401)) forgetAccount()
    },
  }),
  defaultOptions: {
    queries: {
      // What was refused is refused again; only silence and trouble are worth a second try.
      retry: (failures, error) => failures < 1 && isStatus(error, 0, 502, 503, 504),
      retryDelay: 500,
      refetchInterval: 15_000,
      staleTime: 2_000,
    },
  },
})

export function forgetAccount() {
  dropSession()
  queries.removeQueries({ queryKey: [ACCOUNT] })
  queries.setQueryData(['session'], null)
}

/** Fetched with the page and kept for its life: verifying needs no server after that. */
export const keySetQuery = {
  queryKey: ['jwks'],
  queryFn: () => service.get('/.well-known/jwks.json'),
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: Number.POSITIVE_INFINITY,
  refetchInterval: ({ state }: { state: { data: unknown } }) => (state.data ? (false as const) : 10_000),
}

export const useKeySet = () => useQuery(keySetQuery)

export const useLanes = () => useQuery({ queryKey: ['agents'], queryFn: () => service.get('/api/agents') })
