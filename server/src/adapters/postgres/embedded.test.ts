import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createSandbox, query, waitUntil } from '../../../test/postgres/helpers.ts'
import { readPidFile } from './postmaster.ts'
import { identifyProcess } from './processes.ts'
import { socketFile } from './socket-folder.ts'

const sandbox = createSandbox()
afterEach(() => sandbox.clear())

/** Most tests are not about creating a cluster: they get a copy of one that was created and stopped once. */
const templateSandbox = createSandbox()
let template: string
beforeAll(async () => {
  template = templateSandbox.makeFolder()
  await (await templateSandbox.start({ dataDir: template, settings: withoutFsync })).stop()
})
afterAll(() => templateSandbox.clear())

function makeDataDir(): string {
  const dataDir = join(sandbox.makeFolder(), 'data')
  execFileSync('cp', ['-a', template, dataDir])
  return dataDir
}

/** For tests about processes, which may lose data. */
const withoutFsync = { fsync: 'off' }

const isServerOf = (pid: number | undefined, dataDir: string) =>
  pid !== undefined && identifyProcess(pid, join(dataDir, 'postgres')) === 'server'

test('a database keeps its rows across a restart, and stop leaves no process or socket behind', async () => {
  const dataDir = join(sandbox.makeFolder(), 'data')
  const first = await sandbox.start({ dataDir })
  const pid = first.pid()
  await query(first.connection, 'create table notes (text text); ')
  await query(first.connection, `insert into notes values ('kept')`)
  const [settings] = await query(
    first.connection,
    `select current_user as who, current_setting('data_checksums') as checksums, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit, current_setting('listen_addresses') as tcp,
            pg_encoding_to_char(encoding) as encoding, rolsuper as superuser
     from pg_database, pg_roles where datname = current_database() and rolname = current_user`,
  )
  expect(settings).toEqual({
    who: 'countersign',
    checksums: 'on',
    fsync: 'on',
    commit: 'on',
    tcp: '',
    encoding: 'UTF8',
    superuser: false,
  })
  await Promise.all([first.stop(), first.stop()])
  expect(first.isUp()).toBe(false)
  expect(first.pid()).toBeUndefined()
  expect(isServerOf(pid, dataDir)).toBe(false)
  expect(existsSync(first.connection.host)).toBe(false)

  const second = await sandbox.start({ dataDir })
  expect(second.connection).toEqual(first.connection)
  expect(await query(second.connection, 'select text from notes')).toEqual([{ text: 'kept' }])
})

describe('when the process that started it is killed', () => {
  test('the next start takes the running server over, logs it, and can stop it', async () => {
    const dataDir = makeDataDir()
    const databaseProcess = sandbox.spawn({ dataDir })
    const { pid, connection } = await databaseProcess.ready
    await query(connection, 'create table notes as select 1 as number')
    await databaseProcess.kill()
    expect(isServerOf(pid, dataDir)).toBe(true)

    const database = await sandbox.start({ dataDir })
    expect(database.pid()).toBe(pid)
    expect(database.messages.join()).toContain(
      `ended without stopping its database server (process ${pid}): took it over`,
    )
    expect(await query(database.connection, 'select number from notes')).toEqual([{ number: 1 }])
    await database.stop()
    expect(isServerOf(pid, dataDir)).toBe(false)
  })

  test('together with the server, the next start recovers all acknowledged rows', async () => {
    const dataDir = makeDataDir()
    const databaseProcess = sandbox.spawn({ dataDir, insert: true })
    const { pid } = await databaseProcess.ready
    await waitUntil('some rows were acknowledged', () => databaseProcess.acknowledged.length > 20)
    process.kill(pid, 'SIGKILL')
    await databaseProcess.kill()
    // The process may have restarted the server before it was killed itself; then that server is taken over.
    const database = await sandbox.start({ dataDir })
    expect(database.pid()).not.toBe(pid)
    const rows = await query<{ id: string }>(database.connection, 'select id from acknowledged')
    const storedIds = new Set(rows.map(({ id }) => Number(id)))
    expect(databaseProcess.acknowledged.filter((id) => !storedIds.has(id))).toEqual([])
  })

  test('a server whose socket was deleted is restarted', async () => {
    const dataDir = makeDataDir()
    const databaseProcess = sandbox.spawn({ dataDir, settings: withoutFsync })
    const { pid, connection } = await databaseProcess.ready
    await databaseProcess.kill()
    rmSync(connection.host, { recursive: true })
    const database = await sandbox.start({ dataDir, settings: withoutFsync })
    expect(database.pid()).not.toBe(pid)
    expect(database.messages.join()).toContain('its socket was deleted')
    expect(await query(database.connection, 'select 1 as one')).toEqual([{ one: 1 }])
  })
})

