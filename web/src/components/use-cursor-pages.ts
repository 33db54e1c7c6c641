import { type QueryKey, useInfiniteQuery } from '@tanstack/react-query'
import { useCallback } from 'react'
import { isLive } from '../api.ts'

/** A list that is read page by page as its end comes near. */
export function useCursorPages<Page extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  readPage: (cursor: string | undefined) => Promise<Page>,
) {
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => readPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    // Each page that was read would be read again: the newest rows come by opening the list anew.
    refetchInterval: ({ state }) => (isLive() || (state.data && state.data.pages.length > 1) ? false : 5_000),
  })
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = query
  // After a failure nothing reads on by itself: `QueryResult` has a button for it.
  const readOn = useCallback(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError) void fetchNextPage()
  }, [hasNextPage, isFetching, isFetchNextPageError, fetchNextPage])
  return { query, readOn, hasMore: hasNextPage }
}

/** Everything from the first page on, up to a number of rows. */
export async function readAllPages<Page extends { next_cursor: string | null }, Row>(
  readPage: (cursor: string | undefined) => Promise<Page>,
  rowsOf: (page: Page) => readonly Row[],
  maxRows: number,
): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | undefined; rows.length < maxRows; ) {
    const page = await readPage(cursor)
    rows.push(...rowsOf(page))
    if (page.next_cursor === null) break
    cursor = page.next_cursor
  }
  return rows
}
