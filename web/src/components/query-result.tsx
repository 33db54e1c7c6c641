import { CountersignError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { ErrorMessage, MutedText } from './ui.tsx'

type QueryState<T> = {
  data: T | undefined
  error: Error | null
  isFetching: boolean
  isFetchNextPageError?: boolean
  fetchNextPage?: () => Promise<unknown>
}

/** Renders the data of a query, or that it is loading, failed or could not be refreshed. */
export function QueryResult<T>({ query, children }: { query: QueryState<T>; children: (data: T) => ReactNode }) {
  const { data, error, isFetching, isFetchNextPageError, fetchNextPage } = query
  if (data === undefined) return error ? <QueryError error={error} /> : <MutedText>Loading…</MutedText>
  return (
    <>
      {error && isFetchNextPageError && (
        <div className="row">
          <ErrorMessage>Could not load more: {error.message}</ErrorMessage>
          <button type="button" className="secondary" disabled={isFetching} onClick={() => void fetchNextPage?.()}>
            Try again
          </button>
        </div>
      )}
      {error && !isFetchNextPageError && !(error instanceof CountersignError && error.status === 0) && (
        <ErrorMessage>Could not refresh: {error.message}</ErrorMessage>
      )}
      {children(data)}
    </>
  )
}

function QueryError({ error }: { error: Error }) {
  // A feature the service does not have, or that the plan or key does not include, is not shown as an error.
  if (error instanceof CountersignError && error.status === 404)
    return <MutedText>Not available on this service.</MutedText>
  if (error instanceof CountersignError && error.status === 403) return <MutedText>{error.message}</MutedText>
  return <ErrorMessage>{error.message}</ErrorMessage>
}
