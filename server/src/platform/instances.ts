import { randomBytes } from 'node:crypto'
import { createBeatObserver } from './beat-observer.ts'
import type { Config } from './config.ts'
import type { Database } from './db.ts'
import { SCHEMA_VERSION } from './generated/schema-version.ts'
import { describeThisProcess, hasEnded, type LocalProcess } from './local-process.ts'
import type { Log } from './log.ts'
import { createNotifications, type Notifications } from './notifications.ts'
import { requireSession } from './pooler.ts'

/**
 * Which processes are alive. Each writes a beat into its row of `instances` and reads the beats of the others.
 *
 * Another process is dead when this one has seen the same beat over the whole grace, by its own monotonic clock and on one
 * connection: after a lost connection, or a silence of the database, the observation starts again, so that nobody is
 * thought dead because the database was away. It is also dead when its row vanished under observation (it left) or when
 * it ran on this machine and the operating system says that it has ended.
 *
 * Only liveness depends on this. A process that is thought dead and is not may go on: every step of a run is fenced by the
 * admission it began with, and every write of the chain by its epoch.
 *
 * The beat uses the listening connection, which is direct and never waits behind requests for a connection of the pool. Its
 * commit does not wait for a standby: a beat that a failover loses is followed by the next.
 */
export type Instances = {
  readonly id: string
  /** Which of these processes are dead. One without a row is dead when it had none over the whole grace. */
  findDead(ids: readonly string[]): Promise<string[]>
  /** Whether this process has seen its beat change. */
  isSeenAlive(id: string): boolean
  /** True while no other process can think that this one is dead. */
  isCertainlyAlive(): boolean
  /** Deletes the rows of dead processes of which nothing is left to take over; `findNeeded` returns those that still have work. */
  removeDead(findNeeded: () => Promise<string[]>): Promise<void>
  /** Stops the beat and removes the row, so that others take over at once what is left. */
  close(): Promise<void>
}

export type InstanceDeps = {
  id: string
  session: Pick<Notifications, 'query' | 'connectionCount'>
  log: Log
  beatMs: number
  graceMs: number
  self?: LocalProcess
}

type Row = LocalProcess & { id: string; beat: bigint }

const MAX_INSTANCES = 10_000
const CLOSE_TIMEOUT_MS = 2_000

export async function createInstances({
  id,
  session,
  log,
  beatMs,
  graceMs,
  self = describeThisProcess(),
}: InstanceDeps): Promise<Instances> {
  const observer = createBeatObserver<Row>({ graceMs, hasEnded: (row) => hasEnded(row, self) })
  let beat = 0
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  let hasWarned = false
  let closed = false
  let timer: NodeJS.Timeout | undefined
  let beating: Promise<void> = Promise.resolve()

  const isCertainlyAlive = () => performance.now() - acknowledgedAt < graceMs

  const writeBeat = async () => {
    const connection = session.connectionCount()
    const sentAt = performance.now()
    beat += 1
    const values = [id, beat, self.host, self.pid, self.machine, self.pid_started, SCHEMA_VERSION]
    const rows = await session.query<Row>(BEAT, values, graceMs)
    acknowledgedAt = sentAt
    if (session.connectionCount() === connection)
      observer.look({ rows, connection, sentAt, receivedAt: performance.now() })
    else observer.interrupt()
  }

  const beatOrWarn = async () => {
    try {
      await writeBeat()
      if (hasWarned) log.info({}, 'this process writes its beat again')
      hasWarned = false
    } catch (error) {
      observer.interrupt()
      if (hasWarned || isCertainlyAlive()) return
      hasWarned = true
      log.warn(
        { err: error, grace_ms: graceMs },
        'this process could not write its beat: others may take its runs over, and its own steps then find them taken',
      )
    }
  }

  const schedule = () => {
    if (closed) return
    timer = setTimeout(() => {
      beating = beatOrWarn().then(schedule)
    }, beatMs)
    timer.unref()
  }

  await writeBeat()
  schedule()
  return {
    id,
    isCertainlyAlive,
    isSeenAlive: observer.isSeenAlive,
    async findDead(ids) {
      const now = performance.now()
      const states = ids
        .filter((other) => other !== id)
        .map((other) => ({ other, state: observer.stateOf(other, now) }))
      const inState = (wanted: string) => states.filter(({ state }) => state === wanted).map(({ other }) => other)
      const absent = inState('absent')
      if (absent.length === 0) return inState('dead')
      // Until the release after this one: a process of the release before has no row, and holds a lock while it is alive.
      const rows = await session.query<{ id: string }>(UNLOCKED, [absent], graceMs)
      return [...inState('dead'), ...rows.map((row) => row.id)]
    },
    async removeDead(findNeeded) {
      const dead = observer.deadRows()
      if (dead.length === 0) return
      const needed = new Set(await findNeeded())
      const unneeded = dead.filter((row) => !needed.has(row.id))
      if (unneeded.length > 0)
        await session.query(
          REMOVE,
          [unneeded.map((row) => row.id), unneeded.map((row) => row.beat.toString())],
          graceMs,
        )
    },
    async close() {
      closed = true
      clearTimeout(timer)
      await beating
      await session
        .query('delete from instances where id = $1', [id], CLOSE_TIMEOUT_MS)
        .catch((error) => log.debug({ err: error }, 'the row of this process could not be removed'))
    },
  }
}

/** For a process without a service of its own: with a session for the beat alone. */
export async function openInstances(
  database: Pick<Database, 'connect' | 'hasDirectAddress'>,
  { INSTANCE_BEAT_MS: beatMs, INSTANCE_GRACE_MS: graceMs }: Pick<Config, 'INSTANCE_BEAT_MS' | 'INSTANCE_GRACE_MS'>,
  log: Log,
): Promise<Instances> {
  const probe = await database.connect()
  await requireSession(probe, database).finally(() => probe.end())
  const id = randomBytes(12).toString('hex')
  const session = await createNotifications(database, id, log)
  const instances = await createInstances({ id, session, log, beatMs, graceMs })
  const close = async () => {
    await instances.close()
    await session.close()
  }
  return { ...instances, close }
}

/** One statement writes the own beat and reads all others. Its commit, and no other of the session, does not wait for a standby. */
const BEAT = `
  with own as (
    insert into instances (id, beat, host, pid, machine, pid_started, schema_version)
    select $1, $2::bigint, $3, $4::int, $5, $6, $7::int from set_config('synchronous_commit', 'off', true) as mode where mode = 'off'
    on conflict (id) do update set beat = excluded.beat)
  select id, beat, host, pid, machine, pid_started from instances where id <> $1 order by id limit ${MAX_INSTANCES}`

/** Not one that has beaten since. */
const REMOVE = `
  delete from instances using unnest($1::text[], $2::bigint[]) as dead(id, beat)
  where instances.id = dead.id and instances.beat = dead.beat`

const UNLOCKED = `
  select id from unnest($1::text[]) as id where pg_try_advisory_xact_lock(hashtextextended('instance:' || id, 0))`
