import {
  type InfiniteQueryObserverResult,
  infiniteQueryOptions,
  type QueryKey,
  useInfiniteQuery,
} from '@tanstack/react-query'
import { useCallback } from 'react'
import { isLive } from '../api.ts'

const REFRESH_MS = 5_000

export const cursorPages = <Page extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  readPage: (cursor: string | undefined) => Promise<Page>,
) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }) => readPage(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
    // Each page that was read would be read again: the newest rows come by opening the list anew. After a failure to
    // read on, a refresh of the first page would take away the notice of it.
    refetchInterval: ({ state }) =>
      isLive() || (state.data && state.data.pages.length > 1) || state.fetchMeta?.fetchMore ? false : REFRESH_MS,
  })

type ReadingOn = Pick<InfiniteQueryObserverResult, 'hasNextPage' | 'isFetching' | 'isFetchNextPageError'>

/** After a failure nothing reads on by itself: `QueryResult` has a button to try again. */
export const mayReadOn = ({ hasNextPage, isFetching, isFetchNextPageError }: ReadingOn) =>
  hasNextPage && !isFetching && !isFetchNextPageError

/** A list that is read page by page as its end comes near. */
export function useCursorPages<Page extends { next_cursor: string | null }>(
  queryKey: QueryKey,
  readPage: (cursor: string | undefined) => Promise<Page>,
) {
  const query = useInfiniteQuery(cursorPages(queryKey, readPage))
  const { hasNextPage, fetchNextPage } = query
  const isNextWanted = mayReadOn(query)
  const readOn = useCallback(() => {
    if (isNextWanted) void fetchNextPage()
  }, [isNextWanted, fetchNextPage])
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
