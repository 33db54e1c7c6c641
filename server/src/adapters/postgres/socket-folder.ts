import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, findInaccessiblePath } from './os-account.ts'
import { PORT } from './settings.ts'

/** The kernel limits a socket path to 108 bytes including the final zero on Linux, 104 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103
const MAX_CANDIDATES = 16

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
