import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { lchown, mkdir, open, readdir, rename, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Binaries } from './binaries.ts'
import type { Log } from './log.ts'
import { type Account, findInaccessiblePath } from './os-account.ts'
import { isAlive } from './processes.ts'
import { serverEnvironment } from './server-environment.ts'

const execFileAsync = promisify(execFile)

const TEMPORARY_PREFIX = 'postgres.new-'
const INITDB_TIMEOUT_MS = 120_000

/** The cluster's real folder and its owner. */
export type Cluster = { folder: string; uid: number; gid: number }

export const clusterPath = (dataDir: string) => join(dataDir, 'postgres')

/** The cluster of a data folder, or undefined when there is none yet. Throws when the folder holds anything else. */
export function findCluster(dataDir: string): Cluster | undefined {
  const path = clusterPath(dataDir)
  const entry = lstatSync(path, { throwIfNoEntry: false })
  if (!entry) return undefined
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) {
    throw new Error(
      `${path} is a link to a folder that is gone, and the database was in it. Restore that folder, or delete the link to start with an empty database.`,
    )
  }
  const folder = realpathSync(path)
  const currentUid = process.getuid?.()
  if (currentUid !== 0 && currentUid !== stats.uid) {
    throw new Error(`The database in ${folder} belongs to uid ${stats.uid}: start as that user or as root.`)
  }
  const names = stats.isDirectory() ? readdirSync(folder) : [path]
  if (names.length === 0) return undefined
  if (!names.includes('PG_VERSION')) {
    throw new Error(`${folder} holds files, but no PostgreSQL database: move it away, or choose another data folder.`)
  }
  return { folder, uid: stats.uid, gid: stats.gid }
}

/** Major versions of PostgreSQL do not read each other's files. */
export function checkVersion(folder: string, major: number): void {
  const version = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
  if (version === String(major)) return
  throw new Error(
    `The database in ${folder} was made by PostgreSQL ${version}, and this version of Countersign brings PostgreSQL ${major}. ` +
      `Nothing was changed. Dump it with PostgreSQL ${version} and load it into a new data folder, or go back to the version of Countersign that made it.`,
  )
}

/** Gives the cluster to the account after root restored it from a backup; throws when the account may not enter its folder. */
export async function ensureOwnership(cluster: Cluster, account: Account): Promise<void> {
  if (cluster.uid !== account.uid) await chownRecursive(cluster.folder, account)
  const inaccessiblePath = findInaccessiblePath(cluster.folder, account)
  if (!inaccessiblePath) return
  throw new Error(
    `PostgreSQL does not run as root, and ${account.name}, who owns the database in ${cluster.folder}, may not enter ${inaccessiblePath}: allow it (chmod o+x ${inaccessiblePath}), or move the data folder.`,
  )
}

async function chownRecursive(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid)
  if (!lstatSync(path).isDirectory()) return
  for (const name of await readdir(path)) await chownRecursive(join(path, name), account)
}

type CreateClusterOptions = {
  dataDir: string
  systemDir: string
  account: Account | undefined
  binaries: Binaries
  sync: boolean
  log: Log
}

/**
 * Creates the cluster in a temporary folder and renames it when it is complete, so that an incomplete one is never used.
 * Two processes may do this at once: the first rename wins, and the other process deletes its folder.
 */
