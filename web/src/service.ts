import { createClient } from '@countersign/sdk'
import { QueryClient } from '@tanstack/react-query'

/** The dashboard reaches the server only through the SDK, on the address it was served from. */
let csrfToken: string | undefined = sessionStorage.getItem('csrf') ?? undefined

export const service = createClient({ baseUrl: '', csrfToken: () => csrfToken })

export const queries = new QueryClient({
  defaultOptions: { queries: { retry: 1, refetchInterval: 10_000, staleTime: 2_000 } },
})

export async function signIn(apiKey: string) {
  const answer = await service.post('/api/session', { body: { api_key: apiKey } })
  csrfToken = answer.csrf_token
  sessionStorage.setItem('csrf', answer.csrf_token)
  await queries.invalidateQueries()
}

export async function signOut() {
  await service.delete('/api/session').catch(() => {})
  csrfToken = undefined
  sessionStorage.removeItem('csrf')
  queries.clear()
}
