import type { RunResponse } from './paid-unit.ts'

const WORK_DONE =
  'The work is done, but it is not known yet whether the payment arrived. Do not sign another: send the same payment again.'

/** Never a 402: asked to pay again, a client would sign a second payment while the first may still arrive. */
export const settlementUnknownResponse = (runId: string, requestId: string, message = WORK_DONE): RunResponse => ({
  status: 503,
  headers: { 'retry-after': '2', 'cache-control': 'no-store' },
  body: JSON.stringify({
    error: 'error',
    message,
    code: 'unavailable',
    run_id: runId,
    status: 'settling',
    stage: 'settle',
    charged: null,
    settlement: null,
    retryable: true,
    next_action: 'Send the same request with the same payment again.',
    request_id: requestId,
  }),
})
