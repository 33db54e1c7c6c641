import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/**
 * Runs sweeps on a timer. A sweep decides by `clock` what is due and claims it in the database, so any number of
 * processes may sweep at once and a test may call a sweep directly.
 */
export type Jobs = {
  every(name: string, milliseconds: number, sweep: () => Promise<unknown>): void
  /** Runs a sweep now instead of at its next interval. */
  wake(name: string): void
  stop(): Promise<void>
}

export function createJobs(log: Log, metrics?: Pick<Metrics, 'jobSeconds' | 'jobFailures'>): Jobs {
  const jobs = new Map<string, { run(): Promise<void>; idle(): Promise<void> | undefined; timer: NodeJS.Timeout }>()
  let stopped = false

  return {
    every(name, milliseconds, sweep) {
      let running: Promise<void> | undefined
      let rerun = false
      const runSweep = async () => {
        do {
          rerun = false
          const stopTimer = metrics?.jobSeconds.startTimer({ job: name })
          try {
            await sweep()
            stopTimer?.()
          } catch (error) {
            metrics?.jobFailures.inc({ job: name })
            if (!stopped) log.warn({ err: error, job: name }, 'a sweep failed and will be retried')
          }
        } while (rerun && !stopped)
      }
      const run = async () => {
        if (running) {
          rerun = true
          return running
        }
        running = runSweep()
        await running
        running = undefined
      }
      const timer = setInterval(() => void run(), milliseconds)
      timer.unref()
      jobs.set(name, { run, idle: () => running, timer })
    },
    wake(name) {
      if (!stopped) void jobs.get(name)?.run()
    },
    async stop() {
      stopped = true
      for (const { timer } of jobs.values()) clearInterval(timer)
      await Promise.all([...jobs.values()].map(({ idle }) => idle()))
    },
  }
}
