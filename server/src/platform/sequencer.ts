import { sql } from 'kysely'
import { type Db, isUnavailable, type Tx } from './db.ts'
import type { Log } from './log.ts'

/**
 * Numbers without gaps are given after commit, by one process at a time: a database sequence leaves gaps, and a
 * counter inside the business transaction makes every request wait for the one before it.
 */
export type SequencedTask = {
  name: string
  /** A cheap look, outside any transaction, whether there is something to number. */
  waiting(db: Db): Promise<boolean>
  /**
   * Numbers one batch, a few thousand at most, inside the sequencer's transaction: what it reads is what the last
   * committed pass left, and nobody else can write it meanwhile. It may be run again after a failure.
   */
  pass(tx: Tx): Promise<void>
}

export type SequencerDeps = {
  db: Db
  log: Pick<Log, 'info' | 'warn' | 'error' | 'debug'>
  /** Unique for each process, so that a restart is told from its predecessor. */
  instance: string
  tasks: readonly SequencedTask[]
  /** How long the others wait for a silent holder. Only liveness hangs on it; safety is the epoch's. */
  leaseMs?: number
  idleMs?: number
}

export type Sequencer = ReturnType<typeof createSequencer>

class LeaseLost extends Error {}

const MAX_BACKOFF_MS = 30_000
// Bounds one turn, so that the lease is renewed and a stop is heard even under an endless stream of work.
const MAX_PASSES_A_TURN = 100

export function createSequencer({ db, log, instance, tasks, leaseMs = 3_000, idleMs = 250 }: SequencerDeps) {
  let epoch: bigint | undefined
  let renewedAt = 0
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let started = false
  const troubled = new Map<string, { until: number; delayMs: number }>()

  /** Does what is waiting, once; false when another process holds the lease. */
  const turn = async (): Promise<boolean> => {
    epoch ??= await takeLease(db, instance, leaseMs)
    if (epoch === undefined) return false
    try {
      for (let passes = 0; passes < MAX_PASSES_A_TURN; passes += 1) if (!(await passOverTasks(epoch))) break
      if (performance.now() - renewedAt > leaseMs / 3) await inLease(epoch, async () => {})
      return true
    } catch (error) {
      if (!(error instanceof LeaseLost)) throw error
      log.warn({ epoch }, 'another process has taken over the sequencing')
      epoch = undefined
      return false
    }
  }

  /** One batch of each task in turn, so that none starves the others. */
  const passOverTasks = async (held: bigint): Promise<boolean> => {
    let worked = false
    for (const task of tasks) {
      const trouble = troubled.get(task.name)
      if (trouble && trouble.until > performance.now()) continue
      try {
        if (!(await task.waiting(db))) continue
        await inLease(held, (tx) => task.pass(tx))
        troubled.delete(task.name)
        worked = true
      } catch (error) {
        if (error instanceof LeaseLost || isUnavailable(error)) throw error
        // One task that cannot go on must not hold up the others.
        const delayMs = Math.min((trouble?.delayMs ?? idleMs) * 2, MAX_BACKOFF_MS)
        troubled.set(task.name, { until: performance.now() + delayMs, delayMs })
        log.error({ err: error, task: task.name }, 'a numbering pass failed and will be tried again')
      }
    }
    return worked
  }

  /** The lease row stays locked until commit: a take-over waits for us, or we find the epoch gone and write nothing. */
  const inLease = async (held: bigint, work: (tx: Tx) => Promise<void>) => {
    await db.transaction().execute(async (tx) => {
      const { numAffectedRows } = await sql`
        update sequencer_lease set expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
        where id = 1 and epoch = ${held} and holder = ${instance}
      `.execute(tx)
      if (numAffectedRows !== 1n) throw new LeaseLost()
      await work(tx)
    })
    renewedAt = performance.now()
  }

  const run = async () => {
    clearTimeout(timer)
    try {
      await turn()
    } catch (error) {
      log.debug({ err: error }, 'the sequencer could not reach the database')
    }
    if (started) timer = setTimeout(wake, epoch === undefined ? leaseMs / 2 : idleMs).unref()
  }

  const wake = () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    turn,
    leads: () => epoch !== undefined,
    start() {
      started = true
      void wake()
    },
    /** Gives the lease back, so that the next process need not wait for it to run out. */
    async stop() {
      started = false
      clearTimeout(timer)
      await running
      if (epoch === undefined) return
      await sql`update sequencer_lease set expires_at = '-infinity' where id = 1 and epoch = ${epoch}`
        .execute(db)
        .catch((error) => log.debug({ err: error }, 'the lease could not be given back and will run out'))
      epoch = undefined
    },
  }
}

/** By the database's time, so that two machines' clocks need not agree. */
async function takeLease(db: Db, instance: string, leaseMs: number): Promise<bigint | undefined> {
  const { rows } = await sql<{ epoch: bigint }>`
    update sequencer_lease
    set epoch = epoch + 1, holder = ${instance}, expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    where id in (select id from sequencer_lease where expires_at < clock_timestamp() for update skip locked)
    returning epoch
  `.execute(db)
  return rows[0]?.epoch
}
