import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { chooseAccount } from './account.ts'
import { findNativeDir, placeBinaries } from './binaries.ts'
import { checkVersion, createCluster, findCluster, handOver } from './cluster.ts'
import type { Log } from './log.ts'
import { readPidFile, type Site } from './postmaster.ts'
import { createPresence } from './presence.ts'
import { createServerLog } from './server-log.ts'
import { DATABASE, OWNER_ROLE } from './session.ts'
import { PORT, type Settings } from './settings.ts'
import { isPrivate, makeSocketFolder } from './socket-folder.ts'
import { createSupervisor } from './supervisor.ts'

export type EmbeddedPostgresOptions = {
  dataDir: string
  log: Log
  /** PostgreSQL settings on top of ours. `fsync: 'off'` is for tests, which may lose their data. */
  settings?: Settings
  /** Where root keeps what the server's account could not reach elsewhere. It must survive a reboot. */
  systemDir?: string
  /** The folder with PostgreSQL's `bin`, `lib` and `share`; by default the one npm installed. */
  nativeDir?: string
}

export type EmbeddedPostgres = {
  /** For `pg`, as it is. It stays the same over restarts of the server. */
  connection: { host: string; port: number; user: string; database: string }
  /** The postmaster's process id, or undefined while it is down. */
  pid(): number | undefined
  isUp(): boolean
  /** Tells every change between up and down; the answer ends the subscription. */
  onChange(listener: (up: boolean) => void): () => void
  /** Leaves nothing running, unless another process still uses the same database. */
  stop(): Promise<void>
}

const SYSTEM_DIR = '/var/lib/countersign'

/** Answers when the database is ready. From then on the server is watched, and started again when it dies. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options
  const dataDir = makeDataDir(options.dataDir)
  const site = await prepareSite({ ...options, dataDir })
  const presence = createPresence(join(dataDir, 'postgres.host'))
  const supervisor = createSupervisor({ site, presence, log })
  await supervisor.start()

  return {
    connection: { host: site.socketFolder, port: PORT, user: OWNER_ROLE, database: DATABASE },
    pid: supervisor.pid,
    isUp: supervisor.isUp,
    onChange: supervisor.onChange,
    stop: supervisor.stop,
  }
}

/** Only the data folder itself is closed to others: closed folders above it would keep the server's account out. */
function makeDataDir(path: string): string {
  const full = resolve(path)
  mkdirSync(dirname(full), { recursive: true })
  if (!existsSync(full)) mkdirSync(full, { recursive: true, mode: 0o700 })
  return realpathSync(full)
}

async function prepareSite(options: EmbeddedPostgresOptions): Promise<Site> {
  const { dataDir, log, settings = {}, systemDir = SYSTEM_DIR, nativeDir = findNativeDir() } = options
  const found = findCluster(dataDir)
  const account = chooseAccount(found)
  const binaries = await placeBinaries({ nativeDir, copiesDir: account ? systemDir : dataDir, account, log })
  if (found) checkVersion(found.folder, binaries.major)
  if (found && account) await handOver(found, account)
  const sync = settings.fsync !== 'off'
  const cluster = found?.folder ?? (await createCluster({ dataDir, systemDir, account, binaries, sync, log }))
  // A server that runs already was started with a socket folder of its own choice, under another TMPDIR perhaps.
  const inUse = readPidFile(cluster)?.socketFolder
  const socketFolder = inUse && isPrivate(inUse, account) ? inUse : makeSocketFolder(cluster, account)
  return {
    cluster,
    account,
    binaries,
    settings,
    socketFolder,
    serverLog: createServerLog(join(dataDir, 'postgres.log')),
  }
}
