import type { RunResponse } from './paid-unit.ts'

export const runLocation = (runId: string) => `/api/runs/${runId}`

/** The answer to `Prefer: respond-async`: the same to every repetition of the request, as long as the run is open. */
export const pendingResponse = (runId: string): RunResponse => ({
  status: 202,
  headers: {
    location: runLocation(runId),
    'preference-applied': 'respond-async',
    'retry-after': '1',
    'cache-control': 'no-store',
  },
  body: JSON.stringify({
    run_id: runId,
    status: 'pending',
    location: runLocation(runId),
    events: `${runLocation(runId)}/events`,
  }),
})
