import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/**
 * Wakes the sweeps. A sweep decides by `clock` what is due and claims it in the database, so that any number of
 * processes may sweep at once and a test may call it directly; here is only the waking.
 */
export type Jobs = {
  every(name: string, milliseconds: number, sweep: () => Promise<unknown>): void
  /** Runs a sweep soon, without waiting for its turn. */
  wake(name: string): void
  stop(): Promise<void>
}

export function createJobs(log: Log, metrics?: Pick<Metrics, 'jobSeconds' | 'jobFailures'>): Jobs {
  const jobs = new Map<string, { run(): Promise<void>; idle(): Promise<void> | undefined; timer: NodeJS.Timeout }>()
  let stopped = false

  return {
    every(name, milliseconds, sweep) {
      let running: Promise<void> | undefined
      let again = false
      const once = async () => {
        do {
          again = false
          const timed = metrics?.jobSeconds.startTimer({ job: name })
          try {
            await sweep()
            timed?.()
          } catch (error) {
            metrics?.jobFailures.inc({ job: name })
            if (!stopped) log.warn({ err: error, job: name }, 'a sweep failed and will be tried again')
          }
        } while (again && !stopped)
      }
      const run = async () => {
        if (running) {
          again = true
          return running
        }
        running = once()
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
