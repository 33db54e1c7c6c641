import { CountersignError, createApiClient } from '@countersign/sdk'
import { QueryCache, QueryClient, useQuery } from '@tanstack/react-query'
import { clearSession, readCsrfToken } from './session.ts'

/** The dashboard reaches the server only through the SDK, on the origin that served it. */
export const api = createApiClient({ baseUrl: '', csrfToken: readCsrfToken, timeoutMs: 20_000 })

export const hasStatus = (error: unknown, ...statuses: number[]): boolean =>
  error instanceof CountersignError && statuses.includes(error.status)

/** First element of every query key with tenant data, so that signing out can remove all of it. */
export const ACCOUNT_KEY = 'account'

let live = false

/** While changes are announced, account data is read again when it has changed, and not by the clock. */
export function setLive(isLiveNow: boolean) {
  live = isLiveNow
}

export const isLive = () => live

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error, query) => {
      if (query.queryKey[0] === ACCOUNT_KEY && hasStatus(error, 401)) clearAccount()
    },
  }),
  defaultOptions: {
    queries: {
      // A refusal would be repeated; only network errors and gateway or availability errors are retried.
      retry: (failures, error) => failures < 1 && hasStatus(error, 0, 502, 503, 504),
      retryDelay: 500,
      refetchInterval: ({ queryKey }) => (live && queryKey[0] === ACCOUNT_KEY ? false : 15_000),
      staleTime: 2_000,
    },
  },
})

export function clearAccount() {
  clearSession()
  queryClient.removeQueries({ queryKey: [ACCOUNT_KEY] })
  queryClient.setQueryData(['session'], null)
}

/** Fetched with the page and never discarded: verification needs no server after that. */
export const jwksQuery = {
  queryKey: ['jwks'],
  queryFn: () => api.get('/.well-known/jwks.json'),
  staleTime: Number.POSITIVE_INFINITY,
  gcTime: Number.POSITIVE_INFINITY,
  refetchInterval: ({ state }: { state: { data: unknown } }) => (state.data ? (false as const) : 10_000),
}

export const useJwks = () => useQuery(jwksQuery)

export const useLanes = () => useQuery({ queryKey: ['agents'], queryFn: () => api.get('/api/agents') })
