import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostMarker } from './host-marker.ts'
import type { Log } from './log.ts'
import {
  readPidFile,
  removeStaleLocks,
  type ServerSpec,
  spawnPostmaster,
  stopOrphans,
  stopPostmaster,
} from './postmaster.ts'
import { identifyProcess } from './processes.ts'
import { openSession, type Session } from './session.ts'
import { claimFolder, socketFile } from './socket-folder.ts'

/** A session on a running server. `found`: it was already running; `started`: this process started it. */
export type ServerHandle = { session: Session; pid: number; origin: 'found' | 'started' }

export type AcquireDeps = { spec: ServerSpec; hostMarker: HostMarker; log: Log; signal: AbortSignal }

const POLL_MS = 10
const WAIT_MS = 100
/** Recovery after a crash is bounded by max_wal_size, but may take minutes on a slow disk. */
const START_TIMEOUT_MS = 300_000
/** Longer than a host marker stays valid. */
const OTHER_HOST_TIMEOUT_MS = 20_000

/** Finds the server of this cluster, or starts it, and opens a session on it. */
export async function acquireServer({ spec, hostMarker, log, signal }: AcquireDeps): Promise<ServerHandle> {
  const { cluster, socketFolder } = spec
  const startedAt = performance.now()
  const warnOnce = createWarnOnce(log)
  const pause = () => delay(WAIT_MS, undefined, { signal })

  for (;;) {
    signal.throwIfAborted()
    const waitedMs = performance.now() - startedAt
    if (waitedMs > START_TIMEOUT_MS)
      throw new Error(`The database in ${cluster} was not ready after ${START_TIMEOUT_MS} ms.`)

    const pidFile = readPidFile(cluster)
    const session = pidFile && (await openSession(socketFolder, cluster))
    if (session) return { session, pid: pidFile.pid, origin: 'found' }

    const lockHolder = pidFile ? identifyProcess(pidFile.pid, cluster) : 'gone'
    if (pidFile && lockHolder === 'unclear') {
      throw new Error(
        `Process ${pidFile.pid} is a PostgreSQL server that Countersign did not start, and it may be using ${cluster}: stop it first.`,
      )
    }
    if (pidFile && lockHolder === 'server') {
      if (pidFile.ready && !existsSync(socketFile(socketFolder))) {
        warnOnce(`The database server (process ${pidFile.pid}) is running, but its socket was deleted: restarting it.`)
        await stopPostmaster(pidFile.pid, cluster)
        continue
      }
      warnOnce(`Waiting for the database server (process ${pidFile.pid}), which is starting or stopping.`)
      await pause()
      continue
    }

    const otherHost = hostMarker.otherHost()
    if (otherHost && waitedMs > OTHER_HOST_TIMEOUT_MS) {
      throw new Error(
        `The database in ${cluster} is in use by another machine or container (${otherHost}). Two servers on one folder would destroy it: stop the other one, or give both the same DATABASE_URL.`,
      )
    }
    if (otherHost) {
      warnOnce(`The database was just in use by another machine or container (${otherHost}): waiting until it is free.`)
      await pause()
      continue
    }

    if (pidFile) warnOnce('The database was not shut down cleanly: recovering all acknowledged writes from its log.')
    if (!claimFolder(socketFolder, spec.account)) {
      throw new Error(`The folder of the database socket, ${socketFolder}, belongs to another user: remove it.`)
    }
    hostMarker.write()
    removeStaleLocks(spec)
    const launch = await launchServer(spec, signal)
    if (launch.handle) return launch.handle
    if (launch.failure === 'orphans') {
      warnOnce('Processes of the killed database server are still running: stopping them first.')
      stopOrphans(cluster)
    } else if (launch.failure !== 'taken') {
      throw new Error(`The database server did not start: ${launch.failure}`)
    }
    await pause()
  }
}

/** Logs each message once, although the loop repeats. */
function createWarnOnce(log: Log): (message: string) => void {
  const loggedMessages = new Set<string>()
  return (message) => {
    if (!loggedMessages.has(message)) log.warn({}, message)
    loggedMessages.add(message)
  }
}

/**
 * Starts the server and waits until it answers or exits. `taken`: another process started one first. `orphans`: processes
 * of a killed server still use its shared memory. On failure no starting server is left behind.
 */
async function launchServer(
  spec: ServerSpec,
  signal: AbortSignal,
): Promise<{ handle: ServerHandle; failure?: never } | { handle?: never; failure: string }> {
  const offset = spec.serverLog.size()
  const child = spawnPostmaster(spec)
  const exit = watchExit(child)
  const deadline = performance.now() + START_TIMEOUT_MS
  try {
    while (exit.reason === undefined) {
      const pidFile = readPidFile(spec.cluster)
      const session =
        pidFile?.pid === child.pid && pidFile?.ready && (await openSession(spec.socketFolder, spec.cluster))
      if (session) return { handle: { session, pid: pidFile.pid, origin: 'started' } }
      if (performance.now() > deadline)
        throw new Error(`The database server was not ready after ${START_TIMEOUT_MS} ms.`)
      await delay(POLL_MS, undefined, { signal })
    }
  } catch (error) {
    if (child.pid !== undefined) await stopPostmaster(child.pid, spec.cluster)
    throw error
  }
  const serverOutput = spec.serverLog.readSince(offset)
  if (/lock file .* already exists/.test(serverOutput)) return { failure: 'taken' }
  if (/shared memory block .* still in use/.test(serverOutput)) return { failure: 'orphans' }
  return { failure: serverOutput || exit.reason }
}

function watchExit(child: ChildProcess): { reason: string | undefined } {
  const exit: { reason: string | undefined } = { reason: undefined }
  child.once('error', (error) => {
    exit.reason = error.message
  })
  child.once('exit', (code, signal) => {
    exit.reason ??= `it ended with ${signal ?? `code ${code}`}`
  })
  return exit
}
