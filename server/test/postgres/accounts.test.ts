import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { chooseAccount, findInaccessiblePath } from '../../src/adapters/postgres/account.ts'
import { findNativeDir } from '../../src/adapters/postgres/binaries.ts'
import { createBench, query } from './helpers.ts'

// Only root can become somebody else, and only on Linux is the owner of a process a file's owner.
const asRoot = test.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')

const settings = { fsync: 'off' }
/** An account of every Linux system that owns nothing here. */
const daemon = { name: 'daemon', uid: 1, gid: 1 }
const canRunAsDaemon =
  process.getuid?.() === 0 &&
  ![process.execPath, fileURLToPath(import.meta.url), findNativeDir()].some((path) =>
    findInaccessiblePath(path, daemon),
  )
const asDaemon = test.skipIf(!canRunAsDaemon)

const bench = createBench()
afterEach(() => bench.clear())

const ownerOf = (pid: number | undefined) => statSync(`/proc/${pid}`).uid

/** The installed package as npm unpacks it: without the links that its install script makes. */
function copyPackage(folder: string): string {
  const nativeDir = join(folder, 'package', 'native')
  execFileSync('cp', ['-a', dirname(findNativeDir()), join(folder, 'package')])
  for (const name of readdirSync(join(nativeDir, 'lib'))) {
    const path = join(nativeDir, 'lib', name)
    if (realpathSync(path) !== path) rmSync(path)
  }
  return nativeDir
}

asRoot(
  'root: under a closed folder the programs are copied, the data goes to the system folder, and both are kept',
  async () => {
    const closed = bench.makeFolder(0o700)
    const systemDir = join(bench.makeFolder(), 'system')
    const options = { dataDir: join(closed, 'data'), nativeDir: copyPackage(closed), systemDir, settings }

    const first = await bench.start(options)
    const home = realpathSync(join(options.dataDir, 'postgres'))
    expect(dirname(home)).toBe(systemDir)
    expect(first.sentences.join('\n')).toContain(`The database is in ${home}, because `)
    expect(first.sentences.join('\n')).toContain(`may not enter ${closed}`)
    expect(first.sentences.join('\n')).toContain(`Copied PostgreSQL's programs to ${systemDir}`)
    expect(ownerOf(first.pid())).toBe(chooseAccount(undefined)?.uid)
    await query(first.connection, 'create table notes as select 1 as number')
    await first.stop()

    const second = await bench.start(options)
    expect(second.sentences.join('\n')).not.toContain('Copied')
    expect(await query(second.connection, 'select number from notes')).toEqual([{ number: 1 }])
    await second.stop()

    // The link outlived what it leads to, as on a new container with an old volume: never a silent fresh start.
    rmSync(home, { recursive: true })
    await expect(bench.start(options)).rejects.toThrow('is a link to a folder that is gone')
  },
)

asRoot('root: a closed data folder of our own is opened to the server alone', async () => {
  const dataDir = join(bench.makeFolder(), 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const database = await bench.start({ dataDir, settings })
  const account = chooseAccount(undefined)!
  expect(realpathSync(join(dataDir, 'postgres'))).toBe(join(dataDir, 'postgres'))
  expect(statSync(dataDir)).toMatchObject({ uid: 0, gid: account.gid })
  expect(statSync(dataDir).mode & 0o777).toBe(0o710)
  expect(statSync(database.connection.host)).toMatchObject({ uid: account.uid })
  expect(statSync(database.connection.host).mode & 0o777).toBe(0o700)
  await database.stop()

  // A backup that root restored belongs to root: it is handed over, not refused.
  execFileSync('chown', ['-R', '0:0', join(dataDir, 'postgres')])
  const restored = await bench.start({ dataDir, settings })
  expect(ownerOf(restored.pid())).toBe(account.uid)
})

asDaemon('an ordinary user: own server, own folder, also with a read-only package that lacks its links', async () => {
  const home = bench.makeFolder(0o700)
  chownSync(home, daemon.uid, daemon.gid)
  const nativeDir = copyPackage(bench.makeFolder())
  const dataDir = join(home, 'data')
  const holder = bench.hold({ dataDir, nativeDir, settings }, daemon)
  const { pid, uid, connection } = await holder.ready
  expect(uid).toBe(daemon.uid)
  expect(ownerOf(pid)).toBe(daemon.uid)
  expect(holder.sentences.join('\n')).toContain(`Copied PostgreSQL's programs to ${dataDir}`)
  await query(connection, 'create table notes as select 1 as number')
  await holder.kill()

  // Root takes the same database over, still as its owner, so that the user can have it back.
  const root = await bench.start({ dataDir, settings, systemDir: join(bench.makeFolder(), 'system') })
  expect(root.pid()).toBe(pid)
  await root.stop()
  const again = bench.hold({ dataDir, nativeDir, settings }, daemon)
  expect(await query((await again.ready).connection, 'select number from notes')).toEqual([{ number: 1 }])
})

asDaemon("an ordinary user is told whose database it is, when it is somebody else's", async () => {
  const dataDir = bench.makeFolder()
  await (await bench.start({ dataDir, settings })).stop()
  const holder = bench.hold({ dataDir, settings }, daemon)
  await expect(holder.ready).rejects.toThrow(/belongs to uid \d+: start as that user or as root/)
  expect(existsSync(join(dataDir, 'postgres', 'postmaster.pid'))).toBe(false)
})
