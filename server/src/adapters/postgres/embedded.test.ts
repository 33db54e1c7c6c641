import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createBench, query, until } from '../../../test/postgres/helpers.ts'
import { readPidFile } from './postmaster.ts'
import { identifyProcess } from './processes.ts'
import { socketFile } from './socket-folder.ts'

const bench = createBench()
afterEach(() => bench.clear())

/** Most tests are not about making a cluster: they get a copy of one that was made and stopped once. */
const templateBench = createBench()
let template: string
beforeAll(async () => {
  template = templateBench.makeFolder()
  await (await templateBench.start({ dataDir: template, settings: quick })).stop()
})
afterAll(() => templateBench.clear())

function makeDataDir(): string {
  const dataDir = join(bench.makeFolder(), 'data')
  execFileSync('cp', ['-a', template, dataDir])
  return dataDir
}

/** These tests look at processes, not at disks. */
const quick = { fsync: 'off' }

const isServerOf = (pid: number | undefined, dataDir: string) =>
  pid !== undefined && identifyProcess(pid, join(dataDir, 'postgres')) === 'server'

test('a database keeps its rows over a stop and a start, and stop leaves nothing behind', async () => {
  const dataDir = join(bench.makeFolder(), 'data')
  const first = await bench.start({ dataDir })
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

  const second = await bench.start({ dataDir })
  expect(second.connection).toEqual(first.connection)
  expect(await query(second.connection, 'select text from notes')).toEqual([{ text: 'kept' }])
})

describe('when the process that started it is killed', () => {
  test('the next start takes the living server over, says so, and stops it', async () => {
    const dataDir = makeDataDir()
    const holder = bench.hold({ dataDir })
    const { pid, connection } = await holder.ready
    await query(connection, 'create table notes as select 1 as number')
    await holder.kill()
    expect(isServerOf(pid, dataDir)).toBe(true)

    const heir = await bench.start({ dataDir })
    expect(heir.pid()).toBe(pid)
    expect(heir.sentences.join()).toContain(`ended without stopping its database server (process ${pid}): took it over`)
    expect(await query(heir.connection, 'select number from notes')).toEqual([{ number: 1 }])
    await heir.stop()
    expect(isServerOf(pid, dataDir)).toBe(false)
  })

  test('and the server with it, the next start recovers what was acknowledged', async () => {
    const dataDir = makeDataDir()
    const holder = bench.hold({ dataDir, insert: true })
    const { pid } = await holder.ready
    await until('some rows were acknowledged', () => holder.acknowledged.length > 20)
    process.kill(pid, 'SIGKILL')
    await holder.kill()
    // The holder may have begun to restart it before it was killed too; then there is a living server to take over.
    const heir = await bench.start({ dataDir })
    expect(heir.pid()).not.toBe(pid)
    const rows = await query<{ id: string }>(heir.connection, 'select id from acknowledged')
    const kept = new Set(rows.map(({ id }) => Number(id)))
    expect(holder.acknowledged.filter((id) => !kept.has(id))).toEqual([])
  })

  test('a server whose socket was swept away is started anew', async () => {
    const dataDir = makeDataDir()
    const holder = bench.hold({ dataDir, settings: quick })
    const { pid, connection } = await holder.ready
    await holder.kill()
    rmSync(connection.host, { recursive: true })
    const heir = await bench.start({ dataDir, settings: quick })
    expect(heir.pid()).not.toBe(pid)
    expect(heir.sentences.join()).toContain('its socket was deleted')
    expect(await query(heir.connection, 'select 1 as one')).toEqual([{ one: 1 }])
  })
})

test('two processes share one server, and the last one out stops it', async () => {
  const dataDir = bench.makeFolder()
  // Both at once, on a folder where nothing is yet: they race through initdb and the first start.
  const holders = [bench.hold({ dataDir, settings: quick }), bench.hold({ dataDir, settings: quick })]
  const [a, b] = await Promise.all(holders.map(({ ready }) => ready))
  expect(a!.pid).toBe(b!.pid)
  expect(readdirSync(dataDir).filter((name) => name.startsWith('postgres.new-'))).toEqual([])

  await holders[0]!.stop()
  expect(holders[0]!.sentences.at(-1)).toContain('another process of Countersign uses it')
  expect(await query(b!.connection, 'select 1 as one')).toEqual([{ one: 1 }])
  await holders[1]!.stop()
  expect(holders[1]!.sentences.at(-1)).toBe('Stopped the database server.')
  expect(isServerOf(b!.pid, dataDir)).toBe(false)
})

test('a killed server is down, then up again with its rows', async () => {
  const dataDir = makeDataDir()
  const database = await bench.start({ dataDir })
  await query(database.connection, 'create table notes as select 1 as number')
  const killed = database.pid()!
  const changes: boolean[] = []
  database.onChange((up) => changes.push(up))
  process.kill(killed, 'SIGKILL')
  await until('the loss was seen', () => changes.length > 0)
  expect(changes).toEqual([false])
  expect(database.isUp()).toBe(false)
  await until('it is up again', () => database.isUp())
  expect(changes).toEqual([false, true])
  expect(database.pid()).not.toBe(killed)
  expect(await query(database.connection, 'select number from notes')).toEqual([{ number: 1 }])
})

