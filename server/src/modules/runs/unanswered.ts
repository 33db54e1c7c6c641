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
 * Answers runs that were admitted and that x402 pays. When the database is lost meanwhile nobody knows how a run ends: the
 * caller is told so, and once the database is back the run is noted as unanswered. A client that can only sign another
 * payment then gets the answer of this run instead of paying for a second one.
 */
export function createAnswerOrNote({ db, clock, log }: NoteDeps) {
  /** Runs to be noted, and until when that is tried. If this process ends before, whoever takes over its open runs notes those. */
  const waiting = new Map<string, number>()
  let isNoting = false

  const noteOnceBack = async (runId: string) => {
    waiting.set(runId, performance.now() + TRY_FOR_MS)
    if (isNoting) return
    isNoting = true
    while (waiting.size > 0) {
      const runIds = [...waiting.keys()]
      try {
        await noteUnanswered(db, runIds, clock.now())
        for (const noted of runIds) waiting.delete(noted)
      } catch (error) {
        if (isUnavailable(error)) forgetExpired()
        else {
          log.error({ err: error, run_ids: runIds }, 'unanswered runs were not noted')
          waiting.clear()
        }
        await sleep(PAUSE_MS, undefined, { ref: false })
      }
    }
    isNoting = false
  }

  const forgetExpired = () => {
    for (const [runId, deadline] of waiting) if (deadline < performance.now()) waiting.delete(runId)
  }

  return async (run: Run, response: Promise<RunResponse>): Promise<RunResponse> => {
    try {
      return await response
    } catch (error) {
      if (!isUnavailable(error)) throw error
      log.warn({ err: error, run_id: run.id }, 'the database was lost while a run was under way')
      void noteOnceBack(run.id)
      return settlementUnknownResponse(
        run.id,
        run.terms.request_id,
        'The database was lost while the run was under way, so it is not known whether the payment will be taken. Do not sign another: send the same payment again.',
      )
    }
  }
}
