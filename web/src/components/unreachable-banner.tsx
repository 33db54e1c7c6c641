import { CountersignError } from '@countersign/sdk'
import { useSyncExternalStore } from 'react'
import { queryClient } from '../api.ts'

const queryCache = queryClient.getQueryCache()

export const isUnreachable = () =>
  queryCache
    .getAll()
    .some(
      (query) => query.isActive() && query.state.error instanceof CountersignError && query.state.error.status === 0,
    )

/** One banner for the whole page while the service cannot be reached. */
export function UnreachableBanner() {
  const unreachable = useSyncExternalStore(queryCache.subscribe, isUnreachable, isUnreachable)
  return (
    <div className="banner" role="status" hidden={!unreachable}>
      The service is not responding. The page shows the data loaded last; verification still works.
    </div>
  )
}
