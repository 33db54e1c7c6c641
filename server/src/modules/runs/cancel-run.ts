import type { Caller } from '../../platform/auth-context.ts'
import { StepRefused } from '../../platform/batch.ts'
import { conflict, notFound, unauthorized } from '../../platform/problem.ts'
import type { ReceivedPayment } from '../payments/x402.ts'
import { abandonRun } from './finish-run.ts'
import type { Failure } from './paid-unit.ts'
import { toPaidUnit } from './read-stored-run.ts'
import type { RunDeps } from './run-deps.ts'
import { isSameToken } from './run-token.ts'
import { toRunStatus } from './run-watch.ts'
import { findGuestRun, findOpenRun, findSettlementOf, findTenantRun, type RunRow } from './runs.store.ts'

const REASON = 'cancelled'

const CANCELLED: Failure = {
  stage: 'execute',
  reason: REASON,
  message: 'The run was cancelled before it was done. Nothing was charged.',
  retryable: false,
}

/**
 * Ends a run before its result is stored: nothing is charged and nothing is shown. The state is compared in the
 * transaction that ends it, so of a cancellation and the storing of the result one wins, and the other finds that out.
 */
export const createCancelRun =
  (deps: RunDeps) =>
  async (caller: Caller, proof: GuestProof, id: string): Promise<{ receiptId: string }> => {
    const run = await findOwnRun(deps, caller, proof, id)
    const openRun = run.state === 'executing' ? await findOpenRun(deps.db, id) : undefined
    if (openRun) {
      await abandonRun(deps, toPaidUnit(openRun), CANCELLED, { state: 'executing' }).catch(ignoreLateCancel)
      deps.background.abort(id)
    }
    return readCancellation(await findOwnRun(deps, caller, proof, id))
  }

/** The result was stored meanwhile; the run as it is now says so. */
function ignoreLateCancel(error: unknown) {
  if (!(error instanceof StepRefused)) throw error
}

function readCancellation(run: RunRow) {
  const { status, reason, receiptId } = toRunStatus({
    ...run,
    reason: (run.result as { reason?: string } | null)?.reason ?? null,
  })
  if (status === 'failed' && reason === REASON && receiptId !== null) return { receiptId }
  const extra = { extra: { run_id: run.id, status } }
  if (status === 'settling') throw conflict('The work is done and is being paid for; it is too late to cancel.', extra)
  if (status === 'pending')
    throw conflict('The run waits for an approval and has not begun; reject the approval instead.', extra)
  throw conflict(`The run has ended (${status}); there is nothing to cancel.`, extra)
}

/** What shows that a run without a key is one's own. */
export type GuestProof = { paid: ReceivedPayment | undefined; token: string | undefined }

/**
 * A tenant cancels its own runs. A guest's run is cancelled by whoever brings its token or its payment, which nobody else
 * has seen as long as it is not settled.
 */
async function findOwnRun(deps: RunDeps, caller: Caller, { paid, token }: GuestProof, id: string): Promise<RunRow> {
  if (caller.kind === 'tenant') {
    const run = await findTenantRun(deps.db, caller.tenantId, id)
    if (!run || run.kind === 'topup') throw notFound('run')
    return run
  }
  if (!paid && token === undefined)
    throw unauthorized('Send the X-API-Key or the X-Run-Token of the run, or the payment that it was asked for with.')
  const run = await findGuestRun(deps.db, id)
  if (!run || !(await isOwnRun(deps, run, { paid, token }))) throw notFound('run')
  return run
}

async function isOwnRun(deps: RunDeps, run: RunRow, { paid, token }: GuestProof): Promise<boolean> {
  if (token !== undefined) return isSameToken(token, deps.runToken(run.id))
  const { payment } = await findSettlementOf(deps.db, run.id)
  return paid !== undefined && (payment as { signature?: string } | null)?.signature === paid.payment.signature
}
