import { createHash } from 'node:crypto'
import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, findBarrier } from './account.ts'
import { PORT } from './settings.ts'

/** The kernel's room for a socket's path is 108 bytes with the closing zero on Linux, 104 on macOS. */
const MAX_SOCKET_PATH_BYTES = 103
const MAX_NAMES = 16

/** Short, and one cluster's own. The server's processes carry it in their titles too. */
export const nameCluster = (cluster: string) =>
  `countersign-${createHash('sha256').update(cluster).digest('hex').slice(0, 12)}`

export const socketFile = (folder: string) => join(folder, `.s.PGSQL.${PORT}`)

/**
 * A folder for the server's socket: short whatever the data folder's path is, and private to the server's account.
 * The temporary folder is everyone's, so a name that somebody else took already is passed over, never trusted.
 */
export function makeSocketFolder(cluster: string, account: Account | undefined): string {
  const name = nameCluster(cluster)
  for (const base of temporaryFolders(account)) {
    for (let n = 0; n < MAX_NAMES; n += 1) {
      const folder = join(base, n === 0 ? name : `${name}-${n}`)
      if (Buffer.byteLength(socketFile(folder)) <= MAX_SOCKET_PATH_BYTES && claimFolder(folder, account)) return folder
    }
  }
  throw new Error('Found no temporary folder for the database socket: set TMPDIR to a short path that is writable.')
}

function temporaryFolders(account: Account | undefined): string[] {
  const folders = [...new Set([tmpdir(), '/tmp'])]
    .filter((folder) => existsSync(folder))
    .map((folder) => realpathSync(folder))
  return account ? folders.filter((folder) => !findBarrier(folder, account)) : folders
}

/** Makes the folder, or makes sure of it: something may have swept the temporary folder. False when it is somebody else's. */
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

/** Whoever can enter the folder is the database's superuser, so it must be ours or the server's, and closed to others. */
export function isPrivate(folder: string, account: Account | undefined): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (!stats?.isDirectory() || (stats.mode & 0o077) !== 0) return false
  return stats.uid === process.getuid?.() || stats.uid === account?.uid
}
