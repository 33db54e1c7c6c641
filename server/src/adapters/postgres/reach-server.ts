import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from './log.ts'
import { endOrphans, readPidFile, removeStaleLocks, type Site, spawnPostmaster, stopPostmaster } from './postmaster.ts'
import type { Presence } from './presence.ts'
import { identify } from './processes.ts'
import { openSession, type Session } from './session.ts'
import { claimFolder, socketFile } from './socket-folder.ts'

/** A share in a running server. `found` says that it ran already, `started` that we started it. */
export type Reached = { session: Session; pid: number; how: 'found' | 'started' }

export type ReachDeps = { site: Site; presence: Presence; log: Log; signal: AbortSignal }

const POLL_MS = 10
const WAIT_MS = 100
/** Replaying the log after a crash is bounded by max_wal_size, but a slow disk may take minutes over it. */
const START_LIMIT_MS = 300_000
/** Longer than a note of presence stays fresh. */
const ELSEWHERE_LIMIT_MS = 20_000

/** Finds the server of this cluster, or starts it, and takes a share in it. */
export async function reachServer({ site, presence, log, signal }: ReachDeps): Promise<Reached> {
  const { cluster, socketFolder } = site
  const since = performance.now()
  const say = createOnce(log)
  const pause = () => delay(WAIT_MS, undefined, { signal })

  for (;;) {
    signal.throwIfAborted()
    const waited = performance.now() - since
    if (waited > START_LIMIT_MS) throw new Error(`The database in ${cluster} was not ready after ${START_LIMIT_MS} ms.`)

    const lock = readPidFile(cluster)
    const session = lock && (await openSession(socketFolder, cluster))
    if (session) return { session, pid: lock.pid, how: 'found' }

    const holder = lock ? identify(lock.pid, cluster) : 'gone'
    if (lock && holder === 'unclear') {
      throw new Error(
        `Process ${lock.pid} is a PostgreSQL server that Countersign did not start, and it may be using ${cluster}: stop it first.`,
      )
    }
    if (lock && holder === 'server') {
      if (lock.ready && !existsSync(socketFile(socketFolder))) {
        say(`The database server (process ${lock.pid}) runs, but its socket was deleted: starting it anew.`)
        await stopPostmaster(lock.pid, cluster)
        continue
      }
      say(`Waiting for the database server (process ${lock.pid}), which is starting or stopping.`)
      await pause()
      continue
    }

    const elsewhere = presence.elsewhere()
    if (elsewhere && waited > ELSEWHERE_LIMIT_MS) {
      throw new Error(
        `The database in ${cluster} is in use by another machine or container (${elsewhere}). Two servers on one folder would destroy it: stop the other one, or give both the same DATABASE_URL.`,
      )
    }
    if (elsewhere) {
      say(
        `The database was in use by another machine or container (${elsewhere}) a moment ago: waiting until it is not.`,
      )
      await pause()
      continue
    }

    if (lock) say('The database was not stopped cleanly the last time: it recovers from its log what was acknowledged.')
    if (!claimFolder(socketFolder, site.account)) {
      throw new Error(`Somebody else has taken the folder of the database socket, ${socketFolder}: remove it.`)
    }
    presence.note()
    removeStaleLocks(site)
    const launch = await launchServer(site, signal)
    if (launch.reached) return launch.reached
    if (launch.failure === 'orphans') {
      say('Processes of the killed database server are still at work: ending them first.')
      endOrphans(cluster)
    } else if (launch.failure !== 'taken') {
      throw new Error(`The database server did not start: ${launch.failure}`)
    }
    await pause()
  }
}

/** Each sentence once, however often the loop comes by. */
function createOnce(log: Log): (message: string) => void {
  const said = new Set<string>()
  return (message) => {
    if (!said.has(message)) log.warn({}, message)
    said.add(message)
  }
}

/**
 * Starts the server and waits until it answers or ends. `taken`: another process started one first. `orphans`: a
 * killed server left processes behind that still use its memory. Whatever happens, no server is left starting.
 */
async function launchServer(
  site: Site,
  signal: AbortSignal,
): Promise<{ reached: Reached; failure?: never } | { reached?: never; failure: string }> {
  const offset = site.serverLog.size()
  const child = spawnPostmaster(site)
  const end = watchEnd(child)
  const deadline = performance.now() + START_LIMIT_MS
  try {
    while (end.reason === undefined) {
      const lock = readPidFile(site.cluster)
      const session = lock?.pid === child.pid && lock?.ready && (await openSession(site.socketFolder, site.cluster))
      if (session) return { reached: { session, pid: lock.pid, how: 'started' } }
      if (performance.now() > deadline) throw new Error(`The database server was not ready after ${START_LIMIT_MS} ms.`)
      await delay(POLL_MS, undefined, { signal })
    }
  } catch (error) {
    if (child.pid !== undefined) await stopPostmaster(child.pid, site.cluster)
    throw error
  }
  const told = site.serverLog.since(offset)
  if (/lock file .* already exists/.test(told)) return { failure: 'taken' }
  if (/shared memory block .* still in use/.test(told)) return { failure: 'orphans' }
  return { failure: told || end.reason }
}

function watchEnd(child: ChildProcess): { reason: string | undefined } {
  const end: { reason: string | undefined } = { reason: undefined }
  child.once('error', (error) => {
    end.reason = error.message
  })
  child.once('exit', (code, signal) => {
    end.reason ??= `it ended with ${signal ?? `code ${code}`}`
  })
  return end
}
