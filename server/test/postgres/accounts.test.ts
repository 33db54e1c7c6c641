import { execFileSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { findNativeDir } from '../../src/adapters/postgres/binaries.ts'
import { chooseAccount, findInaccessiblePath } from '../../src/adapters/postgres/os-account.ts'
import { createSandbox, query } from './helpers.ts'

// Only root can switch users, and only Linux exposes the owner of a process as the owner of a file.
const testAsRoot = test.skipIf(process.getuid?.() !== 0 || process.platform !== 'linux')

const settings = { fsync: 'off' }
/** An account that exists on every Linux system and owns none of these files. */
const daemon = { name: 'daemon', uid: 1, gid: 1 }
const canRunAsDaemon =
  process.getuid?.() === 0 &&
  ![process.execPath, fileURLToPath(import.meta.url), findNativeDir()].some((path) =>
    findInaccessiblePath(path, daemon),
  )
const testAsDaemon = test.skipIf(!canRunAsDaemon)

const sandbox = createSandbox()
afterEach(() => sandbox.clear())

const readOwnerUid = (pid: number | undefined) => statSync(`/proc/${pid}`).uid

/** The installed package as npm unpacks it: without the links that its install script creates. */
function copyPackage(folder: string): string {
  const nativeDir = join(folder, 'package', 'native')
  execFileSync('cp', ['-a', dirname(findNativeDir()), join(folder, 'package')])
  for (const name of readdirSync(join(nativeDir, 'lib'))) {
    const path = join(nativeDir, 'lib', name)
    if (realpathSync(path) !== path) rmSync(path)
  }
  return nativeDir
}

testAsRoot('root: in an inaccessible folder, programs and data go to the system folder and are reused', async () => {
  const closed = sandbox.makeFolder(0o700)
  const systemDir = join(sandbox.makeFolder(), 'system')
  const options = { dataDir: join(closed, 'data'), nativeDir: copyPackage(closed), systemDir, settings }

  const first = await sandbox.start(options)
  const clusterFolder = realpathSync(join(options.dataDir, 'postgres'))
  expect(dirname(clusterFolder)).toBe(systemDir)
  expect(first.messages.join('\n')).toContain(`The database is in ${clusterFolder}, because `)
  expect(first.messages.join('\n')).toContain(`may not enter ${closed}`)
  expect(first.messages.join('\n')).toContain(`Copied PostgreSQL's programs to ${systemDir}`)
  expect(readOwnerUid(first.pid())).toBe(chooseAccount(undefined)?.uid)
  await query(first.connection, 'create table notes as select 1 as number')
  await first.stop()

  const second = await sandbox.start(options)
  expect(second.messages.join('\n')).not.toContain('Copied')
  expect(await query(second.connection, 'select number from notes')).toEqual([{ number: 1 }])
  await second.stop()

  // The link's target is gone, as in a new container with an old volume: never a silent new database.
  rmSync(clusterFolder, { recursive: true })
  await expect(sandbox.start(options)).rejects.toThrow('is a link to a folder that is gone')
})

testAsRoot('root: a private data folder is opened to the server account only', async () => {
  const dataDir = join(sandbox.makeFolder(), 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  const database = await sandbox.start({ dataDir, settings })
  const account = chooseAccount(undefined)!
  expect(realpathSync(join(dataDir, 'postgres'))).toBe(join(dataDir, 'postgres'))
  expect(statSync(dataDir)).toMatchObject({ uid: 0, gid: account.gid })
  expect(statSync(dataDir).mode & 0o777).toBe(0o710)
  expect(statSync(database.connection.host)).toMatchObject({ uid: account.uid })
  expect(statSync(database.connection.host).mode & 0o777).toBe(0o700)
  await database.stop()

  // A backup that root restored belongs to root: its ownership is changed, it is not refused.
  execFileSync('chown', ['-R', '0:0', join(dataDir, 'postgres')])
  const restored = await sandbox.start({ dataDir, settings })
  expect(readOwnerUid(restored.pid())).toBe(account.uid)
})

testAsDaemon(
  'an ordinary user runs the server in their own folder, also with a read-only package without links',
  async () => {
    const home = sandbox.makeFolder(0o700)
    chownSync(home, daemon.uid, daemon.gid)
    const nativeDir = copyPackage(sandbox.makeFolder())
    const dataDir = join(home, 'data')
    const databaseProcess = sandbox.spawn({ dataDir, nativeDir, settings }, daemon)
    const { pid, uid, connection } = await databaseProcess.ready
    expect(uid).toBe(daemon.uid)
    expect(readOwnerUid(pid)).toBe(daemon.uid)
    expect(databaseProcess.messages.join('\n')).toContain(`Copied PostgreSQL's programs to ${dataDir}`)
    await query(connection, 'create table notes as select 1 as number')
    await databaseProcess.kill()

    // Root takes the same database over and still runs it as its owner, so that the user can use it again.
    const root = await sandbox.start({ dataDir, settings, systemDir: join(sandbox.makeFolder(), 'system') })
    expect(root.pid()).toBe(pid)
    await root.stop()
    const secondProcess = sandbox.spawn({ dataDir, nativeDir, settings }, daemon)
    expect(await query((await secondProcess.ready).connection, 'select number from notes')).toEqual([{ number: 1 }])
  },
)

testAsDaemon("an ordinary user gets an error that names the owner of another user's database", async () => {
  const dataDir = sandbox.makeFolder()
  await (await sandbox.start({ dataDir, settings })).stop()
  const databaseProcess = sandbox.spawn({ dataDir, settings }, daemon)
  await expect(databaseProcess.ready).rejects.toThrow(/belongs to uid \d+: start as that user or as root/)
  expect(existsSync(join(dataDir, 'postgres', 'postmaster.pid'))).toBe(false)
})
