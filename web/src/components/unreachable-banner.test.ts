import { CountersignError } from '@countersign/sdk'
import { QueryObserver } from '@tanstack/react-query'
import { afterEach, expect, test } from 'vitest'
import { queryClient } from '../api.ts'
import { isUnreachable } from './unreachable-banner.tsx'

afterEach(() => queryClient.clear())

/** Observes a query that failed with this status, as a mounted component does. */
async function observeFailedQuery(status: number): Promise<() => void> {
  const queryKey = [`failed with ${status}`]
  const queryFn = () => Promise.reject(new CountersignError(status, {}))
  await queryClient.prefetchQuery({ queryKey, queryFn, retry: false })
  return new QueryObserver(queryClient, { queryKey, queryFn, retryOnMount: false }).subscribe(() => undefined)
}

test('the service is unreachable while a query on the page got no response', async () => {
  const unmount = await observeFailedQuery(0)
  expect(isUnreachable()).toBe(true)
  unmount()
  expect(isUnreachable()).toBe(false)
})

test('an error response means that the service is reachable', async () => {
  const unmount = await observeFailedQuery(503)
  expect(isUnreachable()).toBe(false)
  unmount()
})
