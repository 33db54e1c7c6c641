import { createFairQueue } from '../../platform/fair-queue.ts'
import type { Log } from '../../platform/log.ts'
import { Problem } from '../../platform/problem.ts'
import { isEnded, type RunWatch } from './run-watch.ts'

/** How many runs without a waiting caller a process takes of one tenant or payer, and of all of them. */
const MAX_OF_OWNER = 512
const MAX_OF_ALL = 4_096
const RETRY_AFTER_SECONDS = 5

export type BackgroundRuns = ReturnType<typeof createBackgroundRuns>

/**
 * Works on runs whose caller does not wait: those asked for with `Prefer: respond-async`, those taken over from a process
 * that died, and approved runs. They take turns by tenant or payer. The work of a run that ends elsewhere, because it was
 * cancelled or taken over, is aborted.
 */
export function createBackgroundRuns({ slots, watch, log }: { slots: number; watch: RunWatch; log: Log }) {
  // Room is checked before a run is admitted; one that is admitted is never refused its turn.
  const queue = createFairQueue({
    slots,
    maxWaiting: Number.POSITIVE_INFINITY,
    maxWaitingOfAll: Number.POSITIVE_INFINITY,
  })
  const underWay = new Map<string, { done: Promise<void>; abort: () => void }>()
  const hasRoom = (owner: string) => {
    const ofOwner = queue.load(owner)
    return underWay.size < MAX_OF_ALL && ofOwner.underWay + ofOwner.waiting < MAX_OF_OWNER
  }

  return {
    hasRoom,

    /** Refuses before anything is admitted or charged. */
    requireRoom(owner: string) {
      if (hasRoom(owner)) return
      throw new Problem(
        'error',
        'Too many asynchronous runs are under way; nothing was done and nothing was charged. Send it again later.',
        { status: 503, code: 'unavailable', retryable: true, retryAfterSeconds: RETRY_AFTER_SECONDS, expected: true },
      )
    },

    /** Begins the work when it is its owner's turn. A run that cannot be ended here is ended by the orphan sweep. */
    start(runId: string, owner: string, work: (signal: AbortSignal) => Promise<unknown>) {
      const controller = new AbortController()
      const unfollow = watch.follow(runId, (status) => {
        if (isEnded(status)) controller.abort()
      })
      const done = queue
        .run(owner, async () => void (await work(controller.signal)))
        .catch((error: unknown) => {
          if (!(error instanceof Problem)) log.error({ err: error, run_id: runId }, 'a background run did not end here')
        })
        .finally(() => {
          unfollow()
          underWay.delete(runId)
          watch.noteChange(runId)
        })
      underWay.set(runId, { done, abort: () => controller.abort() })
    },

    noteChange: watch.noteChange,

    /** Stops the work of a run that was ended, if this process is at it. */
    abort: (runId: string) => underWay.get(runId)?.abort(),

    /** Waits for the runs that this process has begun. */
    async idle(): Promise<void> {
      await Promise.all([...underWay.values()].map(({ done }) => done))
    },
  }
}
