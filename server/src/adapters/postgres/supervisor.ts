import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from './log.ts'
import { readPidFile, removeSocketFolder, type Site, stopPostmaster } from './postmaster.ts'
import type { Presence } from './presence.ts'
import { identify } from './processes.ts'
import { type Reached, reachServer } from './reach-server.ts'
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
const STOP_LIMIT_MS = 10_000
const FIRST_BACK_OFF_MS = 100
const MAX_BACK_OFF_MS = 5_000
/** A server that lived this long had started well: its next death begins a new count. */
const STEADY_MS = 10_000

/**
 * Keeps one session on the server (see session.ts). While it lasts the server is up; when it ends, the server is
 * looked for and, if need be, started again, with pauses that grow.
 */
export function createSupervisor({ site, presence, log }: { site: Site; presence: Presence; log: Log }): Supervisor {
  const { cluster, socketFolder } = site
  const listeners = new Set<(up: boolean) => void>()
  const ending = new AbortController()
  let current: Reached | undefined
  let watching: Promise<void> | undefined
  let housekeeping: NodeJS.Timeout | undefined
  let stopped: Promise<void> | undefined

  const become = (next: Reached | undefined) => {
    const changed = (current === undefined) !== (next === undefined)
    current = next
    if (changed) for (const listener of listeners) listener(next !== undefined)
  }

  async function reach(): Promise<Reached> {
    const reached = await reachServer({ site, presence, log, signal: ending.signal })
    try {
      await reached.session.prepare()
      return reached
    } catch (error) {
      await reached.session.close()
      throw error
    }
  }

  async function watch(): Promise<void> {
    let failures = 0
    while (current && !ending.signal.aborted) {
      const upSince = performance.now()
      await current.session.ended
      if (ending.signal.aborted) return
      log.warn({ pid: current.pid }, 'The database server ended or cut us off: requests are refused until it is back.')
      become(undefined)
      if (performance.now() - upSince > STEADY_MS) failures = 0
      for (; !current && !ending.signal.aborted; failures += 1) {
        await delay(backOff(failures), undefined, { signal: ending.signal }).catch(() => undefined)
        await reach().then(become, (error: Error) => {
          if (!ending.signal.aborted) log.error({ err: error }, `The database is still down. ${error.message}`)
        })
      }
      if (current) log.info({ pid: current.pid }, 'The database is up again.')
    }
  }

  function keepHouse(): void {
    try {
      presence.note()
      site.serverLog.cap()
      if (current && !existsSync(socketFile(socketFolder)) && identify(current.pid, cluster) === 'server') {
        // Sessions would live on, but no new one could be had. The end of ours makes the watch start it anew.
        log.warn({ pid: current.pid }, 'The database socket was deleted: restarting the database server.')
        process.kill(current.pid, 'SIGINT')
      }
    } catch (error) {
      log.warn({ err: error }, 'Looking after the database failed; trying again soon.')
    }
  }

  async function start(): Promise<void> {
    const begin = performance.now()
    try {
      const reached = await reach()
      const others = await reached.session.countOthers()
      become(reached)
      watching = watch()
      housekeeping = setInterval(keepHouse, HOUSEKEEPING_MS).unref()
      const ms = Math.round(performance.now() - begin)
      log.info({ pid: reached.pid, cluster, socketFolder, ms }, describeStart(reached, others))
    } catch (error) {
      await stop().catch((err: Error) => log.error({ err }, 'Cleaning up after the failed start failed too.'))
      throw error
    }
  }

  function stop(): Promise<void> {
    stopped ??= end()
    return stopped
  }

  async function end(): Promise<void> {
    ending.abort()
    clearInterval(housekeeping)
    // A restart under way is called off first; it leaves no server that is only starting.
    if (!current) await watching
    const reached = current ?? (await findAgain(STOP_LIMIT_MS))
    become(undefined)
    // A session that broke just now had a server that died just now.
    const alone = await reached?.session.takeAlone().catch(() => undefined)
    if (reached && alone === false) {
      await reached.session.close()
      log.info({ pid: reached.pid }, 'Left the database server running: another process of Countersign uses it.')
      return
    }
    if (reached && alone) {
      const way = await stopPostmaster(reached.pid, cluster)
      log.info({ pid: reached.pid, way }, 'Stopped the database server.')
    }
    await reached?.session.close()
    presence.clear()
    removeSocketFolder(site)
  }

  /** The server may be coming back from a crash at this very moment: it is waited for, so as to stop it in order. */
  async function findAgain(limitMs: number): Promise<Pick<Reached, 'session' | 'pid'> | undefined> {
    const limit = performance.now() + limitMs
    for (;;) {
      const lock = readPidFile(cluster)
      if (!lock) return undefined
      const session = await openSession(socketFolder, cluster)
      if (session) return { session, pid: lock.pid }
      if (identify(lock.pid, cluster) !== 'server' || performance.now() > limit) return undefined
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

/** The first new start is at once, the later ones ever slower. */
const backOff = (failures: number) =>
  failures === 0 ? 0 : Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS)

function describeStart({ pid, how }: Reached, others: number): string {
  if (how === 'started') return `Started the database server (process ${pid}).`
  if (others > 0) return `Another process of Countersign runs the database server (process ${pid}): sharing it.`
  return `An earlier run of Countersign ended without stopping its database server (process ${pid}): took it over. Nothing was lost.`
}
