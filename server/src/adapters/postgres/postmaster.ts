import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Binaries } from './binaries.ts'
import type { Account } from './os-account.ts'
import { findOrphans, identifyProcess, isAlive } from './processes.ts'
import { serverEnvironment } from './server-environment.ts'
import type { ServerLog } from './server-log.ts'
import { type Settings, toFlags } from './settings.ts'
import { nameCluster, socketFile } from './socket-folder.ts'

/** Everything that is needed to run the server of one cluster. */
export type ServerSpec = {
  cluster: string
  socketFolder: string
  account: Account | undefined
  binaries: Binaries
  settings: Settings
  serverLog: ServerLog
}

/** The content of a running server's lock file. */
export type PidFile = { pid: number; socketFolder: string | undefined; ready: boolean }

const POLL_MS = 10
const FAST_STOP_TIMEOUT_MS = 60_000
const IMMEDIATE_STOP_TIMEOUT_MS = 10_000

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
 * PostgreSQL removes the lock files of a dead process itself, but takes any living process with the same id for the
 * server and refuses to start. Call only when no server of this cluster is running.
 */
export function removeStaleLocks({ cluster, socketFolder }: ServerSpec): void {
  for (const path of [pidFilePath(cluster), socketLockPath(socketFolder)]) {
    const pid = readPid(path)
    if (pid !== undefined && isAlive(pid) && identifyProcess(pid, cluster) === 'unrelated')
      rmSync(path, { force: true })
  }
}

/** Removes the socket folder with its contents, unless another process has started to use it. */
export function removeSocketFolder({ cluster, socketFolder }: ServerSpec): void {
  const pid = readPid(socketLockPath(socketFolder))
  if (pid !== undefined && identifyProcess(pid, cluster) === 'server') return
  rmSync(socketFolder, { recursive: true, force: true })
}

/**
 * Starts the server in its own session, so that Ctrl-C in our terminal does not stop it before we do. It keeps running
 * when we die; the next start finds it by its lock file.
 */
export function spawnPostmaster({
  cluster,
  socketFolder,
  account,
  binaries,
  settings,
  serverLog,
}: ServerSpec): ChildProcess {
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

/** Ends sessions and writes a checkpoint (`fast`); if that takes too long, recovery is left to the next start (`immediate`). */
export async function stopPostmaster(pid: number, cluster: string): Promise<'fast' | 'immediate'> {
  sendSignal(pid, 'SIGINT')
  if (await waitForExit(pid, cluster, FAST_STOP_TIMEOUT_MS)) return 'fast'
  sendSignal(pid, 'SIGQUIT')
  if (await waitForExit(pid, cluster, IMMEDIATE_STOP_TIMEOUT_MS)) return 'immediate'
  throw new Error(`The database server (process ${pid}) does not stop.`)
}

/**
 * Stops the remaining processes of a killed server. Most end by themselves, but one that is busy with a query goes on,
 * and while it uses the old server's shared memory no new server can start.
 */
export function stopOrphans(cluster: string): void {
  for (const pid of findOrphans(nameCluster(cluster), cluster)) sendSignal(pid, 'SIGQUIT')
}

function sendSignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

async function waitForExit(pid: number, cluster: string, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs
  while (identifyProcess(pid, cluster) === 'server') {
    if (performance.now() > deadline) return false
    await delay(POLL_MS)
  }
  return true
}