export async function createCluster({
  dataDir,
  systemDir,
  account,
  binaries,
  sync,
  log,
}: CreateClusterOptions): Promise<string> {
  const inaccessiblePath = account && grantGroupAccess(dataDir, account, log)
  const parent = inaccessiblePath ? systemDir : dataDir
  await mkdir(parent, { recursive: true, mode: 0o755 })
  await removeAbandoned(parent)
  const temporaryFolder = join(parent, `${TEMPORARY_PREFIX}${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    await mkdir(temporaryFolder, { mode: 0o700 })
    if (account) chownSync(temporaryFolder, account.uid, account.gid)
    await initdb(binaries, temporaryFolder, account, sync)
    if (!inaccessiblePath) await renameUnlessTaken(temporaryFolder, clusterPath(dataDir))
    else
      await linkUnlessTaken(
        clusterPath(dataDir),
        temporaryFolder,
        join(parent, `postgres-${randomBytes(6).toString('hex')}`),
      )
    await syncFolder(dataDir)
  } finally {
    await rm(temporaryFolder, { recursive: true, force: true })
  }
  const cluster = findCluster(dataDir)
  if (!cluster) throw new Error(`The database created in ${dataDir} has disappeared.`)
  if (inaccessiblePath) {
    log.warn(
      { folder: cluster.folder },
      `The database is in ${cluster.folder}, because ${account.name}, who runs it instead of root, may not enter ${inaccessiblePath}. Keep that folder together with ${dataDir}.`,
    )
  }
  return cluster.folder
}

/**
 * When only the data folder itself is closed to the account and it belongs to root, the server's group may traverse it,
 * but not list it. Folders above it are left alone. Returns the path that is still inaccessible.
 */
function grantGroupAccess(dataDir: string, account: Account, log: Log): string | undefined {
  const inaccessiblePath = findInaccessiblePath(dataDir, account)
  const stats = statSync(dataDir)
  if (inaccessiblePath !== dataDir || stats.uid !== 0 || (stats.mode & 0o077) !== 0) return inaccessiblePath
  chownSync(dataDir, 0, account.gid)
  chmodSync(dataDir, 0o710)
  log.info({ folder: dataDir }, `Gave the group of ${account.name}, which runs the database, access to ${dataDir}.`)
  return findInaccessiblePath(dataDir, account)
}

async function initdb(binaries: Binaries, folder: string, account: Account | undefined, sync: boolean): Promise<void> {
  const flags = [
    ...['-D', folder, '-U', 'postgres', '-E', 'UTF8', '--data-checksums', '--no-instructions'],
    // The same sort order and case mapping on every system, whatever its locales are.
    ...['--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    // No password: the socket's folder admits only the account that owns the files. No network access.
    ...['--auth-local=trust', '--auth-host=reject'],
    ...(sync ? [] : ['--no-sync']),
  ]
  const identity = account && { uid: account.uid, gid: account.gid }
  try {
    await execFileAsync(binaries.initdb, flags, {
      cwd: '/',
      env: serverEnvironment,
      timeout: INITDB_TIMEOUT_MS,
      ...identity,
    })
  } catch (cause) {
    const message = (cause as { stderr?: string }).stderr?.trim() || (cause as Error).message
    throw new Error(`Could not create the database: ${message}`, { cause })
  }
}

/** Renaming over an empty folder succeeds and over a full one fails, so only one of several processes wins. */
async function renameUnlessTaken(temporaryFolder: string, path: string): Promise<void> {
  try {
    await rename(temporaryFolder, path)
  } catch (error) {
    if (!alreadyExists(error)) throw error
  }
}

async function linkUnlessTaken(path: string, temporaryFolder: string, finalFolder: string): Promise<void> {
  await rename(temporaryFolder, finalFolder)
  await syncFolder(dirname(finalFolder))
  try {
    await rmdir(path).catch(() => undefined)
    await symlink(finalFolder, path)
  } catch (error) {
    await rm(finalFolder, { recursive: true, force: true })
    if (!alreadyExists(error)) throw error
  }
}

const alreadyExists = (error: unknown) => ['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** Removes temporary folders of processes that died while they created a cluster. */
async function removeAbandoned(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const creatorPid = name.startsWith(TEMPORARY_PREFIX)
      ? Number.parseInt(name.slice(TEMPORARY_PREFIX.length), 10)
      : undefined
    if (creatorPid === undefined || isAlive(creatorPid)) continue
    // An initdb that outlived its parent may still write into it: the next start removes the remainder.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined)
  }
}
