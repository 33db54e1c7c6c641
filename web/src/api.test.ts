import { CountersignError } from '@countersign/sdk'
import { beforeEach, expect, test } from 'vitest'
import { stubStorage } from '../test/browser-stubs.ts'
import { ACCOUNT_KEY, hasStatus, jwksQuery, queryClient } from './api.ts'
import { mayBeSignedIn, readCsrfToken, storeSession } from './session.ts'

const createError = (status: number) => new CountersignError(status, {})

beforeEach(() => {
  stubStorage()
  queryClient.clear()
})

const failQuery = (queryKey: string[], error: Error) =>
  queryClient
    .fetchQuery({ queryKey, queryFn: () => Promise.reject(error), retry: false })
    .then(() => undefined)
    .catch(() => undefined)

test('only network and availability errors are retried, and only once', () => {
  const { retry } = queryClient.getDefaultOptions().queries as { retry(failures: number, error: Error): boolean }
  expect([0, 502, 503, 504].map((status) => retry(0, createError(status)))).toEqual([true, true, true, true])
  expect([400, 401, 404, 429, 500].some((status) => retry(0, createError(status)))).toBe(false)
  expect(retry(1, createError(503))).toBe(false)
  expect(retry(0, new Error('a bug in the page'))).toBe(false)
})

test('a 401 for account data ends the session and removes all account data', async () => {
  storeSession('token')
  queryClient.setQueryData([ACCOUNT_KEY, 'runs'], ['a run'])
  queryClient.setQueryData(['session'], { org_name: 'Acme' })
  queryClient.setQueryData(['agents'], ['a lane'])
  await failQuery([ACCOUNT_KEY, 'alerts'], createError(401))
  expect(queryClient.getQueryData([ACCOUNT_KEY, 'runs'])).toBeUndefined()
  expect(queryClient.getQueryData(['session'])).toBeNull()
  expect(queryClient.getQueryData(['agents'])).toEqual(['a lane'])
  expect([readCsrfToken(), mayBeSignedIn()]).toEqual([undefined, false])
})

test('a 403 for account data or a 401 for public data does not end the session', async () => {
  storeSession('token')
  await failQuery([ACCOUNT_KEY, 'alerts'], createError(403))
  await failQuery(['agents'], createError(401))
  expect(readCsrfToken()).toBe('token')
})

test('hasStatus matches only errors of the service', () => {
  expect(hasStatus(createError(404), 401, 404)).toBe(true)
  expect(hasStatus(createError(500), 401, 404)).toBe(false)
  expect(hasStatus(Object.assign(new Error('other'), { status: 404 }), 404)).toBe(false)
})

test('the key set is fetched again until it is loaded, then never', () => {
  expect(jwksQuery.refetchInterval({ state: { data: undefined } })).toBe(10_000)
  expect(jwksQuery.refetchInterval({ state: { data: { keys: [] } } })).toBe(false)
})
