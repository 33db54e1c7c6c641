import { environmentManager, InfiniteQueryObserver, QueryClient } from '@tanstack/react-query'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { cursorPages, mayReadOn } from './use-cursor-pages.ts'

// Elsewhere than in a browser nothing is refreshed.
beforeAll(() => environmentManager.setIsServer(() => false))
afterAll(() => environmentManager.setIsServer(() => true))
beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Reads on whenever that is allowed, as a table does whose end is in view. */
function openList(readPage: (cursor: string | undefined) => Promise<{ next_cursor: string | null }>) {
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  const observer = new InfiniteQueryObserver(client, cursorPages(['list'], readPage))
  const close = observer.subscribe((result) => {
    if (mayReadOn(result)) void result.fetchNextPage()
  })
  return { observer, close }
}

test('a list whose end is in view is read to its end', async () => {
  const { observer, close } = openList(async (cursor = '0') => ({
    next_cursor: cursor === '3' ? null : String(Number(cursor) + 1),
  }))
  await vi.advanceTimersByTimeAsync(1_000)
  expect(observer.getCurrentResult().data?.pages).toHaveLength(4)
  close()
})

test('a list that could not be read on stays as it is until somebody tries again', async () => {
  let isDown = true
  const cursors: (string | undefined)[] = []
  const { observer, close } = openList(async (cursor) => {
    cursors.push(cursor)
    if (cursor !== undefined && isDown) throw new Error('It failed.')
    return { next_cursor: cursor === undefined ? 'a' : null }
  })
  await vi.advanceTimersByTimeAsync(60_000)
  expect(cursors).toEqual([undefined, 'a'])
  expect(observer.getCurrentResult()).toMatchObject({ isFetchNextPageError: true, hasNextPage: true })
  isDown = false
  await observer.fetchNextPage()
  expect(observer.getCurrentResult()).toMatchObject({ isFetchNextPageError: false, hasNextPage: false })
  close()
})

test('a list of one page is read again now and then', async () => {
  let reads = 0
  const { close } = openList(async () => {
    reads += 1
    return { next_cursor: null }
  })
  await vi.advanceTimersByTimeAsync(12_000)
  expect(reads).toBe(3)
  close()
})
