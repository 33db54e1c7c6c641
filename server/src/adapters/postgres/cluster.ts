import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, lstatSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { lchown, mkdir, open, readdir, rename, rm, rmdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { type Account, findBarrier } from './account.ts'
import type { Binaries } from './binaries.ts'
import type { Log } from './log.ts'
import { isAlive } from './processes.ts'
import { serverEnvironment } from './server-environment.ts'

const run = promisify(execFile)

const HALF_MADE = 'postgres.new-'
const INITDB_LIMIT_MS = 120_000

/** The cluster's real folder and who owns it. */
export type Cluster = { folder: string; uid: number; gid: number }

export const clusterPath = (dataDir: string) => join(dataDir, 'postgres')

/** The cluster of a data folder, or undefined when there is none yet. Anything that is not plainly either is refused. */
export function findCluster(dataDir: string): Cluster | undefined {
  const path = clusterPath(dataDir)
  const entry = lstatSync(path, { throwIfNoEntry: false })
  if (!entry) return undefined
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) {
    throw new Error(
      `${path} is a link to a folder that is gone, and the database was in it. Bring that folder back, or delete the link to begin with an empty database.`,
    )
  }
  const folder = realpathSync(path)
  const us = process.getuid?.()
  if (us !== 0 && us !== stats.uid) {
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
  const found = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim()
  if (found === String(major)) return
  throw new Error(
    `The database in ${folder} was made by PostgreSQL ${found}, and this version of Countersign brings PostgreSQL ${major}. ` +
      `Nothing was changed. Dump it with PostgreSQL ${found} and load it into a new data folder, or go back to the version of Countersign that made it.`,
  )
}

/** Root may have restored the folder from a backup, or closed a folder above it since: the first is mended, the second told. */
export async function handOver(cluster: Cluster, account: Account): Promise<void> {
  if (cluster.uid !== account.uid) await giveTo(cluster.folder, account)
  const barrier = findBarrier(cluster.folder, account)
  if (!barrier) return
  throw new Error(
    `PostgreSQL does not run as root, and ${account.name}, who owns the database in ${cluster.folder}, may not enter ${barrier}: allow it (chmod o+x ${barrier}), or move the data folder.`,
  )
}

async function giveTo(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid)
  if (!lstatSync(path).isDirectory()) return
  for (const name of await readdir(path)) await giveTo(join(path, name), account)
}

type NewCluster = {
  dataDir: string
  systemDir: string
  account: Account | undefined
  binaries: Binaries
  sync: boolean
  log: Log
}

/**
 * Makes the cluster in a folder of another name and renames it when it is whole, so that a half-made one is never used.
 * Two processes may do so at once: the first rename wins, and the loser throws its own away.
 */
export async function createCluster({ dataDir, systemDir, account, binaries, sync, log }: NewCluster): Promise<string> {
  const barrier = account && openWay(dataDir, account, log)
  const parent = barrier ? systemDir : dataDir
  await mkdir(parent, { recursive: true, mode: 0o755 })
  await removeHalfMade(parent)
  const fresh = join(parent, `${HALF_MADE}${process.pid}-${randomBytes(4).toString('hex')}`)
  try {
    await mkdir(fresh, { mode: 0o700 })
    if (account) chownSync(fresh, account.uid, account.gid)
    await initdb(binaries, fresh, account, sync)
    if (!barrier) await moveInto(fresh, clusterPath(dataDir))
    else await linkFrom(clusterPath(dataDir), fresh, join(parent, `postgres-${randomBytes(6).toString('hex')}`))
    await syncFolder(dataDir)
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  const made = findCluster(dataDir)
  if (!made) throw new Error(`The database that was made in ${dataDir} vanished.`)
  if (barrier) {
    log.warn(
      { folder: made.folder },
      `The database is in ${made.folder}, because ${account.name}, who runs it instead of root, may not enter ${barrier}. Keep that folder together with ${dataDir}.`,
    )
  }
  return made.folder
}

/**
 * When the data folder itself is the only closed door and nobody but root holds a key, the server's group gets leave to
 * pass through it, not to look around. Folders above it are not ours to open. Answers the barrier that remains.
 */
function openWay(dataDir: string, account: Account, log: Log): string | undefined {
  const barrier = findBarrier(dataDir, account)
  const stats = statSync(dataDir)
  if (barrier !== dataDir || stats.uid !== 0 || (stats.mode & 0o077) !== 0) return barrier
  chownSync(dataDir, 0, account.gid)
  chmodSync(dataDir, 0o710)
  log.info({ folder: dataDir }, `Let the group of ${account.name}, who runs the database, pass through ${dataDir}.`)
  return findBarrier(dataDir, account)
}

async function initdb(binaries: Binaries, folder: string, account: Account | undefined, sync: boolean): Promise<void> {
  const flags = [
    ...['-D', folder, '-U', 'postgres', '-E', 'UTF8', '--data-checksums', '--no-instructions'],
    // The same order and the same letter cases on every system, whatever its own locales are.
    ...['--no-locale', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    // No password: the socket's folder admits only the account that owns the files anyway. Never over the network.
    ...['--auth-local=trust', '--auth-host=reject'],
    ...(sync ? [] : ['--no-sync']),
  ]
  const identity = account && { uid: account.uid, gid: account.gid }
  try {
    await run(binaries.initdb, flags, { cwd: '/', env: serverEnvironment, timeout: INITDB_LIMIT_MS, ...identity })
  } catch (cause) {
    const told = (cause as { stderr?: string }).stderr?.trim() || (cause as Error).message
    throw new Error(`Could not make the database: ${told}`, { cause })
  }
}

/** Renaming over an empty folder is allowed, over a full one not: exactly what a race needs. */
async function moveInto(fresh: string, path: string): Promise<void> {
  try {
    await rename(fresh, path)
  } catch (error) {
    if (!isTaken(error)) throw error
  }
}

async function linkFrom(path: string, fresh: string, home: string): Promise<void> {
  await rename(fresh, home)
  await syncFolder(dirname(home))
  try {
    await rmdir(path).catch(() => undefined)
    await symlink(home, path)
  } catch (error) {
    await rm(home, { recursive: true, force: true })
    if (!isTaken(error)) throw error
  }
}

const isTaken = (error: unknown) => ['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/** What a process left behind that died while it made a cluster. */
async function removeHalfMade(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const maker = name.startsWith(HALF_MADE) ? Number.parseInt(name.slice(HALF_MADE.length), 10) : undefined
    if (maker === undefined || isAlive(maker)) continue
    // An initdb that outlived its maker may still write into it: what is left goes the next time.
    await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined)
  }
}
