import { type RawBuilder, sql } from 'kysely'
import type { Clock } from './clock.ts'
import type { Db } from './db.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'

/**
 * Runs sweeps on a timer. A sweep decides by `clock` what is due and claims it in the database, so any number of
 * processes may sweep at once and a test may call a sweep directly.
 */
export type Jobs = {
  every(name: string, milliseconds: number, sweep: () => Promise<unknown>): void
  /**
   * Runs a sweep when there is something to do for it. The conditions of all such sweeps are read in one statement, so
   * that an idle process asks the database once a second and not once for each sweep.
   */
  everyDue(name: string, due: DueCondition, sweep: () => Promise<unknown>): void
  /** Runs a sweep now instead of at its next interval. */
  wake(name: string): void
  stop(): Promise<void>
}

/** Whether a sweep has something to do; it must be an index look-up, because it is read once a second. */
export type DueCondition = (now: Date) => RawBuilder<boolean>

type Job = { run(): Promise<void>; idle(): Promise<void> | undefined; timer?: NodeJS.Timeout; due?: DueCondition }

const READ_DUE = 'due-work'
const READ_DUE_MS = 1_000

export function createJobs(
  { db, clock, log }: { db: Db; clock: Clock; log: Log },
  metrics?: Pick<Metrics, 'jobSeconds' | 'jobFailures'>,
): Jobs {
  const jobs = new Map<string, Job>()
  let stopped = false

  const createJob = (name: string, sweep: () => Promise<unknown>) => {
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
    return { run, idle: () => running }
  }

  const addJob = (name: string, milliseconds: number, sweep: () => Promise<unknown>) => {
    const job = createJob(name, sweep)
    const timer = setInterval(() => void job.run(), milliseconds)
    timer.unref()
    jobs.set(name, { ...job, timer })
  }

  const readDue = async () => {
    const conditional = [...jobs].flatMap(([name, { due }]) => (due ? [{ name, due }] : []))
    const now = clock.now()
    const columns = conditional.map(({ name, due }) => sql`${due(now)} as ${sql.ref(name)}`)
    const { rows } = await sql<Record<string, boolean>>`select ${sql.join(columns)}`.execute(db)
    // A sweep that takes long must not keep the others waiting.
    for (const { name } of conditional) if (rows[0]![name] && !stopped) void jobs.get(name)!.run()
  }

  return {
    every: addJob,
    everyDue(name, due, sweep) {
      jobs.set(name, { ...createJob(name, sweep), due })
      if (!jobs.has(READ_DUE)) addJob(READ_DUE, READ_DUE_MS, readDue)
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
