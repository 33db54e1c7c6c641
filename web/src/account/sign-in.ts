import { type Answer, CountersignError } from '@countersign/sdk'
import { useQuery } from '@tanstack/react-query'
import { useEffect } from 'react'
import { forgetAccount, isStatus, queries, service } from '../service.ts'
import { dropSession, keepSession, maybeSignedIn, onSessionElsewhere } from '../session.ts'

export type Me = Answer<'/api/me', 'get'>

/** Who is signed in, or null. A page that was loaded again asks for its token first, since only the cookie outlived it. */
async function readSession(): Promise<Me | null> {
  if (!maybeSignedIn()) return null
  try {
    const { csrf_token } = await service.get('/api/session')
    keepSession(csrf_token)
    return await service.get('/api/me')
  } catch (error) {
    if (!isStatus(error, 401, 404)) throw error
    dropSession()
    return null
  }
}

export function useSession() {
  const session = useQuery({ queryKey: ['session'], queryFn: readSession, refetchInterval: 60_000 })
  const { refetch } = session
  useEffect(
    () =>
      onSessionElsewhere(() => {
        if (maybeSignedIn()) void refetch()
        else forgetAccount()
      }),
    [refetch],
  )
  return session
}

export async function signIn(apiKey: string): Promise<void> {
  const { csrf_token } = await service.post('/api/session', { body: { api_key: apiKey } })
  keepSession(csrf_token)
  queries.setQueryData(['session'], await service.get('/api/me'))
}

/** Only the service can end a session, so one that could not be asked leaves the reader signed in, and says so. */
export async function signOut(): Promise<void> {
  try {
    await service.delete('/api/session')
  } catch (error) {
    if (!(error instanceof CountersignError) || ![401, 404].includes(error.status)) throw error
  }
  forgetAccount()
}
