import { CountersignError } from '@countersign/sdk'
import { useSyncExternalStore } from 'react'
import { queries } from '../service.ts'

const cache = queries.getQueryCache()

const isUnreachable = () =>
  cache
    .getAll()
    .some(
      (query) => query.isActive() && query.state.error instanceof CountersignError && query.state.error.status === 0,
    )

/** Says once, for the whole page, that what is shown is no longer kept up to date. */
export function Unreachable() {
  const away = useSyncExternalStore(cache.subscribe, isUnreachable)
  return (
    <div className="banner" role="status" hidden={!away}>
      The service does not answer. What you see is what was loaded last; verifying goes on without it.
    </div>
  )
}
