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

const HOLDER = fileURLToPath(new URL('./holder.ts', import.meta.url))
const NEVER_MS = 30_000

export type Connection = EmbeddedPostgres['connection']
export type Ready = { connection: Connection; pid: number; uid: number }
export type Holder = {
  child: ChildProcess
  ready: Promise<Ready>
  sentences: string[]
  acknowledged: number[]
  kill(): Promise<void>
  stop(): Promise<void>
}

export type Bench = ReturnType<typeof createBench>

/** What a test starts, it starts here, never in the system's own folders; `clear` ends and removes all of it, also after a failure. */
export function createBench() {
  const folders: string[] = []
  const dataDirs = new Set<string>()
  const databases: EmbeddedPostgres[] = []
  const holders: Holder[] = []

  const makeFolder = (mode = 0o755) => {
    const folder = mkdtempSync(join(tmpdir(), 'cs-pg-'))
    chmodSync(folder, mode)
    folders.push(folder)
    return folder
  }

  return {
    makeFolder,

    async start(options: Omit<EmbeddedPostgresOptions, 'log'>): Promise<EmbeddedPostgres & { sentences: string[] }> {
      dataDirs.add(options.dataDir)
      const systemDir = options.systemDir ?? join(makeFolder(), 'system')
      const sentences: string[] = []
      const log = (_details: object, message: string) => void sentences.push(message)
      const database = await startEmbeddedPostgres({ ...options, systemDir, log: { info: log, warn: log, error: log } })
      databases.push(database)
      return { ...database, sentences }
    },

    hold(
      options: Omit<EmbeddedPostgresOptions, 'log'> & { insert?: boolean },
      as?: { uid: number; gid: number },
    ): Holder {
      dataDirs.add(options.dataDir)
      const holder = spawnHolder({ systemDir: join(makeFolder(), 'system'), ...options }, as)
      holders.push(holder)
      return holder
    },

    async clear(): Promise<void> {
      for (const holder of holders.splice(0)) await holder.stop()
      for (const database of databases.splice(0)) await database.stop()
      for (const dataDir of dataDirs) await endServer(dataDir)
      dataDirs.clear()
      for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
    },
  }
}

function spawnHolder(options: object, as: { uid: number; gid: number } | undefined): Holder {
  const env = { PATH: process.env.PATH, TMPDIR: process.env.TMPDIR }
  const child = spawn(process.execPath, [HOLDER, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    cwd: '/',
    env,
    ...as,
  })
  const sentences: string[] = []
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
      if (line.log) sentences.push(line.log)
      if (line.acknowledged) acknowledged.push(line.acknowledged)
      if (line.ready) resolve(line.ready)
    })
    void ended.then(() => reject(new Error(`The holder ended before it was ready. ${errors}`)))
  })
  // A test that kills the holder on purpose does not wait for it.
  ready.catch(() => undefined)
  return {
    child,
    ready,
    sentences,
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

async function endServer(dataDir: string): Promise<void> {
  const cluster = clusterOf(dataDir)
  const pid = cluster && readPidFile(cluster)?.pid
  if (pid && identifyProcess(pid, cluster) === 'server') await stopPostmaster(pid, cluster)
}

function clusterOf(dataDir: string): string | undefined {
  try {
    return findCluster(dataDir)?.folder
  } catch {
    return undefined
  }
}

export async function query<Row extends pg.QueryResultRow>(connection: Connection, text: string): Promise<Row[]> {
  const client = new pg.Client(connection)
  // A server that is killed under the query fails the query; the connection's own error says the same again.
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

export async function until(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + NEVER_MS
  while (!(await check())) {
    if (performance.now() > end) throw new Error(`It never happened: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