test('a query that goes on after its server was killed does not hold up the next server', async () => {
  const database = await bench.start({ dataDir: makeDataDir(), settings: quick })
  const endless = query(database.connection, 'select count(*) from generate_series(1, 1e12::bigint)').catch(
    (error: Error) => error.message,
  )
  await until('the query is at work', async () => {
    const [row] = await query(
      database.connection,
      `select count(*)::int as busy from pg_stat_activity where query like '%1e12%' and pid <> pg_backend_pid()`,
    )
    return row?.busy === 1
  })
  process.kill(database.pid()!, 'SIGKILL')
  await until('the loss was seen', () => !database.isUp())
  await until('it is up again', () => database.isUp())
  expect(database.sentences.join()).toContain('still running: stopping them first')
  expect(await endless).toContain('Connection terminated')
})

test('stop during a restart leaves nothing running', async () => {
  const dataDir = makeDataDir()
  const cluster = join(dataDir, 'postgres')
  for (const stopWhen of ['down', 'starting']) {
    const database = await bench.start({ dataDir, settings: quick })
    const killed = database.pid()
    process.kill(killed!, 'SIGKILL')
    await until('the loss was seen', () => !database.isUp())
    const next = () => readPidFile(cluster)?.pid
    if (stopWhen === 'starting')
      await until('a new server is starting', () => next() !== undefined && next() !== killed)
    await database.stop()
    expect(isServerOf(next(), dataDir)).toBe(false)
    expect(database.isUp()).toBe(false)
    expect(existsSync(database.connection.host)).toBe(false)
  }
})

test('data folders with long names work, side by side', async () => {
  const base = join(bench.makeFolder(), 'a'.repeat(120), 'with a space')
  const [one, two] = await Promise.all([
    bench.start({ dataDir: join(base, 'one'), settings: quick }),
    bench.start({ dataDir: join(base, 'two'), settings: quick }),
  ])
  expect(Buffer.byteLength(socketFile(one.connection.host))).toBeLessThan(104)
  expect(realpathSync(join(base, 'one', 'postgres'))).toBe(join(base, 'one', 'postgres'))
  expect(one.connection.host).not.toBe(two.connection.host)
  await query(one.connection, 'create table only_here ()')
  expect(await query(two.connection, `select to_regclass('only_here') as found`)).toEqual([{ found: null }])
})

test('a cluster whose making was cut short is never used', async () => {
  const dataDir = bench.makeFolder()
  const holder = bench.hold({ dataDir })
  const halfMade = () => readdirSync(dataDir).find((name) => name.startsWith('postgres.new-'))
  await until('initdb is at work', () => {
    const name = halfMade()
    return name !== undefined && existsSync(join(dataDir, name, 'PG_VERSION'))
  })
  await holder.kill()
  expect(existsSync(join(dataDir, 'postgres'))).toBe(false)

  const database = await bench.start({ dataDir, settings: quick })
  expect(await query(database.connection, 'select 1 as one')).toEqual([{ one: 1 }])
})

test('lock files that name a living stranger do not keep the server from starting', async () => {
  const dataDir = makeDataDir()
  const first = await bench.start({ dataDir, settings: quick })
  const { host } = first.connection
  await first.stop()
  mkdirSync(host, { mode: 0o700 })
  const lock = `${process.pid}\n${join(dataDir, 'postgres')}\n1\n5432\n${host}\n\n\nready\n`
  writeFileSync(join(dataDir, 'postgres', 'postmaster.pid'), lock)
  writeFileSync(`${socketFile(host)}.lock`, lock)
  const second = await bench.start({ dataDir, settings: quick })
  expect(isServerOf(second.pid(), dataDir)).toBe(true)
})

describe('refuses with a sentence, and changes nothing,', () => {
  test('a database of another major version', async () => {
    const dataDir = bench.makeFolder()
    mkdirSync(join(dataDir, 'postgres'))
    writeFileSync(join(dataDir, 'postgres', 'PG_VERSION'), '17\n')
    await expect(bench.start({ dataDir })).rejects.toThrow(/made by PostgreSQL 17, and .* brings PostgreSQL 18/)
    expect(readdirSync(join(dataDir, 'postgres'))).toEqual(['PG_VERSION'])
  })

  test('a folder that holds something else', async () => {
    const dataDir = bench.makeFolder()
    mkdirSync(join(dataDir, 'postgres'))
    writeFileSync(join(dataDir, 'postgres', 'holiday.jpg'), '')
    await expect(bench.start({ dataDir })).rejects.toThrow('holds files, but no PostgreSQL database')
  })

  test('a setting that is none, and one that PostgreSQL does not take', async () => {
    const dataDir = makeDataDir()
    await expect(bench.start({ dataDir, settings: { ...quick, 'fsync=off -c x': '' } })).rejects.toThrow(
      'is not the name of a',
    )
    await expect(bench.start({ dataDir, settings: { ...quick, work_mem: 'plenty' } })).rejects.toThrow(
      /did not start: .*invalid value for parameter "work_mem"/s,
    )
  })
})

test('what a statement held does not reach the server log', async () => {
  const dataDir = makeDataDir()
  const { connection } = await bench.start({ dataDir, settings: quick })
  await expect(query(connection, `select 'canary-in-a-statement'::int`)).rejects.toThrow('canary-in-a-statement')
  const log = readFileSync(join(dataDir, 'postgres.log'), 'utf8')
  expect(log).toContain('ready to accept connections')
  expect(log).not.toContain('canary')
})
