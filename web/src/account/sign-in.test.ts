import { beforeEach, expect, test } from 'vitest'
import { stubFetch, stubStorage } from '../../test/browser-stubs.ts'
import { ACCOUNT_KEY, queryClient } from '../api.ts'
import { clearSession, mayBeSignedIn, readCsrfToken, storeSession } from '../session.ts'
import { fetchSession, signIn, signOut } from './sign-in.ts'

const me = { org_name: 'Acme' }

beforeEach(() => {
  stubStorage()
  clearSession()
  queryClient.clear()
})

test('signing in exchanges the API key for a session and keeps only its CSRF token', async () => {
  const sentRequests = stubFetch({
    'POST /api/session': { body: { csrf_token: 'token' } },
    'GET /api/me': { body: me },
  })
  await signIn('csk_secret')
  expect(sentRequests[0]).toMatchObject({ method: 'POST', url: '/api/session', body: { api_key: 'csk_secret' } })
  expect(readCsrfToken()).toBe('token')
  expect(queryClient.getQueryData(['session'])).toEqual(me)
})

test('a wrong API key throws and leaves no session', async () => {
  stubFetch({ 'POST /api/session': { status: 401, body: { error: 'error', message: 'The key is wrong.' } } })
  await expect(signIn('csk_wrong')).rejects.toThrow('The key is wrong.')
  expect([readCsrfToken(), mayBeSignedIn()]).toEqual([undefined, false])
})

test('without a record of a session nothing is requested', async () => {
  const sentRequests = stubFetch({})
  expect(await fetchSession()).toBeNull()
  expect(sentRequests).toEqual([])
})

test('after a reload the CSRF token is fetched before the tenant', async () => {
  storeSession('old token')
  const sentRequests = stubFetch({
    'GET /api/session': { body: { csrf_token: 'new token' } },
    'GET /api/me': { body: me },
  })
  expect(await fetchSession()).toEqual(me)
  expect(sentRequests.map(({ url }) => url)).toEqual(['/api/session', '/api/me'])
  expect(readCsrfToken()).toBe('new token')
})

test('a session that ended on the server is cleared, but an unavailable server is not taken for one', async () => {
  storeSession('token')
  stubFetch({ 'GET /api/session': { status: 503, body: {} } })
  await expect(fetchSession()).rejects.toMatchObject({ status: 503 })
  expect(mayBeSignedIn()).toBe(true)
  stubFetch({ 'GET /api/session': { status: 401, body: {} } })
  expect(await fetchSession()).toBeNull()
  expect(mayBeSignedIn()).toBe(false)
})

test('signing out sends the CSRF token and removes the account data', async () => {
  storeSession('token')
  queryClient.setQueryData([ACCOUNT_KEY, 'runs'], ['a run'])
  const sentRequests = stubFetch({ 'DELETE /api/session': { body: { ended: true } } })
  await signOut()
  expect(sentRequests[0]?.headers['x-csrf-token']).toBe('token')
  expect(queryClient.getQueryData([ACCOUNT_KEY, 'runs'])).toBeUndefined()
  expect(mayBeSignedIn()).toBe(false)
})

test('the user stays signed in when the server cannot be reached, and is signed out when the session is gone', async () => {
  storeSession('token')
  stubFetch({})
  await expect(signOut()).rejects.toMatchObject({ status: 0 })
  expect(mayBeSignedIn()).toBe(true)
  stubFetch({ 'DELETE /api/session': { status: 401, body: {} } })
  await signOut()
  expect(mayBeSignedIn()).toBe(false)
})
