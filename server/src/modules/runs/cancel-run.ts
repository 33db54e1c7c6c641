import type { Caller } from '../../platform/auth-context.ts'
import { StepRefused } from '../../platform/batch.ts'
import { conflict, notFound, unauthorized } from '../../platform/problem.ts'
import type { ReceivedPayment } from '../payments/x402.ts'
import { toCancelledResult } from './do-work.ts'
import { abandonRun, completeFromWallet } from './finish-run.ts'
import type { PartialOutput } from './lane.ts'
import type { Failure, Run } from './paid-unit.ts'
import { toPaidUnit } from './read-stored-run.ts'
import type { RunDeps } from './run-deps.ts'
import { isSameToken } from './run-token.ts'
import { toRunStatus } from './run-watch.ts'
import {
  findGuestRun,
  findOpenRun,
  findSettlementOf,
  findTenantRun,
  type OpenRunRow,
  type RunRow,
} from './runs.store.ts'

const REASON = 'cancelled'

const CANCELLED: Failure = {
  stage: 'execute',
  reason: REASON,
  message: 'The run was cancelled before it was done. Nothing was charged.',
  retryable: false,
}

/** A run changes hands once at most, and text of it is shown for the first time once a process. */
const MAX_ATTEMPTS = 4

export type Cancellation = { receiptId: string; charged: boolean }

/**
 * Ends a run before its result is stored. Nothing is charged, unless text of it was shown: then that is its output. State
 * and admission are compared in the transaction that ends it, so of a cancellation and the storing of the result, or of
 * the first text, one wins, and the other finds that out.
 */
export const createCancelRun =
  (deps: RunDeps) =>
  async (caller: Caller, proof: GuestProof, id: string): Promise<Cancellation> => {
    for (let attempt = 1; ; attempt++) {
      const run = await findOwnRun(deps, caller, proof, id)
      if (run.state !== 'executing' || attempt > MAX_ATTEMPTS) return readCancellation(run)
      const openRun = await findOpenRun(deps.db, id)
      // Work is aborted only when its run has ended: aborted before, the run would fail and not be charged.
      if (openRun && (await endRun(deps, openRun))) deps.background.abort(id)
    }
  }

/** False when the run has gone on since it was read. */
async function endRun(deps: RunDeps, openRun: OpenRunRow): Promise<boolean> {
  const unit = toPaidUnit(openRun)
  try {
    if (openRun.result === null)
      await abandonRun(deps, unit, CANCELLED, { state: 'executing', admission: unit.admission })
    else
      await completeFromWallet(deps, unit as Run, toCancelledResult(deps, unit as Run, openRun.result as PartialOutput))
    return true
  } catch (error) {
    if (error instanceof StepRefused) return false
    throw error
  }
}

function readCancellation(run: RunRow): Cancellation {
  const { status, reason, receiptId } = toRunStatus({
    ...run,
    reason: (run.result as { reason?: string } | null)?.reason ?? null,
  })
  if (status === 'failed' && reason === REASON && receiptId !== null) return { receiptId, charged: false }
  const { cancelled } = (run.result ?? {}) as { cancelled?: true }
  if (status === 'completed' && cancelled && receiptId !== null) return { receiptId, charged: true }
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
