import { StepRefused } from '../../platform/batch.ts'
import type { OpenSettlement } from '../payments/payments.ts'
import { doWork } from './do-work.ts'
import { readStoredResponse } from './find-stored-response.ts'
import { abandonRun, finishFromWallet, finishRun, giveUpRun, toKeepItem } from './finish-run.ts'
import { type Failure, type Run, type RunResponse, type RunResult, stepOwner } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'
import { createShownText, showsText } from './shown-text.ts'

/** `work`: what was done before the run was admitted. */
type PerformOptions = { cancelled?: AbortSignal | undefined; work?: RunResult | Failure | undefined }

/** The admitted run to its end: work, transaction B, settlement, transaction C. Without a settlement a wallet pays. */
export async function performRun(
  deps: RunDeps,
  admittedRun: Run,
  settlement: OpenSettlement | undefined,
  { cancelled, work }: PerformOptions = {},
): Promise<RunResponse> {
  const shownText = showsText(admittedRun) ? createShownText(deps, admittedRun) : undefined
  const result = work ?? (await doWork(deps, admittedRun, { cancelled, onText: shownText?.show }))
  const run = shownText ? { ...admittedRun, admission: await shownText.close() } : admittedRun
  if ('stage' in result) return abandonRun(deps, run, result, ownWork(run))
  deps.afterStep('execute')

  if (!settlement) return finishFromWallet(deps, run, result)

  const responseInstead = await keepResult(deps, run, result)
  if (responseInstead) return responseInstead
  deps.afterStep('keep')

  const outcome = await deps.payments.settle(settlement)
  deps.afterStep('settle')
  return finishRun(deps, run, result, outcome)
}

/** A run that another process has taken over meanwhile is left to it. */
const ownWork = ({ admission }: Run) => ({ state: 'executing', admission }) as const

/**
 * Transaction B. Returns a response when the run must not be settled: the reconciler has ended it because its process
 * seemed dead, or its result cannot be stored.
 */
async function keepResult(deps: RunDeps, run: Run, result: RunResult): Promise<RunResponse | undefined> {
  try {
    await deps.steps.keep(toKeepItem(deps, run, result), [`run:${run.id}`], stepOwner(run))
    return undefined
  } catch (error) {
    return error instanceof StepRefused ? readStoredResponse(deps, run.id) : giveUpRun(deps, run, error)
  }
}
