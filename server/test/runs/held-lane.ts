import { createOfflineLane } from '../../src/adapters/lanes/offline.ts'
import type { Lane } from '../../src/modules/runs/lane.ts'

export type HeldLane = Lane & {
  /** Lets all tasks go that are held, and holds the next ones. */
  letGo(): void
  /** The tasks that were begun and have not ended. */
  held: Set<string>
  /** The tasks whose work was aborted. */
  aborted: Set<string>
}

/** A lane that holds each run with the word "slow" once, until the test lets it go or its work is aborted. */
export function createHeldLane(): HeldLane {
  const offline = createOfflineLane()
  const openers = new Set<() => void>()
  const knownRuns = new Set<string>()
  return {
    ...offline,
    isMomentary: (_, task) => !task.includes('slow'),
    held: new Set(),
    aborted: new Set(),
    letGo: () => {
      for (const open of openers) open()
    },
    async execute(task) {
      // Verification of an offline lane repeats the work.
      if (!task.task.includes('slow') || knownRuns.has(task.runId)) return offline.execute(task)
      knownRuns.add(task.runId)
      this.held.add(task.task)
      await new Promise<void>((open) => {
        openers.add(open)
        task.signal.addEventListener('abort', () => open())
      })
      this.held.delete(task.task)
      if (!task.signal.aborted) return offline.execute(task)
      this.aborted.add(task.task)
      return { ok: false, reason: 'timeout', message: 'The work was aborted.', retryable: true }
    },
  }
}
