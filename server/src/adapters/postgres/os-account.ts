import { readFileSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The account that runs the database server when it is not our own. */
export type Account = { name: string; uid: number; gid: number }

const ACCOUNT_NAMES = ['countersign', 'nobody']

/**
 * PostgreSQL refuses to run as root, so root runs it under an unprivileged account; other users run it themselves.
 * An existing cluster is run by its owner, so the folder stays usable by that user without root.
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

/** The first folder above `path` that the account may not enter, or the path itself when the account may not read it. */
export function findInaccessiblePath(path: string, account: Account): string | undefined {
  const realPath = realpathSync(path)
  return [...listParents(realPath), realPath].find((path) => !canAccess(statSync(path), account))
}

function listParents(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [...listParents(parent), parent]
}

const READ = 4
const ENTER = 1

function canAccess(stats: Stats, account: Account): boolean {
  const requiredBit = stats.isDirectory() ? ENTER : READ
  const shift = stats.uid === account.uid ? 6 : stats.gid === account.gid ? 3 : 0
  return ((stats.mode >> shift) & requiredBit) !== 0
}
