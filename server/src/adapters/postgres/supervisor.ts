import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { acquireServer, type ServerHandle } from './acquire-server.ts'
import type { HostMarker } from './host-marker.ts'
import type { Log } from './log.ts'
import { readPidFile, removeSocketFolder, type ServerSpec, stopPostmaster } from './postmaster.ts'
import { identifyProcess } from './processes.ts'
import { openSession } from './session.ts'
import { socketFile } from './socket-folder.ts'

export type Supervisor = {
  start(): Promise<void>
  stop(): Promise<void>
  pid(): number | undefined
  isUp(): boolean
  onChange(listener: (up: boolean) => void): () => void
}

const HOUSEKEEPING_MS = 5_000
const STOP_TIMEOUT_MS = 10_000
const FIRST_BACK_OFF_MS = 100
const MAX_BACK_OFF_MS = 5_000
/** After this time the server counts as stable, and its next failure starts a new back-off. */
const STEADY_MS = 10_000

/**
 * Keeps one session on the server (see session.ts). While it is open the server is up; when it ends, the server is
 * found again or restarted, with growing back-off.
 */
export function createSupervisor({
  spec,
  hostMarker,
  log,
}: {
  spec: ServerSpec
  hostMarker: HostMarker
  log: Log
}): Supervisor {
  const { cluster, socketFolder } = spec
  const listeners = new Set<(up: boolean) => void>()
  const shutdown = new AbortController()
  let current: ServerHandle | undefined
  let watching: Promise<void> | undefined
  let housekeeping: NodeJS.Timeout | undefined
  let stopping: Promise<void> | undefined

  const setCurrent = (next: ServerHandle | undefined) => {
    const changed = (current === undefined) !== (next === undefined)
    current = next
    if (changed) for (const listener of listeners) listener(next !== undefined)
  }

  async function connect(): Promise<ServerHandle> {
    const handle = await acquireServer({ spec, hostMarker, log, signal: shutdown.signal })
    try {
      await handle.session.prepare()
      return handle
    } catch (error) {
      await handle.session.close()
      throw error
    }
  }

  async function watch(): Promise<void> {
    let failures = 0
    while (current && !shutdown.signal.aborted) {
      const upSince = performance.now()
      await current.session.ended
      if (shutdown.signal.aborted) return
      log.warn(
        { pid: current.pid },
        'The connection to the database server was lost: requests are refused until it is back.',
      )
      setCurrent(undefined)
      if (performance.now() - upSince > STEADY_MS) failures = 0
      for (; !current && !shutdown.signal.aborted; failures += 1) {
        await delay(backOffMs(failures), undefined, { signal: shutdown.signal }).catch(() => undefined)
        await connect().then(setCurrent, (error: Error) => {
          if (!shutdown.signal.aborted) log.error({ err: error }, `The database is still down. ${error.message}`)
        })
      }
      if (current) log.info({ pid: current.pid }, 'The database is up again.')
    }
  }

  function runHousekeeping(): void {
    try {
      hostMarker.write()
      spec.serverLog.rotate()
      if (current && !existsSync(socketFile(socketFolder)) && identifyProcess(current.pid, cluster) === 'server') {
        // Open sessions would continue, but no new one could connect. When ours ends, the server is started again.
        log.warn({ pid: current.pid }, 'The database socket was deleted: restarting the database server.')
        process.kill(current.pid, 'SIGINT')
      }
    } catch (error) {
      log.warn({ err: error }, 'Database housekeeping failed; it will be retried.')
    }
  }

  async function start(): Promise<void> {
    const startedAt = performance.now()
    try {
      const handle = await connect()
      const otherUsers = await handle.session.countOtherUsers()
      setCurrent(handle)
      watching = watch()
      housekeeping = setInterval(runHousekeeping, HOUSEKEEPING_MS).unref()
      const ms = Math.round(performance.now() - startedAt)
      log.info({ pid: handle.pid, cluster, socketFolder, ms }, describeStart(handle, otherUsers))
    } catch (error) {
      await stop().catch((err: Error) => log.error({ err }, 'Cleaning up after the failed start failed too.'))
      throw error
    }
  }

  function stop(): Promise<void> {
    stopping ??= shutDown()
    return stopping
  }

  async function shutDown(): Promise<void> {
    shutdown.abort()
    clearInterval(housekeeping)
    // A restart in progress is aborted first; it leaves no starting server behind.
    if (!current) await watching
    const handle = current ?? (await waitForServer(STOP_TIMEOUT_MS))
    setCurrent(undefined)
    // If the session has just broken, the server has just died.
    const isLastUser = await handle?.session.tryLockExclusively().catch(() => undefined)
    if (handle && isLastUser === false) {
      await handle.session.close()
      log.info({ pid: handle.pid }, 'Left the database server running: another process of Countersign uses it.')
      return
    }
    if (handle && isLastUser) {
      const stopMode = await stopPostmaster(handle.pid, cluster)
      log.info({ pid: handle.pid, way: stopMode }, 'Stopped the database server.')
    }
    await handle?.session.close()
    hostMarker.remove()
    removeSocketFolder(spec)
  }

  /** The server may be recovering from a crash: wait for it, so that it can be stopped cleanly. */
  async function waitForServer(timeoutMs: number): Promise<Pick<ServerHandle, 'session' | 'pid'> | undefined> {
    const deadline = performance.now() + timeoutMs
    for (;;) {
      const pidFile = readPidFile(cluster)
      if (!pidFile) return undefined
      const session = await openSession(socketFolder, cluster)
      if (session) return { session, pid: pidFile.pid }
      if (identifyProcess(pidFile.pid, cluster) !== 'server' || performance.now() > deadline) return undefined
      await delay(FIRST_BACK_OFF_MS)
    }
  }

  return {
    start,
    stop,
    pid: () => current?.pid,
    isUp: () => current !== undefined,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** The first restart is immediate, later ones back off. */
const backOffMs = (failures: number) =>
  failures === 0 ? 0 : Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS)

function describeStart({ pid, origin }: ServerHandle, otherUsers: number): string {
  if (origin === 'started') return `Started the database server (process ${pid}).`
  if (otherUsers > 0) return `Another process of Countersign runs the database server (process ${pid}): sharing it.`
  return `An earlier run of Countersign ended without stopping its database server (process ${pid}): took it over. Nothing was lost.`
}
