import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from './account.ts'
import type { Binaries } from './binaries.ts'
import { findOrphans, identify, isAlive } from './processes.ts'
import { serverEnvironment } from './server-environment.ts'
import type { ServerLog } from './server-log.ts'
import { type Settings, toFlags } from './settings.ts'
import { nameCluster, socketFile } from './socket-folder.ts'

/** Everything it takes to run the server of one cluster. */
export type Site = {
  cluster: string
  socketFolder: string
  account: Account | undefined
  binaries: Binaries
  settings: Settings
  serverLog: ServerLog
}

/** What a running server says of itself in its lock file. */
export type PidFile = { pid: number; socketFolder: string | undefined; ready: boolean }

const POLL_MS = 10
const FAST_STOP_LIMIT_MS = 60_000
const IMMEDIATE_STOP_LIMIT_MS = 10_000

const pidFilePath = (cluster: string) => join(cluster, 'postmaster.pid')

export function readPidFile(cluster: string): PidFile | undefined {
  const lines = readLines(pidFilePath(cluster))
  const pid = toPid(lines[0])
  if (pid === undefined) return undefined
  return { pid, socketFolder: lines[4] || undefined, ready: lines[7]?.trim() === 'ready' }
}

const socketLockPath = (socketFolder: string) => `${socketFile(socketFolder)}.lock`

const readPid = (path: string) => toPid(readLines(path)[0])

function toPid(text: string | undefined): number | undefined {
  const pid = Number.parseInt(text ?? '', 10)
  return pid > 0 ? pid : undefined
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/**
 * PostgreSQL removes the lock files of a dead process by itself, but takes any living process with the same id for
 * the server and refuses to start. Call only when no server of this cluster runs.
 */
export function removeStaleLocks({ cluster, socketFolder }: Site): void {
  for (const path of [pidFilePath(cluster), socketLockPath(socketFolder)]) {
    const pid = readPid(path)
    if (pid !== undefined && isAlive(pid) && identify(pid, cluster) === 'stranger') rmSync(path, { force: true })
  }
}

/** Removes the folder of the socket, with what a killed server left in it, unless another process has begun to use it. */
export function removeSocketFolder({ cluster, socketFolder }: Site): void {
  const pid = readPid(socketLockPath(socketFolder))
  if (pid !== undefined && identify(pid, cluster) === 'server') return
  rmSync(socketFolder, { recursive: true, force: true })
}

/**
 * In a session of its own, so that Ctrl-C in our terminal does not reach it before we have finished with it. It keeps
 * running when we die; the next start finds it by its lock file.
 */
export function spawnPostmaster({ cluster, socketFolder, account, binaries, settings, serverLog }: Site): ChildProcess {
  const flags = toFlags(settings, { clusterName: nameCluster(cluster), socketFolder })
  const log = serverLog.open()
  try {
    const child = spawn(binaries.postgres, ['-D', cluster, ...flags], {
      cwd: '/',
      env: serverEnvironment,
      detached: true,
      stdio: ['ignore', log, log],
      ...(account && { uid: account.uid, gid: account.gid }),
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** Ends the server: sessions are cut and data written out first (fast); if that takes too long, the log replays it later. */
export async function stopPostmaster(pid: number, cluster: string): Promise<'fast' | 'immediate'> {
  signal(pid, 'SIGINT')
  if (await waitUntilGone(pid, cluster, FAST_STOP_LIMIT_MS)) return 'fast'
  signal(pid, 'SIGQUIT')
  if (await waitUntilGone(pid, cluster, IMMEDIATE_STOP_LIMIT_MS)) return 'immediate'
  throw new Error(`The database server (process ${pid}) does not stop.`)
}

/**
 * Ends what a killed server left behind. Its processes mostly end by themselves, but one that is busy with a query
 * does not look up before it is done, and as long as it uses the old server's memory no new server can start.
 */
export function endOrphans(cluster: string): void {
  for (const pid of findOrphans(nameCluster(cluster), cluster)) signal(pid, 'SIGQUIT')
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function waitUntilGone(pid: number, cluster: string, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  while (identify(pid, cluster) === 'server') {
    if (performance.now() > end) return false
    await delay(POLL_MS)
  }
  return true
}
