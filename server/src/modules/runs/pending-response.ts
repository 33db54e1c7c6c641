import type { RunResponse } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'

export const runLocation = (runId: string) => `/api/runs/${runId}`

/**
 * The answer to `Prefer: respond-async`: the same to every repetition of the request, as long as the run is open. Only the
 * guest who paid gets it, so its token is what an x402 client reads the answer with that cannot send the same payment again.
 */
export const pendingResponse = (
  deps: Pick<RunDeps, 'runToken'>,
  { id: runId, tenantId }: { id: string; tenantId: string | null },
): RunResponse => ({
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
    ...(tenantId === null && { token: deps.runToken(runId) }),
  }),
})
