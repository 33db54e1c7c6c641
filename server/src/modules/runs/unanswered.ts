import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable } from '../../platform/db.ts'
import type { Run, RunResponse } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'
import { noteUnanswered } from './runs.store.ts'
import { settlementUnknownResponse } from './settlement-unknown.ts'

const TRY_FOR_MS = 10 * 60_000
const PAUSE_MS = 500

type NoteDeps = Pick<RunDeps, 'db' | 'clock' | 'log'>

/**
 * The answer to a run that was admitted and that x402 pays. When the database is lost meanwhile nobody knows how the run
 * ends: the caller is told so, and once the database is back the run is noted as unanswered. A client that can only sign
 * another payment then gets the answer of this run instead of paying for a second one.
 */
export async function answerOrNote(deps: NoteDeps, run: Run, response: Promise<RunResponse>): Promise<RunResponse> {
  try {
    return await response
  } catch (error) {
    if (!isUnavailable(error)) throw error
    deps.log.warn({ err: error, run_id: run.id }, 'the database was lost while a run was under way')
    void noteOnceBack(deps, run.id)
    return settlementUnknownResponse(
      run.id,
      run.terms.request_id,
      'The database was lost while the run was under way, so it is not known whether the payment will be taken. Do not sign another: send the same payment again.',
    )
  }
}

/** If this process ends before, whoever takes over its runs that are not settled yet notes those. */
async function noteOnceBack({ db, clock, log }: NoteDeps, runId: string): Promise<void> {
  for (const deadline = performance.now() + TRY_FOR_MS; performance.now() < deadline; ) {
    try {
      return await noteUnanswered(db, runId, clock.now())
    } catch (error) {
      if (!isUnavailable(error)) return log.error({ err: error, run_id: runId }, 'an unanswered run was not noted')
    }
    await sleep(PAUSE_MS, undefined, { ref: false })
  }
}
