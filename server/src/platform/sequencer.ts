import { sql } from 'kysely'
import { type Db, isUnavailable, type Tx } from './db.ts'
import type { Log } from './log.ts'

/**
 * Gapless numbers are assigned after commit, by one process at a time: a database sequence leaves gaps, and a
 * counter inside the business transaction makes every request wait for the one before it.
 */
export type SequencedTask = {
  name: string
  /** A cheap check, outside any transaction, whether anything waits for its number. */
  hasWork(db: Db): Promise<boolean>
  /**
   * Numbers one batch, a few thousand at most, inside the sequencer's transaction: it reads what the last committed
   * batch wrote, and no other process can write meanwhile. It is run again after a failure. The answer is whether more may
   * be waiting: after false, what comes later is left to the next run, so that it shares a batch with others.
   */
  processBatch(tx: Tx): Promise<boolean>
  /** Called when the commit of a batch was confirmed: what is signed for readers is signed here. */
  afterCommit?(db: Db): Promise<void>
  /** Called when this process has taken the lease: another one may have died between a commit and what follows it. */
  onLease?(): void
  /** Called after each run of the process that holds the lease, outside any transaction. */
  maintain?(db: Db): Promise<void>
}

/** Thrown by a task to undo its batch and be called again at once; it has already changed what it will do. */
export class BatchWithdrawn extends Error {}

export type SequencerDeps = {
  db: Db
  log: Pick<Log, 'info' | 'warn' | 'error' | 'debug'>
  /** Unique for each process start, so that a restarted process does not hold its predecessor's lease. */
  instance: string
  tasks: readonly SequencedTask[]
  /** How long others wait for a silent holder. Only liveness depends on it; the epoch guarantees safety. */
  leaseMs?: number
  idleMs?: number
}

export type Sequencer = ReturnType<typeof createSequencer>

class LeaseLostError extends Error {}

const MAX_BACKOFF_MS = 30_000
// Bounds one run, so that the lease is renewed and a stop takes effect even under constant load.
const MAX_BATCHES_PER_RUN = 100
// Under load, batches follow one another at this distance: a batch has a cost of its own, which its rows share.
const BUSY_MS = 200
// Without work the distance doubles up to this many times, so that an idle process asks once a second.
const MAX_IDLE_DOUBLINGS = 2

export function createSequencer({ db, log, instance, tasks, leaseMs = 5_000, idleMs = 250 }: SequencerDeps) {
  let epoch: bigint | undefined
  let renewedAt = 0
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let started = false
  let wasBusy = false
  let idleRuns = 0
  const backoffs = new Map<string, { until: number; delayMs: number }>()

  /** Processes what is waiting; false when another process holds the lease. */
  const runOnce = async (): Promise<boolean> => {
    if (epoch === undefined) {
      epoch = await acquireLease(db, instance, leaseMs)
      if (epoch === undefined) return false
      for (const task of tasks) task.onLease?.()
    }
    wasBusy = false
    try {
      for (let batches = 0; batches < MAX_BATCHES_PER_RUN; batches += 1) if (!(await processTasks(epoch))) break
      if (performance.now() - renewedAt > leaseMs / 2) await withLease(epoch, async () => {})
      for (const task of tasks) await task.maintain?.(db)
      return true
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error
      log.warn({ epoch }, 'another process has taken over the sequencer lease')
      epoch = undefined
      return false
    }
  }

  /** One batch of each task in turn, so that none starves the others; true when more may be waiting. */
  const processTasks = async (leaseEpoch: bigint): Promise<boolean> => {
    let hasMore = false
    for (const task of tasks) {
      const backoff = backoffs.get(task.name)
      if (backoff && backoff.until > performance.now()) continue
      try {
        if (!(await task.hasWork(db))) continue
        wasBusy = true
        if (await withLease(leaseEpoch, (tx) => task.processBatch(tx))) hasMore = true
        await task.afterCommit?.(db)
        backoffs.delete(task.name)
      } catch (error) {
        if (error instanceof BatchWithdrawn) {
          hasMore = true
          continue
        }
        if (error instanceof LeaseLostError || isUnavailable(error)) throw error
        // A failing task must not hold up the others.
        const delayMs = Math.min((backoff?.delayMs ?? idleMs) * 2, MAX_BACKOFF_MS)
        backoffs.set(task.name, { until: performance.now() + delayMs, delayMs })
        log.error({ err: error, task: task.name }, 'a sequencer task failed and will be retried')
      }
    }
    return hasMore
  }

  /** The lease row stays locked until commit: a take-over waits, or this process finds the epoch changed and writes nothing. */
  const withLease = async <Result>(leaseEpoch: bigint, work: (tx: Tx) => Promise<Result>): Promise<Result> => {
    const result = await db.transaction().execute(async (tx) => {
      const { numAffectedRows } = await sql`
        update sequencer_lease set expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
        where id = 1 and epoch = ${leaseEpoch} and holder = ${instance}
      `.execute(tx)
      if (numAffectedRows !== 1n) throw new LeaseLostError()
      return work(tx)
    })
    renewedAt = performance.now()
    return result
  }

  const run = async () => {
    clearTimeout(timer)
    try {
      await runOnce()
    } catch (error) {
      log.debug({ err: error }, 'the sequencer could not reach the database')
    }
    idleRuns = wasBusy ? 0 : idleRuns + 1
    if (started) timer = setTimeout(wake, nextDelayMs()).unref()
  }

  const nextDelayMs = () => {
    if (epoch === undefined) return leaseMs / 2
    if (wasBusy) return Math.min(BUSY_MS, idleMs)
    return idleMs * 2 ** Math.min(idleRuns - 1, MAX_IDLE_DOUBLINGS)
  }

  const wake = () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }

  return {
    runOnce,
    isLeader: () => epoch !== undefined,
    start() {
      started = true
      void wake()
    },
    /** Releases the lease, so that the next process does not wait for it to expire. */
    async stop() {
      started = false
      clearTimeout(timer)
      await running
      if (epoch === undefined) return
      await sql`update sequencer_lease set expires_at = '-infinity' where id = 1 and epoch = ${epoch}`
        .execute(db)
        .catch((error) => log.debug({ err: error }, 'the lease could not be released and will expire'))
      epoch = undefined
    },
  }
}

/** Uses the database's clock, so that the clocks of two machines need not agree. */
async function acquireLease(db: Db, instance: string, leaseMs: number): Promise<bigint | undefined> {
  const { rows } = await sql<{ epoch: bigint }>`
    update sequencer_lease
    set epoch = epoch + 1, holder = ${instance}, expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    where id in (select id from sequencer_lease where expires_at < clock_timestamp() for update skip locked)
    returning epoch
  `.execute(db)
  return rows[0]?.epoch
}
