import { CountersignError } from '@countersign/sdk'
import type { ReactNode } from 'react'
import { Bad, Soft } from './parts.tsx'

type Loading<T> = { data: T | undefined; error: Error | null; isFetching: boolean }

/** One place that says what is loading, what failed and what is out of date. */
export function Loaded<T>({ query, children }: { query: Loading<T>; children: (data: T) => ReactNode }) {
  const { data, error } = query
  if (data === undefined) return error ? <Failure error={error} /> : <Soft>Loading…</Soft>
  return (
    <>
      {error && !(error instanceof CountersignError && error.status === 0) && (
        <Bad>This could not be brought up to date: {error.message}</Bad>
      )}
      {children(data)}
    </>
  )
}

function Failure({ error }: { error: Error }) {
  // A part the service does not have, or that the plan or the key does not include, is no fault of anybody's.
  if (error instanceof CountersignError && error.status === 404) return <Soft>This service does not offer this.</Soft>
  if (error instanceof CountersignError && error.status === 403) return <Soft>{error.message}</Soft>
  return <Bad>{error.message}</Bad>
}
