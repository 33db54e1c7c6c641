import type { ApiResponse } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { api, clearAccount, hasStatus, queryClient } from '../api.ts'
import { clearSession, mayBeSignedIn, onSessionChangeElsewhere, storeSession } from '../session.ts'

export type Me = ApiResponse<'/api/me', 'get'>

/** The signed-in tenant, or null. The CSRF token is fetched first, because only the cookie survives a reload. */
export async function fetchSession(): Promise<Me | null> {
  if (!mayBeSignedIn()) return null
  try {
    const { csrf_token } = await api.get('/api/session')
    storeSession(csrf_token)
    return await api.get('/api/me')
  } catch (error) {
    if (!hasStatus(error, 401, 404)) throw error
    clearSession()
    return null
  }
}

export function useSession() {
  const session = useQuery({ queryKey: ['session'], queryFn: fetchSession, refetchInterval: 60_000 })
  const { refetch } = session
  useEffect(
    () =>
      onSessionChangeElsewhere(() => {
        if (mayBeSignedIn()) void refetch()
        else clearAccount()
      }),
    [refetch],
  )
  return session
}

export async function signIn(apiKey: string): Promise<void> {
  const { csrf_token } = await api.post('/api/session', { body: { api_key: apiKey } })
  storeSession(csrf_token)
  queryClient.setQueryData(['session'], await api.get('/api/me'))
}

/** Only the server can end a session, so when it cannot be reached the user stays signed in and sees the error. */
export async function signOut(): Promise<void> {
  try {
    await api.delete('/api/session')
  } catch (error) {
    if (!hasStatus(error, 401, 404)) throw error
  }
  clearAccount()
}
