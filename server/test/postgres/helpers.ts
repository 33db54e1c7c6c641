import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { findCluster } from '../../src/adapters/postgres/cluster.ts'
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from '../../src/adapters/postgres/embedded.ts'
import { readPidFile, stopPostmaster } from '../../src/adapters/postgres/postmaster.ts'
import { identifyProcess } from '../../src/adapters/postgres/processes.ts'

const DATABASE_PROCESS = fileURLToPath(new URL('./database-process.ts', import.meta.url))
const WAIT_TIMEOUT_MS = 30_000

export type Connection = EmbeddedPostgres['connection']
export type Ready = { connection: Connection; pid: number; uid: number }
export type DatabaseProcess = {
  child: ChildProcess
  ready: Promise<Ready>
  messages: string[]
  acknowledged: number[]
  kill(): Promise<void>
  stop(): Promise<void>
}

export type Sandbox = ReturnType<typeof createSandbox>

/** Starts everything in temporary folders, never in the system's; `clear` stops and removes all of it, also after a failure. */
export function createSandbox() {
  const folders: string[] = []
  const dataDirs = new Set<string>()
  const databases: EmbeddedPostgres[] = []
  const databaseProcesses: DatabaseProcess[] = []

  const makeFolder = (mode = 0o755) => {
    const folder = mkdtempSync(join(tmpdir(), 'cs-pg-'))
    chmodSync(folder, mode)
    folders.push(folder)
    return folder
  }

  return {
    makeFolder,

    async start(options: Omit<EmbeddedPostgresOptions, 'log'>): Promise<EmbeddedPostgres & { messages: string[] }> {
      dataDirs.add(options.dataDir)
      const systemDir = options.systemDir ?? join(makeFolder(), 'system')
      const messages: string[] = []
      const log = (_details: object, message: string) => void messages.push(message)
      const database = await startEmbeddedPostgres({ ...options, systemDir, log: { info: log, warn: log, error: log } })
      databases.push(database)
      return { ...database, messages }
    },

    spawn(
      options: Omit<EmbeddedPostgresOptions, 'log'> & { insert?: boolean },
      account?: { uid: number; gid: number },
    ): DatabaseProcess {
      dataDirs.add(options.dataDir)
      const databaseProcess = spawnDatabaseProcess({ systemDir: join(makeFolder(), 'system'), ...options }, account)
      databaseProcesses.push(databaseProcess)
      return databaseProcess
    },

    async clear(): Promise<void> {
      for (const databaseProcess of databaseProcesses.splice(0)) await databaseProcess.stop()
      for (const database of databases.splice(0)) await database.stop()
      for (const dataDir of dataDirs) await stopServer(dataDir)
      dataDirs.clear()
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
    },
  }
}

function spawnDatabaseProcess(options: object, account: { uid: number; gid: number } | undefined): DatabaseProcess {
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR }
  const child = spawn(process.execPath, [DATABASE_PROCESS, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd: '/',
    env,
    ...account,
  })
  const messages: string[] = []
  const acknowledged: number[] = []
  let errors = ''
  child.stdin!.on('error', () => undefined)
  child.stderr!.on('data', (chunk: Buffer) => {
    errors += chunk
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ready = new Promise<Ready>((resolve, reject) => {
    createInterface(child.stdout!).on('line', (text) => {
      const line = JSON.parse(text) as { log?: string; ready?: Ready; acknowledged?: number }
      if (line.log) messages.push(line.log)
      if (line.acknowledged) acknowledged.push(line.acknowledged)
      if (line.ready) resolve(line.ready)
    })
    void ended.then(() => reject(new Error(`The database process ended before it was ready. ${errors}`)))
  })
  // A test that kills the process on purpose does not wait for `ready`.
  ready.catch(() => undefined)
  return {
    child,
    ready,
    messages,
    acknowledged,
    kill: () => {
      child.kill('SIGKILL')
      return ended
    },
    stop: () => {
      child.stdin!.end()
      return ended
    },
  }
}

async function stopServer(dataDir: string): Promise<void> {
  const cluster = findClusterFolder(dataDir)
  const pid = cluster && readPidFile(cluster)?.pid
  if (pid && identifyProcess(pid, cluster) === 'server') await stopPostmaster(pid, cluster)
}

function findClusterFolder(dataDir: string): string | undefined {
  try {
    return findCluster(dataDir)?.folder
  } catch {
    return undefined
  }
}

export async function query<Row extends pg.QueryResultRow>(connection: Connection, text: string): Promise<Row[]> {
  const client = new pg.Client(connection)
  // When the server is killed, the query fails too; the connection's error event adds nothing.
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

export async function waitUntil(description: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + WAIT_TIMEOUT_MS
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`Timed out waiting until ${description}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
