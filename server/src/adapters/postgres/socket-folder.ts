import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, findInaccessiblePath } from './os-account.ts'
import { PORT } from './settings.ts'

/** The kernel limits a socket path to 108 bytes including the final zero on Linux, 104 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103
const MAX_CANDIDATES = 16
const FOLDER_NAME = /^countersign-[0-9a-f]{12}(-\d+)?$/
/** A younger folder may belong to a server that is just starting. */
const ABANDONED_AFTER_MS = 10 * 60_000
const CONNECT_TIMEOUT_MS = 1_000

/** Short and unique to the cluster. The titles of the server's processes contain it too. */
export const nameCluster = (cluster: string) =>
  `countersign-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`

export const socketFile = (folder: string) => join(folder, `.s.PGSQL.${PORT}`)

/**
 * A folder for the server's socket: short whatever the data folder's path is, and private to the server's account.
 * The temporary folder is shared, so a name that belongs to another user is skipped, never trusted.
 */
export function makeSocketFolder(cluster: string, account: Account | undefined): string {
  const name = nameCluster(cluster)
  for (const base of listTemporaryFolders(account)) {
    for (let n = 0; n < MAX_CANDIDATES; n += 1) {
      const folder = join(base, n === 0 ? name : `${name}-${n}`)
      if (Buffer.byteLength(socketFile(folder)) <= MAX_SOCKET_PATH_BYTES && claimFolder(folder, account)) return folder
    }
  }
  throw new Error('Found no temporary folder for the database socket: set TMPDIR to a short path that is writable.')
}

function listTemporaryFolders(account: Account | undefined): string[] {
  const folders = [...new Set([tmpdir(), '/tmp'])]
    .filter((folder) => existsSync(folder))
    .map((folder) => realpathSync(folder))
  return account ? folders.filter((folder) => !findInaccessiblePath(folder, account)) : folders
}

/** Creates the folder or checks that it is private. False when it belongs to another user. */
export function claimFolder(folder: string, account: Account | undefined): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    if (!isPrivate(folder, account)) return false
  }
  if (account) chownSync(folder, account.uid, account.gid)
  chmodSync(folder, 0o700)
  return true
}

/** Anyone who can enter the folder is a database superuser, so it must be ours or the server's and closed to others. */
export function isPrivate(folder: string, account: Account | undefined): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (!stats?.isDirectory() || (stats.mode & 0o077) !== 0) return false
  return stats.uid === process.getuid?.() || stats.uid === account?.uid
}

/** Removes the folders of servers that were killed or that ended without the process that had started them. */
export async function removeAbandonedSocketFolders(
  account: Account | undefined,
  bases = listTemporaryFolders(account),
): Promise<void> {
  for (const base of bases) {
    for (const name of readdirSync(base).filter((entry) => FOLDER_NAME.test(entry))) {
      const folder = join(base, name)
      const stats = lstatSync(folder, { throwIfNoEntry: false })
      if (!stats || Date.now() - stats.mtimeMs < ABANDONED_AFTER_MS || !isPrivate(folder, account)) continue
      // The process id in the lock file may be of another container: only the socket tells.
      if (!(await acceptsConnections(socketFile(folder)))) rmSync(folder, { recursive: true, force: true })
    }
  }
}

/** False only when nobody listens; a server that does not answer in time is there. */
function acceptsConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    const finish = (accepts: boolean) => {
      socket.destroy()
      resolve(accepts)
    }
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => finish(true))
    socket.once('connect', () => finish(true))
    socket.once('error', (error: NodeJS.ErrnoException) =>
      finish(!['ECONNREFUSED', 'ENOENT', 'ENOTSOCK'].includes(error.code ?? '')),
    )
  })
}
