import { readFileSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The account the database server runs under when that is not our own. */
export type Account = { name: string; uid: number; gid: number }

const ACCOUNT_NAMES = ['countersign', 'nobody']

/**
 * PostgreSQL refuses to run as root, so root hands it to an unprivileged account; anyone else runs it as themselves.
 * A cluster that exists is run by its owner: the folder then stays usable by that user without root.
 */
export function chooseAccount(clusterOwner: { uid: number; gid: number } | undefined): Account | undefined {
  if (process.getuid === undefined) {
    throw new Error('The embedded database runs on Linux and macOS only: set DATABASE_URL to a PostgreSQL server.')
  }
  if (process.getuid() !== 0) return undefined
  const accounts = readAccounts()
  if (clusterOwner && clusterOwner.uid !== 0) {
    return accounts.find(({ uid }) => uid === clusterOwner.uid) ?? { name: `uid ${clusterOwner.uid}`, ...clusterOwner }
  }
  for (const name of ACCOUNT_NAMES) {
    const account = accounts.find((candidate) => candidate.name === name)
    if (account) return account
  }
  throw new Error(
    `PostgreSQL does not run as root, and this system has no account named ${ACCOUNT_NAMES.join(' or ')} to run it under: start as an ordinary user, or set DATABASE_URL.`,
  )
}

function readAccounts(): Account[] {
  return readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map(([name, , uid, gid]) => ({ name: name!, uid: Number(uid), gid: Number(gid) }))
}

/** The first folder on the way to `path` that the account may not enter, or the path itself when it may not use that. */
export function findBarrier(path: string, account: Account): string | undefined {
  const real = realpathSync(path)
  return [...foldersAbove(real), real].find((step) => !mayUse(statSync(step), account))
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...foldersAbove(parent), parent]
}

const READ = 4
const ENTER = 1

function mayUse(stats: Stats, account: Account): boolean {
  const wanted = stats.isDirectory() ? ENTER : READ
  const shift = stats.uid === account.uid ? 6 : stats.gid === account.gid ? 3 : 0
  return ((stats.mode >> shift) & wanted) !== 0
}
