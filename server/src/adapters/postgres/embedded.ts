import { existsSync, mkdirSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { findNativeDir, prepareBinaries } from './binaries.ts'
import { checkVersion, createCluster, ensureOwnership, findCluster } from './cluster.ts'
import { createHostMarker } from './host-marker.ts'
import type { Log } from './log.ts'
import { chooseAccount } from './os-account.ts'
import { readPidFile, type ServerSpec } from './postmaster.ts'
import { createServerLog } from './server-log.ts'
import { DATABASE, OWNER_ROLE } from './session.ts'
import { PORT, type Settings } from './settings.ts'
import { isPrivate, makeSocketFolder, removeAbandonedSocketFolders } from './socket-folder.ts'
import { createSupervisor } from './supervisor.ts'

export type EmbeddedPostgresOptions = {
  dataDir: string
  log: Log
  /** PostgreSQL settings on top of the defaults. `fsync: 'off'` is for tests, which may lose their data. */
  settings?: Settings
  /** Where root puts files that the server's account cannot reach elsewhere. It must survive a reboot. */
  systemDir?: string
  /** The folder with PostgreSQL's `bin`, `lib` and `share`; by default the one npm installed. */
  nativeDir?: string
}

export type EmbeddedPostgres = {
  /** Connection options for `pg`. They stay the same across restarts of the server. */
  connection: { host: string; port: number; user: string; database: string }
  /** The postmaster's process id, or undefined while it is down. */
  pid(): number | undefined
  isUp(): boolean
  /** Calls the listener on every change between up and down; the returned function unsubscribes. */
  onChange(listener: (up: boolean) => void): () => void
  /** Stops the server, unless another process still uses the same database. */
  stop(): Promise<void>
}

const SYSTEM_DIR = '/var/lib/countersign'

/** Resolves when the database is ready. From then on the server is supervised and restarted when it dies. */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { log } = options
  const dataDir = makeDataDir(options.dataDir)
  const spec = await prepareServerSpec({ ...options, dataDir })
  const hostMarker = createHostMarker(join(dataDir, 'postgres.host'))
  const supervisor = createSupervisor({ spec, hostMarker, log })
  await supervisor.start()
  await removeAbandonedSocketFolders(spec.account).catch((error) =>
    log.warn({ err: error }, 'Socket folders of earlier servers could not be removed.'),
  )

  return {
    connection: { host: spec.socketFolder, port: PORT, user: OWNER_ROLE, database: DATABASE },
    pid: supervisor.pid,
    isUp: supervisor.isUp,
    onChange: supervisor.onChange,
    stop: supervisor.stop,
  }
}

/** Only the data folder itself is private: private folders above it would keep the server's account out. */
function makeDataDir(path: string): string {
  const fullPath = resolve(path)
  mkdirSync(dirname(fullPath), { recursive: true })
  if (!existsSync(fullPath)) mkdirSync(fullPath, { recursive: true, mode: 0o700 })
  return realpathSync(fullPath)
}

async function prepareServerSpec(options: EmbeddedPostgresOptions): Promise<ServerSpec> {
  const { dataDir, log, settings = {}, systemDir = SYSTEM_DIR, nativeDir = findNativeDir() } = options
  const existingCluster = findCluster(dataDir)
  const account = chooseAccount(existingCluster)
  const binaries = await prepareBinaries({ nativeDir, copiesDir: account ? systemDir : dataDir, account, log })
  if (existingCluster) checkVersion(existingCluster.folder, binaries.major)
  if (existingCluster && account) await ensureOwnership(existingCluster, account)
  const sync = settings.fsync !== 'off'
  const cluster = existingCluster?.folder ?? (await createCluster({ dataDir, systemDir, account, binaries, sync, log }))
  // A server that is already running may have been started under another TMPDIR, with another socket folder.
  const currentSocketFolder = readPidFile(cluster)?.socketFolder
  const socketFolder =
    currentSocketFolder && isPrivate(currentSocketFolder, account)
      ? currentSocketFolder
      : makeSocketFolder(cluster, account)
  return {
    cluster,
    account,
    binaries,
    settings,
    socketFolder,
    serverLog: createServerLog(join(dataDir, 'postgres.log')),
  }
}