test('two processes share one server, and the last one stops it', async () => {
  const dataDir = sandbox.makeFolder()
  // Both start at once on an empty folder, so they race through initdb and the first start.
  const databaseProcesses = [
    sandbox.spawn({ dataDir, settings: withoutFsync }),
    sandbox.spawn({ dataDir, settings: withoutFsync }),
  ]
  const [a, b] = await Promise.all(databaseProcesses.map(({ ready }) => ready))
  expect(a!.pid).toBe(b!.pid)
  expect(readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'))).toEqual([])

  await databaseProcesses[0]!.stop()
  expect(databaseProcesses[0]!.messages.at(-1)).toContain('another process of Countersign uses it')
  expect(await query(b!.connection, 'select 1 as one')).toEqual([{ one: 1 }])
  await databaseProcesses[1]!.stop()
  expect(databaseProcesses[1]!.messages.at(-1)).toBe('Stopped the database server.')
  expect(isServerOf(b!.pid, dataDir)).toBe(false)
})

test('a killed server is reported down and restarted with its rows', async () => {
  const dataDir = makeDataDir()
  const database = await sandbox.start({ dataDir })
  await query(database.connection, 'create table notes as select 1 as number')
  const killedPid = database.pid()!
  const changes: boolean[] = []
  database.onChange((up) => changes.push(up))
  process.kill(killedPid, 'SIGKILL')
  await waitUntil('the server is reported down', () => changes.length > 0)
  expect(changes).toEqual([false])
  expect(database.isUp()).toBe(false)
  await waitUntil('it is up again', () => database.isUp())
  expect(changes).toEqual([false, true])
  expect(database.pid()).not.toBe(killedPid)
  expect(await query(database.connection, 'select number from notes')).toEqual([{ number: 1 }])
})

test('a query that outlives its killed server does not block the next server', async () => {
  const database = await sandbox.start({ dataDir: makeDataDir(), settings: withoutFsync })
  const endless = query(database.connection, 'select count(*) from generate_series(1, 1e12::bigint)').catch(
    (error: Error) => error.message,
  )
  await waitUntil('the query is running', async () => {
    const [row] = await query(
      database.connection,
      `select count(*)::int as busy from pg_stat_activity where query like '%1e12%' and pid <> pg_backend_pid()`,
    )
    return row?.busy === 1
  })
  process.kill(database.pid()!, 'SIGKILL')
  await waitUntil('the server is reported down', () => !database.isUp())
  await waitUntil('it is up again', () => database.isUp())
  expect(database.messages.join()).toContain('still running: stopping them first')
  expect(await endless).toContain('Connection terminated')
})

test('stop during a restart leaves no server running', async () => {
  const dataDir = makeDataDir()
  const cluster = join(dataDir, 'postgres')
  for (const stopWhen of ['down', 'starting']) {
    const database = await sandbox.start({ dataDir, settings: withoutFsync })
    const killedPid = database.pid()
    process.kill(killedPid!, 'SIGKILL')
    await waitUntil('the server is reported down', () => !database.isUp())
    const readPid = () => readPidFile(cluster)?.pid
    if (stopWhen === 'starting')
      await waitUntil('a new server is starting', () => readPid() !== undefined && readPid() !== killedPid)
    await database.stop()
    expect(isServerOf(readPid(), dataDir)).toBe(false)
    expect(database.isUp()).toBe(false)
    expect(existsSync(database.connection.host)).toBe(false)
  }
})

test('data folders with long names work, side by side', async () => {
  const base = join(sandbox.makeFolder(), 'a'.repeat(120), 'with a space')
  const [first, second] = await Promise.all([
    sandbox.start({ dataDir: join(base, 'one'), settings: withoutFsync }),
    sandbox.start({ dataDir: join(base, 'two'), settings: withoutFsync }),
  ])
  expect(Buffer.byteLength(socketFile(first.connection.host))).toBeLessThan(104)
  expect(realpathSync(join(base, 'one', 'postgres'))).toBe(join(base, 'one', 'postgres'))
  expect(first.connection.host).not.toBe(second.connection.host)
  await query(first.connection, 'create table only_here ()')
  expect(await query(second.connection, `select to_regclass('only_here') as found`)).toEqual([{ found: null }])
})

test('an incomplete cluster is never used', async () => {
  const dataDir = sandbox.makeFolder()
  const databaseProcess = sandbox.spawn({ dataDir })
  const findTemporaryFolder = () => readdirSync(dataDir).find((name) => name.startsWith('postgres.new-'))
  await waitUntil('initdb is running', () => {
    const name = findTemporaryFolder()
    return name !== undefined && existsSync(join(dataDir, name, 'PG_VERSION'))
  })
  await databaseProcess.kill()
  expect(existsSync(join(dataDir, 'postgres'))).toBe(false)

  const database = await sandbox.start({ dataDir, settings: withoutFsync })
  expect(await query(database.connection, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('lock files with the id of an unrelated process do not prevent a start', async () => {
  const dataDir = makeDataDir()
  const first = await sandbox.start({ dataDir, settings: withoutFsync })
  const { host } = first.connection
  await first.stop()
  mkdirSync(host, { mode: 0o700 })
  const lock = `${process.pid}\n${join(dataDir, 'postgres')}\n1\n5432\n${host}\n\n\nready\n`
  writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), lock)
  writeFileSync(`${socketFile(host)}.lock`, lock)
  const second = await sandbox.start({ dataDir, settings: withoutFsync })
  expect(isServerOf(second.pid(), dataDir)).toBe(true)
})

describe('a start fails with a clear message and changes nothing for', () => {
  test('a database of another major version', async () => {
    const dataDir = sandbox.makeFolder()
    mkdirSync(join(dataDir, 'postgres'))
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '17\n')
    await expect(sandbox.start({ dataDir })).rejects.toThrow(/made by PostgreSQL 17, and .* brings PostgreSQL 18/)
    expect(readdirSync(join(dataDir, 'postgres'))).toEqual(['PG_VERSION'])
  })

  test('a folder that holds something else', async () => {
    const dataDir = sandbox.makeFolder()
    mkdirSync(join(dataDir, 'postgres'))
    writeFileSync(join(dataDir, 'postgres', 'holiday.jpg'), '')
    await expect(sandbox.start({ dataDir })).rejects.toThrow('holds files, but no PostgreSQL database')
  })

  test('an invalid setting name or value', async () => {
    const dataDir = makeDataDir()
    await expect(sandbox.start({ dataDir, settings: { ...withoutFsync, 'fsync=off -c x': '' } })).rejects.toThrow(
      'is not the name of a',
    )
    await expect(sandbox.start({ dataDir, settings: { ...withoutFsync, work_mem: 'plenty' } })).rejects.toThrow(
      /did not start: .*invalid value for parameter "work_mem"/s,
    )
  })
})

test('the text of a statement is not written to the server log', async () => {
  const dataDir = makeDataDir()
  const { connection } = await sandbox.start({ dataDir, settings: withoutFsync })
  await expect(query(connection, `select 'canary-in-a-statement'::int`)).rejects.toThrow('canary-in-a-statement')
  const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  expect(log).toContain('ready to accept connections')
  expect(log).not.toContain('canary')
})
