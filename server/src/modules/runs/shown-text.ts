import { isUnavailable } from '../../platform/db.ts'
import { toStorableText } from '../../platform/storable-text.ts'
import { paymentMethodOf } from './draft-receipt.ts'
import type { PartialOutput } from './lane.ts'
import type { Run } from './paid-unit.ts'
import type { RunDeps } from './run-deps.ts'
import { readAdmission, storeShownText } from './runs.store.ts'

const FIRST_INTERVAL_MS = 500
/** The longer the text, the more every write of it costs, so the longer the time to the next. */
const INTERVAL_MS_PER_CHARACTER = 0.1

/**
 * Whether a run's text may be seen while it is written: the money is with us already, and the caller pays for the output
 * whether it is verified or not.
 */
export const showsText = (run: Run): boolean =>
  run.kind === 'run' &&
  run.terms.async !== undefined &&
  paymentMethodOf(run) === 'wallet' &&
  run.request.options?.accept_unverified === true

/**
 * Stores the text of a run as it grows. Streams show nothing but what is stored, and the first text that is stored gives the
 * run another admission: a cancellation that has read the run before is refused, reads it again and charges.
 */
export function createShownText(deps: RunDeps, run: Run) {
  const shownAdmission = `${run.admission}:shown`
  let admission: string | undefined = run.admission
  let next: PartialOutput | undefined
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let hasEnded = false

  const write = async (part: PartialOutput) => {
    try {
      const stored = { ...part, output: toStorableText(part.output) }
      if (await storeShownText(deps.db, run, shownAdmission, stored)) admission = shownAdmission
      else hasEnded = true
      deps.background.noteChange(run.id)
    } catch (error) {
      // It may have been stored all the same; `close` asks.
      admission = undefined
      if (!isUnavailable(error)) deps.log.error({ err: error, run_id: run.id }, 'the text of a run could not be stored')
    }
  }

  const schedule = (delayMs: number) => {
    if (timer || writing || hasEnded) return
    timer = setTimeout(() => {
      timer = undefined
      const part = next
      if (!part) return
      next = undefined
      writing = write(part).then(() => {
        writing = undefined
        if (next) schedule(FIRST_INTERVAL_MS + part.output.length * INTERVAL_MS_PER_CHARACTER)
      })
    }, delayMs)
  }

  return {
    show(part: PartialOutput) {
      next = part
      schedule(0)
    },

    /** The admission that the steps of the run have from now on. */
    async close(): Promise<string> {
      hasEnded = true
      clearTimeout(timer)
      await writing
      return admission ?? (await readAdmission(deps.db, run.id)) ?? run.admission
    },
  }
}
